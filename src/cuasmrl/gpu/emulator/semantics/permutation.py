"""PRMT: a word put together from the eight bytes of two others."""

from functools import lru_cache

import numpy as np

from cuasmrl.gpu.emulator.faults import UnsupportedError
from cuasmrl.gpu.emulator.forms import Form, Step
from cuasmrl.gpu.emulator.semantics.packing import words_of
from cuasmrl.gpu.emulator.semantics.registry import executes
from cuasmrl.gpu.emulator.values import ZERO, Array, Value

# What the two lowest bits of the selector stand for in each mode, as selectors of bytes (PTX ISA, prmt).
_MODES = {
    "F4E": (0x3210, 0x4321, 0x5432, 0x6543),
    "B4E": (0x5670, 0x6701, 0x7012, 0x0123),
    "RC8": (0x0000, 0x1111, 0x2222, 0x3333),
    "ECL": (0x3210, 0x3211, 0x3222, 0x3333),
    "ECR": (0x0000, 0x1110, 0x2210, 0x3210),
    "RC16": (0x1010, 0x3232, 0x1010, 0x3232),
}
_NIBBLES = np.array((0, 4, 8, 12), np.uint32)


@executes("PRMT", "UPRMT")
def permute(form: Form) -> Step:
    """Each nibble of the selector names a byte of c:a; its top bit asks for the sign of that byte instead."""
    for k in range(3):
        if form.operand(k).negated or form.operand(k).inverted:
            raise UnsupportedError(f"operand {form.operand(k).text}")
    mode = form.choose(*_MODES, default="")
    a, c = form.integer(0), form.integer(2)
    known = form.known(1)
    if known is not None:
        zero = (form.known(0) == 0, form.known(2) == 0)
        plan = _Plan(_MODES[mode][known & 3] if mode else known & 0xFFFF, zero)
        return form.compute(plan, a, c)

    def function(a: Value, selector: Value, c: Value) -> Value:
        if mode:
            selector = np.array(_MODES[mode], np.uint32)[selector & np.uint32(3)]
        if selector.size == 1:
            return _plan(int(selector.item()) & 0xFFFF)(a, c)
        return _permuted(a, selector, c)

    return form.compute(function, a, form.integer(1), c)


class _Plan:
    """A known selector: bytes that move by the same distance move together."""

    def __init__(self, selector: int, zero: tuple[bool, bool] = (False, False)) -> None:
        moves: dict[tuple[int, int], int] = {}
        signs: dict[tuple[int, int], int] = {}
        for place in range(4):
            nibble = selector >> 4 * place & 0xF
            word, byte = divmod(nibble & 7, 4)
            if zero[word]:
                continue
            group, key = (signs, (word, byte)) if nibble & 8 else (moves, (word, place - byte))
            group[key] = group.get(key, 0) | 0xFF << 8 * place
        self.moves = [(word, 8 * up, np.uint32(mask)) for (word, up), mask in moves.items()]
        self.signs = [
            (word, np.uint32(24 - 8 * byte), np.uint32(mask)) for (word, byte), mask in signs.items()
        ]

    def __call__(self, a: Value, c: Value) -> Value:
        words = (a, c)
        result: Value | None = None
        for word, up, mask in self.moves:
            part = words[word]
            if up:
                part = part << np.uint32(up) if up > 0 else part >> np.uint32(-up)
            if int(mask) != _survivors(up):
                part = part & mask
            result = part if result is None else result | part
        for word, to_top, mask in self.signs:
            part = ((words[word] << to_top).view(np.int32) >> np.int32(31)).view(np.uint32)
            part = part & mask
            result = part if result is None else result | part
        return ZERO if result is None else result


_plan = lru_cache(maxsize=256)(_Plan)


def _survivors(up: int) -> int:
    """The bits that a shift leaves."""
    return 0xFFFF_FFFF << up & 0xFFFF_FFFF if up >= 0 else 0xFFFF_FFFF >> -up


def _permuted(a: Value, selector: Value, c: Value) -> Value:
    shape = np.broadcast_shapes(a.shape, selector.shape, c.shape)
    both: Array = np.empty((*shape, 2), np.uint32)
    both[..., 0], both[..., 1] = a, c
    nibbles = np.broadcast_to((selector[..., None] >> _NIBBLES) & np.uint32(0xF), (*shape, 4))
    chosen = np.take_along_axis(both.view(np.uint8), (nibbles & np.uint32(7)).astype(np.intp), axis=-1)
    signs = (chosen.view(np.int8) >> np.int8(7)).view(np.uint8)
    return words_of(np.where(nibbles & np.uint32(8), signs, chosen))
