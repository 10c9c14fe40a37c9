"""Conversions between numbers of different types, one per register."""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from cuasmrl.binary.sass import Operand
from cuasmrl.gpu.emulator.faults import UnsupportedError
from cuasmrl.gpu.emulator.forms import Form, Read, ReadDouble, Step, raw
from cuasmrl.gpu.emulator.semantics.formats import BF16, FP16, half_reader
from cuasmrl.gpu.emulator.semantics.registry import executes
from cuasmrl.gpu.emulator.semantics.rounding import (
    Double,
    Single,
    add_to_odd,
    bfloat,
    direct,
    double_bits,
    flush,
    half,
    mode_of,
    single,
    single_bits,
    two_sum,
    whole,
)
from cuasmrl.gpu.emulator.semantics.ufuncs import pack_halves
from cuasmrl.gpu.emulator.values import TRUE, ZERO, Array, Long, Value
from cuasmrl.gpu.emulator.warps import Warps

WriteDouble: TypeAlias = Callable[[Warps, Double], None]

_FLOATS = ("F32", "F64", "F16", "BF16")
_INTEGERS: dict[str, type[np.integer]] = {
    "S32": np.int32, "U32": np.uint32, "S64": np.int64, "U64": np.uint64,
    "S16": np.int16, "U16": np.uint16, "S8": np.int8, "U8": np.uint8,
}  # fmt: skip
_PARTS = {"B0": 0, "B1": 8, "B2": 16, "B3": 24, "H0": 0, "H1": 16}
_WORD = np.uint64(32)


@executes("F2F")
def float_to_float(form: Form) -> Step:
    """`F2F.F16.F32`: the type of the result stands first."""
    types = [m for m in form.modifiers if m in _FLOATS and form.has(m)]
    if len(types) != 2:
        raise UnsupportedError("needs two types")
    mode, ftz = mode_of(form), form.has("FTZ")
    if types == ["F16", "F32"] and mode == "RN" and not ftz:
        zero = ZERO.view(np.float32)
        return form.compute(lambda x: pack_halves(zero, x), form.single(0))
    if types[0] == "F64" and mode != "RN":
        raise UnsupportedError("rounds where nothing is lost")
    read, write = _read_float(form, types[1], ftz), _write_float(form, types[0], mode, ftz)
    return lambda w: write(w, read(w))


@executes("FRND")
def round_to_whole(form: Form) -> Step:
    """To a whole number of the same type."""
    kind = form.choose(*_FLOATS, default="F32")
    function, ftz = whole(form), form.has("FTZ")
    read, write = _read_float(form, kind, ftz), _write_float(form, kind, "RN", ftz)
    return lambda w: write(w, function(read(w)))


@executes("F2I", "UF2I")
def float_to_integer(form: Form) -> Step:
    """Numbers that do not fit become the nearest that does.

    NaN becomes zero with .NTZ and the integer with only its first bit set without: ptxas leaves .NTZ out
    exactly where the PTX manual promises the latter (cvt, 64-bit results or operands).
    """
    name = form.choose(*_INTEGERS, default="S32")
    kind = _INTEGERS[name]
    source = form.choose(*_FLOATS, default="F32")
    function, ftz = whole(form), form.has("FTZ")
    bits = np.iinfo(kind).bits
    nan = 0 if form.has("NTZ") else 1 << (bits - 1)
    read = _read_float(form, source, ftz)
    if bits == 64:
        write_long = form.result_long()
        return lambda w: write_long(w, _to_long(function(read(w)), kind, nan))
    write = form.result()
    return lambda w: write(w, _to_word(function(read(w)), kind, nan))


@executes("I2F", "I2FP", "UI2F", "UI2FP")
def integer_to_float(form: Form) -> Step:
    """`R3.B1` and `R3.H1` are parts of a register."""
    name = form.choose(*_INTEGERS, default="S32")
    result, mode = form.choose(*_FLOATS, default="F32"), mode_of(form)
    operand = form.operand(0)
    if operand.negated or operand.absolute or operand.inverted:
        raise UnsupportedError(f"operand {operand.text}")
    if name in ("S64", "U64"):
        return _long_to_float(form, name, result, mode)
    read, kind = _part(operand, np.iinfo(_INTEGERS[name]).bits), _INTEGERS[name]
    if result == "F32" and mode == "RN":
        return form.compute(lambda x: x.astype(kind).astype(np.float32).view(np.uint32), read)
    write = _write_float(form, result, mode, False)
    return lambda w: write(w, read(w).astype(kind).astype(np.float64))


