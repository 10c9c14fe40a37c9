"""Comparisons, and predicates packed into a register."""

from collections.abc import Callable
from typing import Any

import numpy as np

from cuasmrl.binary.sass import Kind
from cuasmrl.binary.sass.operands import parse_operand
from cuasmrl.gpu.emulator.faults import UnsupportedError
from cuasmrl.gpu.emulator.forms import Form, ReadMask, Step, WriteMask, mask_reader, mask_writer
from cuasmrl.gpu.emulator.semantics.registry import executes
from cuasmrl.gpu.emulator.values import FALSE, TRUE, ZERO, Array, Mask, Value
from cuasmrl.gpu.emulator.warps import Warps

_COMPARISONS: dict[str, Callable[[Array, Array], Mask]] = {
    "F": lambda a, b: FALSE,
    "LT": np.less,
    "EQ": np.equal,
    "LE": np.less_equal,
    "GT": np.greater,
    "NE": np.not_equal,
    "GE": np.greater_equal,
    "T": lambda a, b: TRUE,
}
_STRICT: dict[str, Callable[[Array, Array], Mask]] = {
    "LT": np.less,
    "LE": np.less,
    "GT": np.greater,
    "GE": np.greater,
}
_COMBINATIONS: dict[str, tuple[Callable[[Mask, Mask], Mask], int | None]] = {
    "AND": (np.logical_and, 1),
    "OR": (np.logical_or, 0),
    "XOR": (np.logical_xor, 0),
}
"""How a comparison meets the accumulated predicate, and which value of it changes nothing."""


@executes("ISETP", "UISETP")
def compare(form: Form) -> Step:
    """Compare, combine with a third predicate; the second destination takes the opposite comparison.

    With .EX these are the upper words of longer numbers, and the last predicate tells how the lower words
    compared.
    """
    name = form.choose(*_COMPARISONS)
    comparison = _comparison(form, name)
    combine, neutral = _COMBINATIONS[form.choose(*_COMBINATIONS)]
    plain = form.known(2) == neutral
    accumulated = form.predicate(2)
    writes = [form.result_predicate(k) for k in range(2)]

    def step(w: Warps) -> None:
        found = comparison(w)
        others = None if plain else accumulated(w)
        values = (found, ~found if writes[1] is not None else found)
        for write, value in zip(writes, values, strict=True):
            if write is not None:
                write(w, value if others is None else combine(value, others))

    return step


def _comparison(form: Form, name: str) -> ReadMask:
    kind = form.choose("U32", "S64", "U64", default="S32")
    view: Any = {"S32": np.int32, "U32": np.uint32, "S64": np.int64, "U64": np.uint64}[kind]
    read: Callable[[int], Callable[[Warps], Array]] = form.long if kind.endswith("64") else form.integer
    a, b = read(0), read(1)
    if not form.has("EX"):
        function = _COMPARISONS[name]
        return lambda w: function(a(w).view(view), b(w).view(view))
    below = form.predicate(3)
    return lambda w: _continued(name, a(w).view(view), b(w).view(view), below(w))


def _continued(name: str, a: Array, b: Array, below: Mask) -> Mask:
    """The comparison of numbers whose lower words compared as `below`."""
    equal: Mask = a == b
    match name:
        case "F" | "T":
            return _COMPARISONS[name](a, b)
        case "EQ":
            return equal & below
        case "NE":
            return ~equal | below
    return _STRICT[name](a, b) | (equal & below)


@executes("P2R", "UP2UR")
def pack_predicates(form: Form) -> Step:
    """The predicates that the mask selects become bits of a byte of the result, the rest comes from b."""
    file, mask, base = _all_predicates(form.operand(0).text), form.immediate(2), form.integer(1)
    chosen = _selected(mask)
    shift = np.uint32(8 * _byte(form.choose("B1", "B2", "B3", default="B0")))
    kept = ~(np.uint32(mask) << shift)
    reads = [(mask_reader(parse_operand(f"{file}{i}")), np.uint32(i) + shift) for i in chosen]
    keeps, write = form.known(1) != 0, form.result()

    def step(w: Warps) -> None:
        value = base(w) & kept if keeps else ZERO
        for read, place in reads:
            value = value | (read(w).astype(np.uint32) << place)
        write(w, value)

    return step


@executes("R2P")
def unpack_predicates(form: Form) -> Step:
    """The predicates that the mask selects take bits of a byte of a."""
    operand = form.operand(0)
    byte = next((_byte(s) for s in operand.suffixes if s in ("B1", "B2", "B3")), 0)
    if set(operand.suffixes) - {"B0", "B1", "B2", "B3", "reuse"} or operand.negated or operand.inverted:
        raise UnsupportedError(f"operand {operand.text}")
    destination = form.destinations[0]
    if destination.kind is not Kind.ALL_PREDICATES:
        raise UnsupportedError(f"operand {destination.text}")
    file = _all_predicates(destination.text)
    read = form.registers(0, 1)
    writes: list[tuple[WriteMask | None, np.uint32]] = [
        (mask_writer(parse_operand(f"{file}{i}")), np.uint32(1 << i + 8 * byte))
        for i in _selected(form.immediate(1))
    ]

    def step(w: Warps) -> None:
        value: Value = read(w)[0]
        for write, bit in writes:
            if write is not None:
                write(w, (value & bit) != 0)

    return step


def _all_predicates(text: str) -> str:
    if text not in ("PR", "UPR"):
        raise UnsupportedError(f"operand {text}")
    return "P" if text == "PR" else "UP"


def _selected(mask: int) -> list[int]:
    if not 0 <= mask < 0x80:
        raise UnsupportedError(f"predicates {mask:#x}")
    return [i for i in range(7) if mask >> i & 1]


def _byte(name: str) -> int:
    return int(name[1])
