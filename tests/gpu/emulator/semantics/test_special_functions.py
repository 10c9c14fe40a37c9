"""MUFU: a correctly rounded stand-in for the tables of the hardware."""

from math import copysign, inf, isnan, nan, tanh

import numpy as np
import pytest

from cuasmrl.gpu.emulator.faults import UnsupportedError
from tests.gpu.emulator.execute import execute

TINY = 2.0**-130


@pytest.mark.parametrize(
    ("name", "operand", "expected"),
    [("RCP", 4.0, 0.25), ("RCP", 0.0, inf), ("RCP", -0.0, -inf), ("RCP", -inf, -0.0), ("RCP", -TINY, -inf),
     ("RCP", 2.0**127, 0.0), ("RCP", nan, nan), ("RSQ", 4.0, 0.5), ("RSQ", -0.0, -inf), ("RSQ", -1.0, nan),
     ("RSQ", TINY, inf), ("RSQ", inf, 0.0), ("SQRT", 9.0, 3.0), ("SQRT", -0.0, -0.0), ("SQRT", -1.0, nan),
     ("SQRT", -TINY, -0.0), ("EX2", 3.0, 8.0), ("EX2", -inf, 0.0), ("EX2", TINY, 1.0), ("EX2", 128.0, inf),
     ("EX2", -126.0, 2.0**-126), ("EX2", -127.0, 0.0), ("LG2", 8.0, 3.0), ("LG2", 0.0, -inf),
     ("LG2", TINY, -inf), ("LG2", -1.0, nan), ("LG2", 1.0, 0.0), ("SIN", 0.25, 1.0), ("SIN", -0.25, -1.0),
     ("SIN", 0.5, 0.0), ("SIN", -0.0, -0.0), ("SIN", inf, nan), ("SIN", 1000.75, -1.0), ("COS", 0.0, 1.0),
     ("COS", 0.25, 0.0), ("COS", -0.5, -1.0), ("COS", 7.0, 1.0), ("TANH", inf, 1.0), ("TANH", TINY, TINY),
     ("TANH", 1.0, tanh(1.0))],
)  # fmt: skip
def test_values(name: str, operand: float, expected: float) -> None:
    after = execute(f"MUFU.{name} R1, R2", R2=operand)
    if isnan(expected):
        assert after.one("R1") == 0x7FFF_FFFF
    else:
        found = after.single("R1")
        assert found == float(np.float32(expected))
        assert copysign(1, found) == copysign(1, expected)


def test_operand_signs_and_uniform_operands() -> None:
    assert execute("MUFU.RCP R1, -|R2|", R2=4.0).single("R1") == -0.25
    assert execute("MUFU.RCP R1, UR4", arch=120, UR4=2.0).single("R1") == 0.5


@pytest.mark.parametrize(
    ("name", "operand", "expected"),
    [("RCP64H", 2.0, 0.5), ("RCP64H", 0.0, inf), ("RCP64H", -inf, -0.0), ("RCP64H", 2.0**-1030, inf),
     ("RSQ64H", 4.0, 0.5), ("RSQ64H", -0.0, -inf)],
)  # fmt: skip
def test_upper_words_of_doubles(name: str, operand: float, expected: float) -> None:
    after = execute(f"MUFU.{name} R1, R3", R2_double=operand)
    assert after.one("R1") == int(np.float64(expected).view(np.uint64)) >> 32


def test_reciprocal_of_a_double_is_good_enough_to_refine() -> None:
    upper = execute("MUFU.RCP64H R5, R3", R2_double=3.0).one("R5")
    estimate = float(np.uint64(upper << 32).view(np.float64))
    assert abs(3 * estimate - 1) < 2.0**-20
    assert execute("MUFU.RCP64H R5, R3", R2_double=nan).one("R5") == 0xFFF8_0000


def test_steps_of_an_integer_division() -> None:
    """I2F.RP, MUFU.RCP, minus 2 units, F2I: never above 2**32 / d, and close below."""
    divisors = [1, 2, 3, 7, 127, 128, 1000, 65537, 2**24 + 1, 2**31 - 1, 2**31, 2**32 - 1]
    divisors += range(100, 120)
    single = execute("I2F.U32.RP R0, R2", R2=divisors)["R0"]
    reciprocal = execute("MUFU.RCP R0, R0", R0=single)["R0"]
    scaled = reciprocal + np.uint32(0x0FFF_FFFE)
    estimate = execute("F2I.FTZ.U32.TRUNC.NTZ R1, R0", R0=scaled)["R1"]
    for divisor, found in zip(divisors, estimate, strict=True):
        assert int(found) * divisor <= 2**32
        assert int(found) >= 2**32 // divisor * (1 - 2.0**-21) - 1


@pytest.mark.parametrize("text", ["MUFU.EX2.F16 R1, R2", "MUFU R1, R2", "MUFU.TANH.BF16 R1, R2.H1"])
def test_refusals(text: str) -> None:
    with pytest.raises(UnsupportedError):
        execute(text)


def test_reciprocals_of_a_double_in_the_instruction() -> None:
    """The immediate is the upper word of the double that nvdisasm prints."""
    after = execute("MUFU.RCP64H R3, -0.83984375")
    expected = np.float64(1 / -0.83984375).view(np.uint64) >> np.uint64(32)
    assert abs(int(after.one("R3")) - int(expected)) <= 1
