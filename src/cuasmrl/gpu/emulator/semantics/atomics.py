"""Atomic operations on global and shared memory, in the order of threads."""

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from cuasmrl.gpu.emulator.addresses import far, near
from cuasmrl.gpu.emulator.faults import UnsupportedError
from cuasmrl.gpu.emulator.forms import Form, Step
from cuasmrl.gpu.emulator.semantics.half_atomics import BRAIN, HALF, add_pairs
from cuasmrl.gpu.emulator.semantics.registry import executes
from cuasmrl.gpu.emulator.values import Value, high, join, low
from cuasmrl.gpu.emulator.warps import Warps

_OPERATIONS = {
    "ADD": 0, "MIN": 1, "MAX": 2, "INC": 3, "DEC": 4, "AND": 5, "OR": 6, "XOR": 7, "EXCH": 8, "CAS": 9,
    "CAST": 9,
}  # fmt: skip
_TYPES: dict[str, type] = {
    "U32": np.uint32, "S32": np.int32, "U64": np.uint64, "64": np.uint64, "S64": np.int64,
    "F32": np.float32, "F64": np.float64, "F32x2": np.float32, "F32x4": np.float32,
}  # fmt: skip
_PAIRS = {"F16x2": HALF, "BF16x2": BRAIN}
_ELEMENTS = {"F32x2": 2, "F32x4": 4}


_SMALLEST_NORMAL = 1.1754943508222875e-38


