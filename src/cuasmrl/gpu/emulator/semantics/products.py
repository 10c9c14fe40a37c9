"""Integer products: multiply-add in all its widths, dot products of bytes."""

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from cuasmrl.gpu.emulator.faults import UnsupportedError
from cuasmrl.gpu.emulator.forms import Form, Read, Step
from cuasmrl.gpu.emulator.semantics.carries import (
    Terms,
    complement,
    one_and_two,
    terms,
    total,
    total_with_carries,
)
from cuasmrl.gpu.emulator.semantics.integer import sum_up
from cuasmrl.gpu.emulator.semantics.packing import parts_of
from cuasmrl.gpu.emulator.semantics.registry import executes
from cuasmrl.gpu.emulator.values import Value, high, low
from cuasmrl.gpu.emulator.warps import Warps

Pair: TypeAlias = tuple[Value, Value]
"""The low and the high word of 64 bits."""


@executes("IMAD", "UIMAD")
def multiply_add(form: Form) -> Step:
    if any(form.operand(k).negated or form.operand(k).inverted for k in (0, 1)):
        raise UnsupportedError("negated factor")
    extended = form.has("X")
    wide, upper = form.has("WIDE"), form.has("HI")
    if wide or upper:
        return _multiply_add_long(form, extended, wide)
    # These names only tell what ptxas uses the multiplication for.
    form.ignore("MOV", "SHL", "IADD", "U32")
    if form.result_predicate(0) is not None:
        raise UnsupportedError("carry out of 32 bits")
    parts = terms(form, [(2, form.word(2))], extended, 3)
    product = _low_product(form)
    return sum_up(form, Terms((*product, *parts.added), parts.subtracted, parts.carries))


def _low_product(form: Form) -> tuple[Read, ...]:
    a, b = form.word(0), form.word(1)
    if form.known(0) == 0 or form.known(1) == 0:
        return ()
    if form.known(1) == 1:
        return (a,)
    return (lambda w: a(w) * b(w),)


def _multiply_add_long(form: Form, extended: bool, wide: bool) -> Step:
    """a * b + c with 64 bits in c: all of it (.WIDE) or the upper word (.HI), and the carry out of them."""
    signed = not form.has("U32")
    product = _product(form, signed)
    addend = form.operand(2)
    if form.known(2) is not None and form.known(2) != 0:
        # Sign-extended or not? ptxas does not use it.
        raise UnsupportedError("a number as addend of 64 bits")
    inverted = addend.negated or addend.inverted
    low_part = terms(form, [(2, form.word(2))], extended, 3)
    high_word = () if form.known(2) == 0 else (form.word(2, 1),)
    high_part = Terms(tuple(complement(read) for read in high_word) if inverted else high_word, (), ())
    carry_out = form.result_predicate(0)
    if carry_out is not None and signed:
        raise UnsupportedError("carry out of a signed product")
    writes = form.result_words(2) if wide else [None, form.result()]

    def step(w: Warps) -> None:
        lower, upper = product(w)
        if low_part.added or low_part.subtracted or low_part.carries:
            added, subtracted, carries = low_part.read(w)
            lower, carries = total_with_carries([lower, *added], subtracted, carries)
            added, subtracted, _ = high_part.read(w)
        else:
            added, subtracted, carries = [], [], []
        if carry_out is None:
            upper = total([upper, *added], subtracted, carries)
        else:
            upper, carries = total_with_carries([upper, *added], subtracted, carries)
            carry_out(w, one_and_two(carries)[0])
        for write, word in zip(writes, (lower, upper), strict=True):
            if write is not None:
                write(w, word)

    return step


def _product(form: Form, signed: bool) -> Callable[[Warps], Pair]:
    """The two words of a * b."""
    a, b = form.word(0), form.word(1)
    known = form.known(1)
    if known is not None and known.bit_count() == 1 and not (signed and known >> 31):
        return _power_of_two(a, known.bit_length() - 1, signed)
    if signed:

        def signed_product(w: Warps) -> Pair:
            product = np.multiply(a(w).view(np.int32), b(w).view(np.int32), dtype=np.int64).view(np.uint64)
            return low(product), high(product)

        return signed_product

    def product(w: Warps) -> Pair:
        product = np.multiply(a(w), b(w), dtype=np.uint64)
        return low(product), high(product)

    return product


def _power_of_two(a: Read, n: int, signed: bool) -> Callable[[Warps], Pair]:
    """Most products are addresses: an index times the size of an element."""
    left, right, right_signed = np.uint32(n), np.uint32(32 - n), np.int32(min(32 - n, 31))

    def signed_product(w: Warps) -> Pair:
        value = a(w)
        return value << left, (value.view(np.int32) >> right_signed).view(np.uint32)

    def product(w: Warps) -> Pair:
        value = a(w)
        return value << left, value >> right

    return signed_product if signed else product


_BYTES: dict[str, Any] = {"S8": np.int8, "U8": np.uint8, "S16": np.int16, "U16": np.uint16}


@executes("IDP")
def dot_product(form: Form) -> Step:
    """Four products of bytes, or two of a half word with a byte of the lower or upper half, added to c."""
    four = form.choose("4A", "2A") == "4A"
    upper = not four and form.choose("LO", "HI") == "HI"
    types = [_BYTES[m] for m in form.modifiers if m in _BYTES]
    form.ignore(*_BYTES)
    if (
        len(types) != 2
        or np.dtype(types[0]).itemsize != (1 if four else 2)
        or np.dtype(types[1]).itemsize != 1
    ):
        raise UnsupportedError("types of the factors")

    def function(a: Value, b: Value, c: Value) -> Value:
        x, y = parts_of(a, types[0]), parts_of(b, types[1])
        if not four:
            y = y[..., 2:] if upper else y[..., :2]
        products = x.astype(np.int32) * y.astype(np.int32)
        result: Value = products.sum(axis=-1, dtype=np.int32).view(np.uint32) + c
        return result

    return form.compute(function, form.integer(0), form.integer(1), form.integer(2))
