"""Control flow: where the threads of a group go after the last instruction of a segment."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from cuasmrl.binary.cubin import WORD_BYTES
from cuasmrl.binary.sass import File, Instruction, Kind, Operand
from cuasmrl.gpu.emulator.barriers import any_lane
from cuasmrl.gpu.emulator.events import Event, is_plain_barrier
from cuasmrl.gpu.emulator.faults import UnsupportedError
from cuasmrl.gpu.emulator.forms import Form, Read, ReadMask, Step, mask_reader
from cuasmrl.gpu.emulator.meetings import Meeting, split
from cuasmrl.gpu.emulator.semantics.lanes import over_lanes, packed
from cuasmrl.gpu.emulator.semantics.registry import executes
from cuasmrl.gpu.emulator.values import TRUE, ZERO, Mask, constant
from cuasmrl.gpu.emulator.warps import Warps

if TYPE_CHECKING:
    from cuasmrl.gpu.emulator.machine import Machine

Transfer: TypeAlias = "Callable[[Machine, Warps], None]"
"""Sends every thread of a group on: to another segment, into a waiting room, or out of the kernel."""

_TRANSFERS: dict[str, Callable[[Form], Transfer]] = {}
_EVERYBODY = constant(0xFFFF_FFFF)


def transfers(*opcodes: str) -> Callable[[Callable[[Form], Transfer]], Callable[[Form], Transfer]]:
    """Declare that a function says where threads go after these opcodes."""

    def declare(function: Callable[[Form], Transfer]) -> Callable[[Form], Transfer]:
        _TRANSFERS.update(dict.fromkeys(opcodes, function))
        return function

    return declare


def is_transfer(instruction: Instruction) -> bool:
    return _key(instruction) in _TRANSFERS


def _key(instruction: Instruction) -> str:
    """The opcode, with its first modifier where only this form of it is a transfer."""
    form = ".".join(instruction.mnemonic.split(".")[:2])
    return form if form in _TRANSFERS else instruction.opcode


def transfer_of(form: Form) -> Transfer:
    """What this control instruction does; raises `UnsupportedError` with the reason."""
    transfer = _TRANSFERS[_key(form.instruction)](form)
    form.refuse_leftovers()
    return transfer


def fall_through(following: int) -> Transfer:
    return lambda machine, w: machine.go(following, w.active)


def divide(w: Warps, condition: Mask) -> tuple[Mask | None, Mask | None]:
    """The threads for which a condition holds, and the others; None for an empty set."""
    if condition.size == 1:
        return (w.active, None) if condition.item() else (None, w.active)
    taken = w.active & condition
    if not taken.any():
        return None, w.active
    rest = w.active & ~condition
    return (taken, rest) if rest.any() else (w.active, None)


def chosen(machine: Machine, w: Warps, condition: ReadMask, following: int) -> Mask | None:
    """The threads for which a condition holds; the others go on at the next instruction."""
    taken, rest = divide(w, condition(w))
    if rest is not None:
        machine.go(following, rest)
    return taken


def condition_of(form: Form) -> ReadMask:
    """The guard of a control instruction and the predicates among its operands."""
    guard = form.instruction.guard
    reads = [] if guard is None else [mask_reader(guard)]
    reads += [form.predicate(k) for k, operand in enumerate(form.sources) if operand.is_predicate]
    match reads:
        case []:
            return lambda w: TRUE
        case [only]:
            return only
        case [first, second]:
            return lambda w: first(w) & second(w)
    raise UnsupportedError("has more than two conditions")


def _target(form: Form) -> int:
    for k, operand in enumerate(form.sources):
        if operand.kind is Kind.LABEL:
            form.operand(k)
    if form.instruction.target is None:
        raise UnsupportedError("jumps to a place that is not in the kernel")
    return form.instruction.target // WORD_BYTES


@transfers("BRA", "JMP")
def branch(form: Form) -> Transfer:
    form.ignore("U")
    condition, target, following = condition_of(form), _target(form), form.instruction.index + 1
    if form.has("CONV") or form.has("DIV"):
        condition = _convergence(form, condition)
    if form.has("ANY"):
        condition = _in_any_lane(condition)

    def transfer(machine: Machine, w: Warps) -> None:
        taken = chosen(machine, w, condition, following)
        if taken is not None:
            machine.go(target, taken)

    return transfer


def _in_any_lane(condition: ReadMask) -> ReadMask:
    """All lanes of a warp go the same way: to the target if one of them wants to."""
    return lambda w: any_lane(over_lanes(condition(w)) & w.active)


def _convergence(form: Form, guard: ReadMask) -> ReadMask:
    """.CONV: all lanes of a mask are here; .DIV: one of them is elsewhere. Without a mask, of the warp."""
    positions = [k for k, o in enumerate(form.sources) if o.kind is Kind.REGISTER and not o.is_predicate]
    expected = form.integer(positions[0]) if positions else (lambda w: _EVERYBODY)
    diverged = form.has("DIV")

    def condition(w: Warps) -> Mask:
        missing = expected(w) & packed(w.machine.living) & ~packed(w.active)
        taken: Mask = (missing != 0) == diverged
        return guard(w) & taken

    return condition


@transfers("EXIT")
def leave(form: Form) -> Transfer:
    condition, following = condition_of(form), form.instruction.index + 1

    def transfer(machine: Machine, w: Warps) -> None:
        taken = chosen(machine, w, condition, following)
        if taken is not None:
            machine.leave(taken)

    return transfer


@transfers("BSYNC")
def converge(form: Form) -> Transfer:
    """Wait for all lanes that passed the BSSY of the same barrier register and have not left it."""
    form.ignore("RECONVERGENT")
    reliable = form.has("RELIABLE")
    barrier, following = _barrier_register(form.operand(_barrier_position(form))), form.instruction.index + 1
    condition = condition_of(form)

    def transfer(machine: Machine, w: Warps) -> None:
        taken = chosen(machine, w, condition, following)
        if taken is not None:
            forget = None if reliable else (lambda lanes: _forget(w, barrier, lanes))
            machine.meet(following, Meeting(taken, lambda: w.registers.barriers[barrier], forget=forget))

    return transfer


@transfers("WARPSYNC")
def warp_sync(form: Form) -> Transfer:
    """Wait for the lanes in a mask."""
    following = form.instruction.index + 1
    condition = condition_of(form)
    exclusive = form.has("EXCLUSIVE")
    masks = _masks(form)
    leave_to = _target(form) if form.has("COLLECTIVE") else None

    def transfer(machine: Machine, w: Warps) -> None:
        taken = chosen(machine, w, condition, following)
        if taken is None:
            return
        if leave_to is not None:
            machine.collect(following, taken, masks(w), leave_to)
        else:
            machine.meet(following, Meeting(taken, lambda: masks(w), exclusive))

    return transfer


def _masks(form: Form) -> Read:
    """Whom each lane waits for. A register is read while it waits, when nobody can change it any more."""
    if form.has("ALL"):
        return lambda w: _EVERYBODY
    position = next(
        (k for k, o in enumerate(form.sources) if o.kind is not Kind.LABEL and not o.is_predicate), -1
    )
    register = form.operand(position).register
    if register is not None and register.file is File.UR:
        raise UnsupportedError("takes its mask from a uniform register")
    return form.integer(position)


@transfers("ENDCOLLECTIVE")
def end_collective(form: Form) -> Transfer:
    """Back to where each lane came from."""

    def transfer(machine: Machine, w: Warps) -> None:
        for target, threads in machine.collectives.returns(w.active):
            machine.go(target, threads)

    return transfer


@transfers("BAR")
def barrier(form: Form) -> Transfer:
    """A barrier of the block: SYNC waits, ARV only arrives, RED also combines a predicate."""
    form.ignore("DEFER_BLOCKING")
    kind = form.choose("SYNC", "ARV", "RED")
    reduction = form.choose("POPC", "AND", "OR") if kind == "RED" else ""
    barriers = _barrier_numbers(form)
    value = form.predicate(len(form.sources) - 1) if kind == "RED" else None
    guard = form.instruction.guard
    condition = mask_reader(guard) if guard is not None else (lambda w: TRUE)
    following, named = form.instruction.index + 1, not is_plain_barrier(form.instruction)

    def transfer(machine: Machine, w: Warps) -> None:
        taken = chosen(machine, w, condition, following)
        if taken is not None:
            vote = None if value is None else value(w)
            for name, count, threads in barriers(machine, w, taken):
                if named and machine.recorder is not None:
                    warps = np.flatnonzero(any_lane(np.broadcast_to(threads, machine.shape)))
                    happens = Event.PASS if kind == "ARV" else Event.MEET
                    machine.recorder.event(happens, following - 1, warps, name, counts=count or 0)
                machine.barriers.arrive(name, following, threads, count, waits=kind != "ARV",
                                        vote=vote, reduction=reduction)  # fmt: skip

    return transfer


_BarrierNumbers: TypeAlias = "Callable[[Machine, Warps, Mask], list[tuple[int, int | None, Mask]]]"
"""Which barrier the threads come to, and how many threads it waits for."""


def _barrier_numbers(form: Form) -> _BarrierNumbers:
    """Numbers, or registers; where both are in one register the count is in its upper half."""
    positions = [k for k, o in enumerate(form.sources) if not o.is_predicate]
    operands = [form.operand(k) for k in positions]
    if all(operand.kind is Kind.IMMEDIATE for operand in operands):
        fixed = [form.immediate(k) for k in positions]
        return lambda machine, w, threads: [(fixed[0], fixed[1] if len(fixed) > 1 else None, threads)]
    name, count = form.integer(positions[0]), form.integer(positions[-1])
    counted, packed_together = len(operands) > 1, [o.text for o in operands[1:]] == [operands[0].text]

    def read(machine: Machine, w: Warps, threads: Mask) -> list[tuple[int, int | None, Mask]]:
        many = count(w) >> np.uint32(16) if packed_together else count(w)
        key = (name(w) & np.uint32(15)) | ((many & np.uint32(0xFFF)) << np.uint32(4) if counted else ZERO)
        groups = split(np.broadcast_to(threads, machine.shape), np.broadcast_to(key, machine.shape))
        return [(number & 15, number >> 4 if counted else None, those) for number, those in groups]

    return read


@executes("BSSY")
def open_region(form: Form) -> Step:
    """Note the lanes that are here: a BSYNC brings them together again."""
    form.ignore("RECONVERGENT", "RELIABLE")
    index = _barrier_register(form.destinations[0])
    for k, operand in enumerate(form.sources):
        if operand.kind is Kind.LABEL:
            form.operand(k)

    def step(w: Warps) -> None:
        w.set_barrier(index, packed(w.active))

    return step


@executes("BREAK")
def leave_region(form: Form) -> Step:
    """These lanes will not come to the BSYNC."""
    form.ignore("RELIABLE")
    index = _barrier_register(form.operand(_barrier_position(form)))
    condition = condition_of(form)

    def step(w: Warps) -> None:
        _forget(w, index, w.active & condition(w))
        w.machine.release()

    return step


def _forget(w: Warps, index: int, lanes: Mask) -> None:
    barriers = w.registers.barriers
    barriers[index] = barriers[index] & ~packed(lanes)


@executes("BMOV")
def move_barrier(form: Form) -> Step:
    """Between barrier registers and others; .CLEAR empties the barrier register that was read."""
    form.ignore("32")
    clear = form.has("CLEAR")
    target, source = form.destinations[0], form.operand(0)
    if target.register is not None and target.register.file is File.B:
        index, bits = _barrier_register(target), form.integer(0)

        return lambda w: w.set_barrier(index, bits(w))
    index, write = _barrier_register(source), form.result()

    def from_barrier(w: Warps) -> None:
        write(w, w.registers.barriers[index])
        if clear:
            w.set_barrier(index, ZERO)

    return from_barrier


def _barrier_position(form: Form) -> int:
    for k, operand in enumerate(form.sources):
        if operand.register is not None and operand.register.file is File.B:
            return k
    raise UnsupportedError("names no barrier register")


def _barrier_register(operand: Operand) -> int:
    register = operand.register
    if register is None or register.file is not File.B or register.index is None:
        raise UnsupportedError(f"expects a barrier register instead of {operand.text}")
    return register.index
