"""Barriers in shared memory: SYNCS but for waiting (`phases.py`), and arrivals of asynchronous copies."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from cuasmrl.gpu.emulator.addresses import ReadAddress, near
from cuasmrl.gpu.emulator.events import Event
from cuasmrl.gpu.emulator.faults import LaneFault, UnsupportedError
from cuasmrl.gpu.emulator.forms import Form, Step
from cuasmrl.gpu.emulator.mbarriers import Numbers, initial_count
from cuasmrl.gpu.emulator.semantics.registry import executes
from cuasmrl.gpu.emulator.values import LANES, high, join, low
from cuasmrl.gpu.emulator.warps import Warps

_COUNTS = {"A1T0": (1, 0), "ART0": (None, 0), "A1TR": (1, None), "A0TR": (0, None), "A0TX": (0, None),
           "A0T1": (0, 1)}  # fmt: skip
"""Arrivals and bytes that each lane adds; None where its register says how many."""


@executes("SYNCS")
def synchronise(form: Form) -> Step:
    match form.choose("EXCH", "ARRIVE", "CCTL"):
        case "EXCH":
            return _initialise(form)
        case "ARRIVE":
            return _arrive(form)
    form.choose("IV")
    address = near(form, 0)

    def invalidate(w: Warps) -> None:
        for at, positions in by_address(w, address):
            for position in positions:
                w.machine.mbarriers.invalidate(int(position) // w.machine.slab.threads, at, int(position))

    return invalidate


def by_address(w: Warps, address: ReadAddress) -> Iterator[tuple[int, Numbers]]:
    """The active threads (positions in the slab) that name each address."""
    slab = w.machine.slab
    positions = np.flatnonzero(slab.active(w.active))
    named = slab.flat(address(w))[positions]
    for at in np.unique(named):
        yield int(at), positions[named == at]


def of_warps(w: Warps, value: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
    """A uniform value, one for each warp of the slab."""
    return np.broadcast_to(value, (*w.machine.shape[:2], 1)).reshape(-1)


def _initialise(form: Form) -> Step:
    """A uniform instruction: once for each warp, whoever of its lanes is active."""
    form.choose("64")
    if any(d.register is not None and d.register.index is not None for d in form.destinations):
        raise UnsupportedError("wants to know what the barrier was before")
    address, data = near(form, 0), form.registers(1, 2)
    index = form.instruction.index

    def step(w: Warps) -> None:
        machine = w.machine
        warps = np.flatnonzero(machine.warps_of(w))
        words = of_warps(w, join(*data(w)))
        addresses = of_warps(w, address(w))
        for warp in warps:
            arrivals = initial_count(int(words[warp]))
            position = int(warp) * LANES
            if arrivals is None:
                raise LaneFault(
                    f"initialises an mbarrier with {int(words[warp]):#x}, which is no count", position
                )
            block = int(warp) // machine.shape[1]
            machine.mbarriers.initialise(block, int(addresses[warp]), arrivals, index, position)

    return step


def _arrive(form: Form) -> Step:
    form.choose("TRANS64")
    form.ignore("RED")
    leaves = form.has("OPTOUT")
    kind = form.choose(*_COUNTS, default="A1TR")
    arrivals, moved = _COUNTS[kind]
    sign = -1 if kind == "A0TX" else 1
    address, data = near(form, 0), form.integer(1)
    writes = form.result_words(2)
    answers = any(d.register is not None and d.register.index is not None for d in form.destinations)
    index = form.instruction.index

    def step(w: Warps) -> None:
        machine, slab = w.machine, w.machine.slab
        amount = slab.flat(data(w)).astype(np.int64)
        token = np.zeros(slab.size, np.uint64)
        for at, positions in by_address(w, address):
            blocks, of_thread = np.unique(positions // slab.threads, return_inverse=True)
            if answers:
                token[positions] = machine.mbarriers.at(at, blocks, int(positions[0])).words()[blocks][
                    of_thread
                ]
            lanes = np.bincount(of_thread)
            total = np.bincount(of_thread, amount[positions]).astype(np.int64)
            came = total if arrivals is None else arrivals * lanes
            brought = sign * total if moved is None else moved * lanes
            each = np.ones_like(amount[positions])
            _note(
                w, Event.ARRIVE, index, at, positions,
                amount[positions] if arrivals is None else arrivals * each,
                sign * amount[positions] if moved is None else moved * each,
            )  # fmt: skip
            if leaves:
                machine.mbarriers.drop(at, blocks, lanes, int(positions[0]))
            machine.mbarriers.count(at, blocks, came, brought, index, int(positions[0]))
        if answers:
            for write, word in zip(writes, (low(token), high(token)), strict=True):
                write(w, word.reshape(slab.shape))

    return step


def _note(
    w: Warps, kind: Event, index: int, at: int, positions: Numbers, arrivals: Numbers, moved: Numbers
) -> None:
    """One event of each warp that has lanes among these threads of the slab."""
    machine = w.machine
    if machine.recorder is None:
        return
    warps, of_thread = np.unique(positions // LANES, return_inverse=True)
    counts, bytes_ = (np.bincount(of_thread, x).astype(np.int64) for x in (arrivals, moved))
    blocks = warps // machine.shape[1]
    phases = machine.mbarriers.at(at, np.unique(blocks), int(positions[0])).phase[blocks]
    machine.recorder.event(kind, index, warps, at, phases=phases, counts=counts, moved=bytes_)


@executes("ARRIVES")
def arrive_with_copies(form: Form) -> Step:
    """An arrival when the copies of a lane have landed: who sees the end of the phase may read them."""
    form.choose("LDGSTSBAR")
    form.choose("64")
    is_arrival = form.choose("ARVCNT", "TRANSCNT") == "ARVCNT"
    address = near(form, 0)
    index = form.instruction.index

    def step(w: Warps) -> None:
        machine = w.machine
        for at, positions in by_address(w, address):
            blocks, lanes = np.unique(positions // machine.slab.threads, return_counts=True)
            barrier = machine.mbarriers.at(at, blocks, int(positions[0]))
            machine.shared.land_with(np.unique(positions // LANES), barrier.slot, barrier.phase)
            one = np.ones(len(positions), np.int64)
            _note(w, Event.ARRIVE_WITH_COPIES, index, at, positions, is_arrival * one, (is_arrival - 1) * one)
            none = np.zeros_like(lanes)
            came, brought = (lanes, none) if is_arrival else (none, -lanes)
            machine.mbarriers.count(at, blocks, came, brought, index, int(positions[0]))

    return step
