"""FSETP, FSET, DSETP, FCHK."""

from math import inf, nan

import numpy as np
import pytest

from cuasmrl.gpu.emulator.faults import UnsupportedError
from tests.gpu.emulator.execute import execute

# Relation: what it says of (1, 2), (2, 2), (3, 2), (NaN, 2).
TABLE = {
    "LT": (1, 0, 0, 0), "LE": (1, 1, 0, 0), "GT": (0, 0, 1, 0), "GE": (0, 1, 1, 0),
    "EQ": (0, 1, 0, 0), "NE": (1, 0, 1, 0), "LTU": (1, 0, 0, 1), "LEU": (1, 1, 0, 1),
    "GTU": (0, 0, 1, 1), "GEU": (0, 1, 1, 1), "EQU": (0, 1, 0, 1), "NEU": (1, 0, 1, 1),
    "NUM": (1, 1, 1, 0), "NAN": (0, 0, 0, 1), "T": (1, 1, 1, 1), "F": (0, 0, 0, 0),
}  # fmt: skip


@pytest.mark.parametrize("relation", TABLE)
def test_relations(relation: str) -> None:
    for a, expected in zip((1.0, 2.0, 3.0, nan), TABLE[relation], strict=True):
        after = execute(f"FSETP.{relation}.AND P0, P1, R2, R3, PT", R2=a, R3=2.0)
        assert (after.one("P0"), after.one("P1")) == (expected, 1 - expected)
        after = execute(f"DSETP.{relation}.AND P0, PT, R2, R4, PT", R2_double=a, R4_double=2.0)
        assert after.one("P0") == expected


def test_nan_on_either_side() -> None:
    assert execute("FSETP.NAN.AND P0, PT, R2, R3, PT", R2=1.0, R3=nan).one("P0") == 1
    assert execute("FSETP.GEU.AND P0, PT, R2, R3, PT", R2=1.0, R3=nan).one("P0") == 1
    assert execute("FSETP.EQ.AND P0, PT, R2, R3, PT", R2=-0.0, R3=0.0).one("P0") == 1


@pytest.mark.parametrize("combine", ["AND", "OR", "XOR"])
@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("found", [False, True])
def test_combination(combine: str, known: bool, found: bool) -> None:
    after = execute(f"FSETP.GT.{combine} P0, P1, R2, RZ, !P0", R2=1.0 if found else -1.0, P0=not known)
    function = {"AND": np.logical_and, "OR": np.logical_or, "XOR": np.logical_xor}[combine]
    assert (after.one("P0"), after.one("P1")) == (function(found, known), function(not found, known))


def test_ftz_and_magnitudes() -> None:
    assert execute("FSETP.GT.AND P0, PT, R2, RZ, PT", R2=2.0**-130).one("P0") == 1
    assert execute("FSETP.GT.FTZ.AND P0, PT, R2, RZ, PT", R2=2.0**-130).one("P0") == 0
    text = "FSETP.GEU.AND P0, PT, |R2|, 1.175494350822287508e-38, PT"
    assert execute(text, R2=-(2.0**-126)).one("P0") == 1
    assert execute(text, R2=-(2.0**-127)).one("P0") == 0


def test_lanes_differ_and_inactive_ones_keep_theirs() -> None:
    after = execute(
        "FSETP.GT.AND P0, PT, R2, RZ, PT",
        R2=[0x3F80_0000, 0] * 16,
        P0=True,
        active=[True] * 16 + [False] * 16,
    )
    assert list(after["P0"]) == [True, False] * 8 + [True] * 16


def test_to_a_register() -> None:
    assert execute("FSET.BF.GT.AND R1, R2, R3, PT", R2=1.0, R3=0.0).single("R1") == 1
    assert execute("FSET.GT.AND R1, R2, R3, PT", R2=1.0, R3=0.0).one("R1") == 0xFFFF_FFFF
    assert execute("FSET.BF.GT.FTZ.AND R1, R2, R3, PT", R2=1, R3=0).one("R1") == 0


def test_uniform() -> None:
    after = execute("UFSETP.GT.AND UP0, UPT, UR2, URZ, UPT", arch=120, UR2=1.0)
    assert after.one("UP0") == 1


@pytest.mark.parametrize(
    ("a", "b", "least", "most"),
    [
        (1.0, 2.0, 1, 0),
        (2.0, 1.0, 0, 1),
        (nan, 1.0, 0, 0),
        (1.0, nan, 1, 1),
        (-0.0, 0.0, 1, 0),
        (0.0, -0.0, 0, 1),
    ],
)
def test_choice_of_the_extremum_of_doubles(a: float, b: float, least: int, most: int) -> None:
    for name, expected in (("MIN", least), ("MAX", most)):
        after = execute(f"DSETP.{name}.AND P0, P1, R2, R4, PT", R2_double=a, R4_double=b)
        assert (after.one("P0"), after.one("P1")) == (expected, 0)
    assert execute("DSETP.MIN.AND P0, P1, R2, R4, PT", R2_double=nan, R4_double=nan).one("P1") == 1


def test_doubles_with_magnitude() -> None:
    after = execute("DSETP.GT.AND P0, PT, R2, |R4|, PT", R2_double=1.0, R4_double=-2.0)
    assert after.one("P0") == 0


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (1.0, 0.0),
        (1.0, inf),
        (nan, 1.0),
        (1.0, 2.0**127),
        (2.0**100, 2.0**-100),
        (2.0**-100, 2.0**100),
        (1e-40, 1.0),
    ],
)
def test_divisions_that_need_care(a: float, b: float) -> None:
    assert execute("FCHK P0, R2, R3", R2=a, R3=b).one("P0") == 1


def test_divisions_that_do_not_are_right_on_the_fast_path() -> None:
    """ptxas' division: a reciprocal, corrected once; the quotient, corrected once."""
    random = np.random.default_rng(1)
    for _ in range(40):
        a, b = (random.integers(0, 2**32, 32, np.uint32) for _ in range(2))
        slow = execute("FCHK P0, R0, R3", R0=a, R3=b)["P0"]
        r = execute("MUFU.RCP R2, R3", R3=b)["R2"]
        e = execute("FFMA R7, -R3, R2, 1", R3=b, R2=r)["R7"]
        r = execute("FFMA R7, R2, R7, R2", R2=r, R7=e)["R7"]
        q = execute("FFMA R2, R0, R7, RZ", R0=a, R7=r)["R2"]
        d = execute("FFMA R6, -R3, R2, R0", R3=b, R2=q, R0=a)["R6"]
        found = execute("FFMA R7, R7, R6, R2", R7=r, R6=d, R2=q)["R7"]
        with np.errstate(all="ignore"):
            expected = (a.view(np.float32) / b.view(np.float32)).view(np.uint32)
        assert (slow | (found == expected)).all()
        assert not slow.all()


@pytest.mark.parametrize("text", ["FSETP.GT P0, PT, R2, R3, PT", "FSETP.AND P0, PT, R2, R3, PT"])
def test_refusals(text: str) -> None:
    with pytest.raises(UnsupportedError):
        execute(text)
