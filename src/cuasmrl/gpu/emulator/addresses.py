"""Addresses of memory operands: a register or a pair, a uniform register or a pair, and an offset."""

from collections.abc import Callable

import numpy as np

from cuasmrl.binary.sass import Kind, Operand, Register
from cuasmrl.gpu.emulator.access import Addresses
from cuasmrl.gpu.emulator.faults import UnsupportedError
from cuasmrl.gpu.emulator.forms import Form, Read, register_reader
from cuasmrl.gpu.emulator.values import join
from cuasmrl.gpu.emulator.warps import Warps

ReadAddress = Callable[[Warps], Addresses]

_SCALES = {"X4": 2, "X8": 3, "X16": 4}
_DESCRIPTORS = ("", "desc")


def far(form: Form, k: int) -> ReadAddress:
    """A global address: 64 bits with .E, 32 without."""
    operand = _bracketed(form, k)
    wide = form.has("E")
    base = _part(operand.register, wide and not _is_narrow(operand.register))
    uniform = _part(operand.uniform, wide)
    return _sum(operand.offset, base, uniform)


def near(form: Form, k: int) -> ReadAddress:
    """An address in shared or local memory: 32 bits, which wrap."""
    operand = _bracketed(form, k)
    total = _sum(operand.offset, _part(operand.register, False), _part(operand.uniform, False))
    return lambda w: total(w) & 0xFFFF_FFFF


def _bracketed(form: Form, k: int) -> Operand:
    operand = form.operand(k)
    if operand.kind is not Kind.ADDRESS or operand.space not in _DESCRIPTORS:
        raise UnsupportedError(f"expects an address instead of {operand.text}")
    return operand


def _is_narrow(register: Register | None) -> bool:
    """`[R2.U32+UR4]`: a 32-bit offset from the 64 bits in a uniform pair."""
    return register is not None and "U32" in register.suffixes


def _part(register: Register | None, wide: bool) -> Callable[[Warps], Addresses] | None:
    if register is None or register.index is None:
        return None
    shift = 0
    for suffix in register.suffixes:
        if suffix in _SCALES:
            shift = _SCALES[suffix]
        elif suffix == "64":
            wide = True
        elif suffix != "U32":
            raise UnsupportedError(f"address register with .{suffix}")
    first = register_reader(register, 0)
    if wide:
        second: Read = register_reader(register, 1)
        return lambda w: join(first(w), second(w)).view(np.int64)
    if shift:
        return lambda w: first(w).astype(np.int64) << shift
    return lambda w: first(w).astype(np.int64)


def _sum(offset: int, *parts: ReadAddress | None) -> ReadAddress:
    reads = [part for part in parts if part is not None]
    if not reads:
        fixed = np.full((1, 1, 1), offset, np.int64)
        return lambda w: fixed
    if len(reads) == 1:
        (only,) = reads
        return (lambda w: only(w) + offset) if offset else only
    first, second = reads
    return lambda w: first(w) + second(w) + offset