@executes("I2IP")
def pack_integers(form: Form) -> Step:
    """cvt.pack of PTX: b below a, saturated; of 8 bits each, c fills the upper half."""
    types = [m for m in form.modifiers if m in _INTEGERS and form.has(m)]
    if len(types) != 2 or types[1] != "S32" or not form.has("SAT"):
        raise UnsupportedError("packs in an unknown way")
    limits, bits = np.iinfo(_INTEGERS[types[0]]), np.iinfo(_INTEGERS[types[0]]).bits
    if bits > 16:
        raise UnsupportedError("packs whole words")
    mask = np.uint32((1 << bits) - 1)

    def saturated(x: Value) -> Value:
        return np.clip(x.view(np.int32), limits.min, limits.max).view(np.uint32) & mask

    def function(a: Value, b: Value, c: Value) -> Value:
        low = saturated(a) << np.uint32(bits) | saturated(b)
        return low if bits == 16 else low | c << np.uint32(16)

    return form.compute(function, form.integer(0), form.integer(1), form.integer(2))


@executes("F2IP")
def pack_rounded(form: Form) -> Step:
    """F2I of a and of b, then I2IP of both: ptxas joins the three from sm_89 on."""
    kind, function = _INTEGERS[form.choose("S8", "U8")], whole(form)
    if not (form.has("F32") and form.has("NTZ")):
        raise UnsupportedError("packs in an unknown way")

    def byte(x: Single) -> Value:
        return _to_word(function(x.astype(np.float64)), kind, nan=0) & np.uint32(0xFF)

    def pack(a: Single, b: Single, c: Value) -> Value:
        return byte(a) << np.uint32(8) | byte(b) | c << np.uint32(16)

    return form.compute(pack, form.single(0), form.single(1), form.integer(2))


# from and to floats


def _read_float(form: Form, kind: str, ftz: bool) -> ReadDouble:
    """Source 0 of that type, widened."""
    if kind == "F64":
        return form.double(0)
    if kind == "F32":
        read = form.single(0)
        if ftz:
            return lambda w: flush(read(w)).astype(np.float64)
    else:
        read = half_reader(form, 0, FP16 if kind == "F16" else BF16)
    return lambda w: read(w).astype(np.float64)


def _write_float(form: Form, kind: str, mode: str, ftz: bool) -> WriteDouble:
    """Round exact numbers to that type; 16 bits leave the upper half zero."""
    if kind == "F64":
        write_long = form.result_long()
        return lambda w, x: write_long(w, double_bits(x))
    write = form.result()
    if kind == "F32":
        if ftz:
            return lambda w, x: write(w, single_bits(flush(single(x, mode))))
        return lambda w, x: write(w, single_bits(single(x, mode)))
    narrow = half if kind == "F16" else bfloat
    return lambda w, x: write(w, narrow(x, mode).astype(np.uint32))


# from and to integers


def _to_word(number: Double, kind: type[np.integer], nan: int) -> Value:
    """Signed results are extended to 32 bits: ptxas adds the result of F2I.S8 without more ado."""
    limits = np.iinfo(kind)
    fitting = np.clip(number, limits.min, limits.max)
    unknown = np.isnan(fitting)
    if unknown.any():
        fitting = np.where(unknown, np.float64(_as_signed(nan, kind)), fitting)
    return fitting.astype(np.int64).astype(np.uint32)


def _to_long(number: Double, kind: type[np.integer], nan: int) -> Long:
    limits = np.iinfo(kind)
    above, below = number >= float(limits.max), number < float(limits.min)
    inside = np.where(above | below | np.isnan(number), 0.0, number).astype(kind)
    result = np.where(above, kind(limits.max), np.where(below, kind(limits.min), inside)).view(np.uint64)
    return np.where(np.isnan(number), np.uint64(nan), result)


def _as_signed(bits: int, kind: type[np.integer]) -> int:
    limits = np.iinfo(kind)
    return bits if bits <= limits.max else bits - (1 << limits.bits)


def _part(operand: Operand, bits: int) -> Read:
    """The byte or half that the suffix names, the lowest without, moved to the right end."""
    suffixes = set(operand.suffixes) - {"reuse"}
    if not suffixes:
        return raw(operand, 0)
    name = suffixes.pop()
    if suffixes or name not in _PARTS or bits != {"B": 8, "H": 16}[name[0]]:
        raise UnsupportedError(f"operand {operand.text}")
    read, shift = raw(operand, 0), np.uint32(_PARTS[name])
    return lambda w: read(w) >> shift


def _long_to_float(form: Form, name: str, result: str, mode: str) -> Step:
    read, signed = form.long(0), name == "S64"

    def halves(bits: Long) -> tuple[Double, Double]:
        upper: Array = bits.view(np.int64) >> np.int64(32) if signed else bits >> _WORD
        return upper.astype(np.float64) * 2.0**32, bits.astype(np.uint32).astype(np.float64)

    if result != "F64":
        write = _write_float(form, result, mode, False)
        return lambda w: write(w, add_to_odd(*halves(read(w))))
    write_long = form.result_long()

    def step(w: Warps) -> None:
        total, lost = two_sum(*halves(read(w)))
        write_long(w, (total if mode == "RN" else direct(total, lost, TRUE, mode)).view(np.uint64))

    return step
