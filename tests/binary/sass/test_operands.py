"""Operands as nvdisasm prints them, the odd ones included."""

import math

import pytest

from cuasmrl.binary.sass import File, Kind, Register
from cuasmrl.binary.sass.operands import parse_operand, split_operands


@pytest.mark.parametrize(
    ("text", "register", "negated", "absolute", "inverted"),
    [
        ("R12", Register(File.R, 12), False, False, False),
        ("-R12.reuse", Register(File.R, 12, ("reuse",)), True, False, False),
        ("|R6|.reuse", Register(File.R, 6, ("reuse",)), False, True, False),
        ("-|R6|", Register(File.R, 6), True, True, False),
        ("~R3", Register(File.R, 3), False, False, True),
        ("R4.H1_H1", Register(File.R, 4, ("H1_H1",)), False, False, False),
        ("R0.reuse.ROW", Register(File.R, 0, ("reuse", "ROW")), False, False, False),
        ("-R4.F32x2.HI_LO", Register(File.R, 4, ("F32x2", "HI_LO")), True, False, False),
        ("RZ", Register(File.R, None), False, False, False),
        ("UR63", Register(File.UR, 63), False, False, False),
        ("URZ", Register(File.UR, None), False, False, False),
        ("!P6", Register(File.P, 6), False, False, True),
        ("PT", Register(File.P, None), False, False, False),
        ("!UPT", Register(File.UP, None), False, False, True),
        ("B15", Register(File.B, 15), False, False, False),
    ],
)
def test_registers(text: str, register: Register, negated: bool, absolute: bool, inverted: bool) -> None:
    operand = parse_operand(text)
    assert operand.kind is Kind.REGISTER
    assert operand.register == register
    assert (operand.negated, operand.absolute, operand.inverted) == (negated, absolute, inverted)
    assert operand.reused == (".reuse" in text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0x10", 16),
        ("-0x10", -16),
        ("0", 0),
        ("1", 1),
        ("1.1920928955078125e-07", 1.1920928955078125e-07),
        ("-0.5", -0.5),
        ("+INF", math.inf),
        ("-INF", -math.inf),
        ("1.875 ", 1.875),
    ],
)
def test_numbers(text: str, value: float) -> None:
    operand = parse_operand(text)
    assert operand.kind is Kind.IMMEDIATE
    assert operand.value == value


def test_not_a_number() -> None:
    for text in ("+QNAN", "-QNAN", "+SNAN"):
        value = parse_operand(text).value
        assert isinstance(value, float)
        assert math.isnan(value)


@pytest.mark.parametrize(
    ("text", "base", "uniform", "descriptor", "offset"),
    [
        ("[R2]", "R2", None, None, 0),
        ("[RZ]", "RZ", None, None, 0),
        ("[UR4]", None, "UR4", None, 0),
        ("[0x40]", None, None, None, 0x40),
        ("[R2.64+0x10]", "R2.64", None, None, 16),
        ("[R2.64+-0x10]", "R2.64", None, None, -16),
        ("[R2.64+UR4+-0x80]", "R2.64", "UR4", None, -0x80),
        ("[R2.X16+UR4+0x8]", "R2.X16", "UR4", None, 8),
        ("[R3+URZ]", "R3", "URZ", None, 0),
        ("desc[UR6][R2.64+0x4]", "R2.64", None, "UR6", 4),
        ("desc[UR4]", None, "UR4", None, 0),
        ("gdesc[UR8].tnspB", None, "UR8", None, 0),
        ("tmem[UR8+0x8]", None, "UR8", None, 8),
    ],
)
def test_addresses(
    text: str, base: str | None, uniform: str | None, descriptor: str | None, offset: int
) -> None:
    operand = parse_operand(text)
    assert operand.kind is Kind.ADDRESS
    found = [_name(r) for r in (operand.register, operand.uniform, operand.descriptor)]
    assert found == [base, uniform, descriptor]
    assert operand.offset == offset
    assert operand.space == text.partition("[")[0]


@pytest.mark.parametrize(
    ("text", "bank", "base", "uniform", "descriptor", "offset"),
    [
        ("c[0x0][0x160]", 0, None, None, None, 0x160),
        ("-c[0x3][R4+0x10]", 3, "R4", None, None, 0x10),
        ("c[0x0][UR4]", 0, None, "UR4", None, 0),
        ("cx[UR4][0x10]", None, None, None, "UR4", 0x10),
        ("|c[0x0][0x170]|", 0, None, None, None, 0x170),
    ],
)
def test_constants(
    text: str, bank: int | None, base: str | None, uniform: str | None, descriptor: str | None, offset: int
) -> None:
    operand = parse_operand(text)
    assert operand.kind is Kind.CONSTANT
    found = [_name(r) for r in (operand.register, operand.uniform, operand.descriptor)]
    assert (operand.bank, *found, operand.offset) == (bank, base, uniform, descriptor, offset)
    assert operand.negated == text.startswith("-")
    assert operand.absolute == ("|" in text)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("SR_TID.X", Kind.SPECIAL),
        ("SRZ", Kind.SPECIAL),
        ("SR_CLOCKLO", Kind.SPECIAL),
        ("SB0", Kind.SCOREBOARD),
        ("{5,4,3}", Kind.BARRIER_SET),
        ("PR", Kind.ALL_PREDICATES),
        ("UPR", Kind.ALL_PREDICATES),
        ("`(.L_x_3)", Kind.LABEL),
        ("`($__internal_0_$__cuda_sm20_div_s64)", Kind.LABEL),
        ("gsb0", Kind.OTHER),
        ("Rpc.HI", Kind.OTHER),
        ("2D", Kind.OTHER),
        ("[R2+R4]", Kind.OTHER),
        ("[UR2+UR4]", Kind.OTHER),
        ("[R2+0x10+0x20]", Kind.OTHER),
        ("[R2*4]", Kind.OTHER),
        ("desc[R?][R2.64]", Kind.OTHER),
        ("c[0x0][0x1][R2]", Kind.OTHER),
        ("[R2", Kind.OTHER),
    ],
)
def test_everything_else(text: str, kind: Kind) -> None:
    assert parse_operand(text).kind is kind
    assert parse_operand(text).text == text


def test_commas_inside_brackets_and_braces_do_not_split() -> None:
    assert split_operands("SB0, 0x2, {4,3}") == ["SB0", "0x2", "{4,3}"]
    assert split_operands("R0, c[0x0][0x160], `(f(int, int))") == ["R0", "c[0x0][0x160]", "`(f(int, int))"]
    assert split_operands("") == []


def _name(register: Register | None) -> str | None:
    if register is None:
        return None
    constant = "T" if register.file in (File.P, File.UP) else "Z"
    number = constant if register.index is None else str(register.index)
    return ".".join([f"{register.file}{number}", *register.suffixes])