@njit(cache=True)
def apply(operation, flush, window, address, active, threads, operand, compare, old):  # type: ignore[no-untyped-def]
    """old[k, i] = memory of thread i; memory = operation(memory, operand[k, i]).

    Every branch stores for itself: one variable for all of their results would be a float64 to Numba, which
    neither wraps around nor holds 64 bits.
    """
    units = window.units
    one = units.dtype.type(1)
    for i in range(address.size):
        if not active[i]:
            continue
        at = (address[i] - window.base) // units.itemsize
        at += (i // threads) * window.block_stride + i * window.thread_stride
        for k in range(operand.shape[0]):
            was, value = units[at + k], operand[k, i]
            old[k, i] = was
            if operation == 0 and flush:
                units[at + k] = flushed(flushed(was) + flushed(value))
            elif operation == 0:
                units[at + k] = was + value
            elif operation == 1:
                units[at + k] = min(was, value)
            elif operation == 2:
                units[at + k] = max(was, value)
            elif operation == 3:
                units[at + k] = was + one if was < value else was - was
            elif operation == 4:
                units[at + k] = value if was == 0 or was > value else was - one
            elif operation != 9 or was == compare[k, i]:
                units[at + k] = value


@njit(cache=True)
def flushed(value):  # type: ignore[no-untyped-def]
    """Zero with the sign of a subnormal number."""
    return value * type(value)(0) if abs(value) < _SMALLEST_NORMAL else value


@njit(cache=True)
def apply_bits(operation, window, address, active, threads, operand, old):  # type: ignore[no-untyped-def]
    """AND, OR and XOR, which exist for integers only."""
    units = window.units
    for i in range(address.size):
        if not active[i]:
            continue
        at = (address[i] - window.base) // units.itemsize
        at += (i // threads) * window.block_stride + i * window.thread_stride
        was, value = units[at], operand[0, i]
        old[0, i] = was
        if operation == 5:
            units[at] = was & value
        elif operation == 6:
            units[at] = was | value
        else:
            units[at] = was ^ value


@executes("ATOMG", "ATOM", "RED", "REDG", "ATOMS")
def atomic(form: Form) -> Step:
    form.ignore("STRONG", "WEAK", "GPU", "CTA", "SYS", "SM", "RN", "EF", "EL", "NA")
    shared = form.opcode == "ATOMS"
    if form.has("POPC"):
        return _count_lanes(form)
    for modifier, layout in _PAIRS.items():
        if not shared and form.has(modifier):
            return _add_pairs(form, layout)
    name = form.choose(*_OPERATIONS)
    # ptxas names the type of floats and of signed comparisons; a bare .64 is unsigned.
    type_name = form.choose(*_TYPES, default="U32")
    kind, elements = np.dtype(_TYPES[type_name]), _ELEMENTS.get(type_name, 1)
    flush = form.has("FTZ")
    address = near(form, 0) if shared else far(form, 0)
    words = kind.itemsize * elements // 4
    compares = name in ("CAS", "CAST")
    data = form.registers(2 if compares else 1, words)
    expected = form.registers(1, words) if compares else data
    success = form.result_predicate(0)
    if name == "CAST":
        form.ignore("SPIN")
    elif success is not None:
        raise UnsupportedError("gives a predicate")
    has_result = any(not destination.is_predicate for destination in form.destinations)
    writes = form.result_words(words) if has_result else []
    index, size = form.instruction.index, kind.itemsize * elements

    def step(w: Warps) -> None:
        machine, slab = w.machine, w.machine.slab
        at, active = slab.flat(address(w)), slab.active(w.active)
        machine.note_access(index, at, active, size)
        operand = _typed([slab.flat(value) for value in data(w)], kind)
        compare = _typed([slab.flat(value) for value in expected(w)], kind)
        old = np.zeros_like(operand)
        space = machine.shared if shared else machine.memory
        for window, those in space.windows(at, active, size, kind.type):
            if name in ("AND", "OR", "XOR"):
                apply_bits(_OPERATIONS[name], window, at, those, slab.threads, operand, old)
            else:
                apply(_OPERATIONS[name], flush, window, at, those, slab.threads, operand, compare, old)
        if not shared:
            machine.memory.check_padding(at, active, size)
        if name == "CAST":
            # Tells whether it has stored, not what was there.
            swapped = old == compare
            old = swapped.astype(kind)
            if success is not None:
                success(w, swapped.reshape(slab.shape))
        for write, value in zip(writes, _untyped(old), strict=bool(writes)):
            write(w, value.reshape(slab.shape))

    return step


def _add_pairs(form: Form, layout: tuple[int, int]) -> Step:
    """Pairs of halves; subnormal numbers are kept (PTX ISA, atom.add.noftz)."""
    form.choose("ADD")
    address, data = far(form, 0), form.registers(1, 1)
    if form.result_predicate(0) is not None:
        raise UnsupportedError("gives a predicate")
    has_result = any(not destination.is_predicate for destination in form.destinations)
    write, index = form.result() if has_result else None, form.instruction.index

    def step(w: Warps) -> None:
        machine, slab = w.machine, w.machine.slab
        at, active = slab.flat(address(w)), slab.active(w.active)
        machine.note_access(index, at, active, 4)
        operand = slab.flat(data(w)[0]).reshape(1, -1)
        old = np.zeros_like(operand)
        for window, those in machine.memory.windows(at, active, 4, np.uint32):
            add_pairs(window, at, those, operand, old, *layout)
        machine.memory.check_padding(at, active, 4)
        if write is not None:
            write(w, old[0].reshape(slab.shape))

    return step


def _count_lanes(form: Form) -> Step:
    """ATOMS.POPC.INC: every lane adds one."""
    form.ignore("INC", "32")
    address = near(form, 0)
    write = form.result()
    index = form.instruction.index

    def step(w: Warps) -> None:
        machine, slab = w.machine, w.machine.slab
        at, active = slab.flat(address(w)), slab.active(w.active)
        machine.note_access(index, at, active, 4)
        ones = np.ones((1, slab.size), np.uint32)
        old = np.zeros_like(ones)
        for window, those in machine.shared.windows(at, active, 4, np.uint32):
            apply(0, False, window, at, those, slab.threads, ones, ones, old)
        write(w, old[0].reshape(slab.shape))

    return step


def _typed(words: list[Value], kind: "np.dtype[Any]") -> npt.NDArray[Any]:
    """Registers of all threads as numbers of a type, one row per element."""
    if kind.itemsize == 8:
        return join(words[0], words[1]).view(kind).reshape(1, -1)
    return np.stack(words).view(kind)


def _untyped(values: npt.NDArray[Any]) -> list[Value]:
    if values.dtype.itemsize == 8:
        wide = values[0].view(np.uint64)
        return [low(wide), high(wide)]
    return [row.view(np.uint32) for row in values]
