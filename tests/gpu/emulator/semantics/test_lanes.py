"""Votes, shuffles, matches and reductions over the lanes of a warp."""

import functools
import math
import operator
from math import inf, nan
from typing import Any

import numpy as np
import pytest

from cuasmrl.gpu.emulator.faults import UnsupportedError
from cuasmrl.gpu.emulator.semantics import lanes
from tests.gpu.emulator.execute import execute

M = 0xFFFF_FFFF
LANES = range(32)
VALUES = [(lane * 0x9E37_79B9) & M for lane in LANES]
ODD = [lane % 2 == 1 for lane in LANES]
UPPER = [lane >= 16 for lane in LANES]


def bits(lanes_in: list[bool]) -> int:
    return sum(1 << lane for lane, inside in enumerate(lanes_in) if inside)


# votes


def test_ballot() -> None:
    assert execute("VOTE.ANY R0, PT, P0", P0=ODD).one("R0") == 0xAAAA_AAAA
    assert execute("VOTE.ANY R0, PT, !P0", P0=ODD).one("R0") == 0x5555_5555
    assert execute("VOTE.ANY R0, PT, PT").one("R0") == M
    assert execute("VOTEU.ANY UR0, UPT, P0", P0=ODD).one("UR0") == 0xAAAA_AAAA


def test_only_active_lanes_vote() -> None:
    after = execute("VOTE.ANY R0, P1, P0", active=UPPER, P0=ODD, R0=5)
    assert after["R0"].tolist() == [5] * 16 + [0xAAAA_0000] * 16
    assert after["P1"].tolist() == UPPER
    assert execute("VOTE.ANY R0, PT, PT", active=ODD)["R0"].tolist()[1] == 0xAAAA_AAAA


@pytest.mark.parametrize(
    ("votes", "active", "anyone", "everyone", "equally"),
    [
        (ODD, None, 1, 0, 0),
        (ODD, ODD, 1, 1, 1),
        (UPPER, [not upper for upper in UPPER], 0, 0, 1),
        ([True] * 32, None, 1, 1, 1),
        ([False] * 32, None, 0, 0, 1),
    ],
)
def test_votes(
    votes: list[bool], active: list[bool] | None, anyone: int, everyone: int, equally: int
) -> None:
    lane = active.index(True) if active else 0
    for name, expected in (("ANY", anyone), ("ALL", everyone), ("EQ", equally)):
        after = execute(f"VOTE.{name} P1, P0", active=active, P0=votes)
        assert after["P1"][lane] == expected, name
        after = execute(f"VOTEU.{name} UP1, P0", active=active, P0=votes)
        assert after.one("UP1") == expected, name


def test_a_vote_is_one_number_per_warp() -> None:
    assert execute("VOTE.ANY R0, PT, P0", P0=ODD).registers.general[0].shape == (1, 1, 1)


# shuffles


def origin(mode: str, lane: int, distance: int, clamp: int) -> tuple[int, bool]:
    """As the PTX manual writes it."""
    segment, limit = clamp >> 8 & 0x1F, clamp & 0x1F
    last = lane & segment | limit & ~segment
    match mode:
        case "UP":
            source = lane - distance
            return (source, True) if source >= last else (lane, False)
        case "DOWN":
            source = lane + distance
        case "BFLY":
            source = lane ^ distance
        case _:
            source = lane & segment | distance & ~segment
    return (source, True) if source <= last else (lane, False)


@pytest.mark.parametrize("mode", ["IDX", "UP", "DOWN", "BFLY"])
@pytest.mark.parametrize("width", [1, 2, 4, 8, 16, 32])
def test_shuffles(mode: str, width: int) -> None:
    segment = 32 - width << 8
    clamp = segment if mode == "UP" else segment | 0x1F
    for distance in (0, 1, 2, 3, 7, 16, 31):
        found = [origin(mode, lane, distance, clamp) for lane in LANES]
        known = execute(f"SHFL.{mode} P0, R0, R1, {distance:#x}, {clamp:#x}", R1=VALUES)
        in_registers = execute(f"SHFL.{mode} P0, R0, R1, R2, R3", R1=VALUES, R2=distance + 32, R3=clamp)
        for after in (known, in_registers):
            assert after["R0"].tolist() == [VALUES[source] for source, _ in found]
            assert after["P0"].tolist() == [inside for _, inside in found]


def test_shuffles_by_hand() -> None:
    names = list(LANES)
    assert execute("SHFL.BFLY PT, R0, R1, 0x1, 0x1f", R1=names)["R0"].tolist()[:4] == [1, 0, 3, 2]
    assert execute("SHFL.UP PT, R0, R1, 0x1, RZ", R1=names)["R0"].tolist()[:3] == [0, 0, 1]
    down = execute("SHFL.DOWN P0, R0, R1, 0x1, 0x1f", R1=names)
    assert down["R0"].tolist()[-2:] == [31, 31]
    assert down["P0"].tolist() == [True] * 31 + [False]


def test_each_lane_asks_another() -> None:
    asked = [lane * 7 % 32 for lane in LANES]
    after = execute("SHFL.IDX PT, R0, R1, R2, 0x1f", R1=VALUES, R2=asked)
    assert after["R0"].tolist() == [VALUES[lane] for lane in asked]


def test_shuffles_among_some_lanes() -> None:
    after = execute("SHFL.BFLY PT, R0, R1, 0x1, 0x1f", active=ODD, R0=5, R1=VALUES)
    assert after["R0"].tolist() == [VALUES[lane ^ 1] if ODD[lane] else 5 for lane in LANES]


def test_a_value_that_all_share_stays_small() -> None:
    after = execute("SHFL.BFLY PT, R0, R1, 0x1, 0x1f", R1=9)
    assert (after.one("R0"), after.registers.general[0].shape) == (9, (1, 1, 1))


def test_lanes_of_many_warps() -> None:
    value = np.arange(2 * 3 * 32, dtype=np.uint32).reshape(2, 3, 32)
    index = np.arange(31, -1, -1).reshape(1, 1, 32)
    assert (lanes._taken(value, index) == value[:, :, ::-1]).all()
    turned = np.broadcast_to(index, (1, 3, 32)).copy()
    assert (lanes._taken(value[:1], turned) == value[:1, :, ::-1]).all()
    assert (lanes._taken(value[:, :1], turned) == value[:, :1, ::-1]).all()


# the first lane


def test_to_a_uniform_register() -> None:
    assert execute("R2UR UR0, R1", R1=VALUES).one("UR0") == VALUES[0]
    assert execute("R2UR UR0, R1", active=UPPER, R1=VALUES).one("UR0") == VALUES[16]
    assert execute("R2UR UR0, R1", active=UPPER, R1=7).one("UR0") == 7


def test_election() -> None:
    after = execute("ELECT P0, UR0, PT", arch=90)
    assert (after.one("UR0"), bits(after["P0"].tolist())) == (0, 1)
    after = execute("ELECT P0, URZ, PT", arch=90, active=UPPER)
    assert bits(after["P0"].tolist()) == 1 << 16


# matches


def test_who_holds_the_same() -> None:
    after = execute("MATCH.ANY R0, R1", R1=[lane % 3 for lane in LANES])
    assert after["R0"].tolist() == [bits([other % 3 == lane % 3 for other in LANES]) for lane in LANES]
    after = execute("MATCH.ANY R0, R1", active=UPPER, R1=4)
    assert after["R0"].tolist() == [0] * 16 + [0xFFFF_0000] * 16


def test_who_holds_the_same_pair() -> None:
    after = execute("MATCH.ANY.U64 R0, R2", R2=1, R3=[int(odd) for odd in ODD])
    assert after["R0"].tolist() == [0xAAAA_AAAA if odd else 0x5555_5555 for odd in ODD]


def test_do_all_hold_the_same() -> None:
    after = execute("MATCH.ALL P0, R0, R1", R1=[int(odd) for odd in ODD])
    assert (after.one("R0"), after.one("P0")) == (0, 0)
    after = execute("MATCH.ALL P0, R0, R1", active=ODD, R1=[int(odd) for odd in ODD])
    assert after["R0"].tolist() == [0xAAAA_AAAA if odd else 0 for odd in ODD]
    assert after["P0"].tolist() == ODD
    after = execute("MATCH.ALL.U64 P0, R0, R2", R2=5, R3=6)
    assert (after.one("R0"), after.one("P0")) == (M, 1)


# reductions


def test_reductions() -> None:
    signed = [value - (1 << 32) if value >> 31 else value for value in VALUES]
    expected = {
        "REDUX.SUM": sum(VALUES), "REDUX.SUM.S32": sum(VALUES), "REDUX.MIN": min(VALUES),
        "REDUX.MAX": max(VALUES), "REDUX.MIN.S32": min(signed), "REDUX.MAX.S32": max(signed),
        "REDUX": functools.reduce(operator.and_, VALUES), "REDUX.OR": functools.reduce(operator.or_, VALUES),
        "REDUX.XOR": functools.reduce(operator.xor, VALUES), "CREDUX.MIN.S32": min(signed),
    }  # fmt: skip
    for mnemonic, value in expected.items():
        assert execute(f"{mnemonic} UR0, R1", R1=VALUES).one("UR0") == value & M, mnemonic


def test_reductions_of_active_lanes() -> None:
    assert execute("REDUX.SUM UR0, R1", active=UPPER, R1=3).one("UR0") == 48
    assert execute("REDUX.SUM UR0, R1", R1=3).one("UR0") == 96
    assert execute("REDUX.XOR UR0, R1", R1=3).one("UR0") == 0
    assert execute("REDUX UR0, R1", active=ODD, R1=[3 if odd else 0 for odd in ODD]).one("UR0") == 3
    assert execute("REDUX.MIN.S32 UR0, R1", active=UPPER, R1=[-lane for lane in LANES]).one("UR0") == -31 & M
    assert execute("REDUX.MAX.S32 UR0, R1", active=UPPER, R1=[-lane for lane in LANES]).one("UR0") == -16 & M


def test_extrema_of_floats() -> None:
    """redux.sync for floats: a NaN is left out unless asked for, and zeros have an order."""
    mixed = np.array([-3.0, 2.5, -0.0, 0.0] * 8, np.float32)

    def found(form: str, values: Any, **more: Any) -> float:
        return execute(f"CREDUX.{form} UR0, R1", arch=100, R1=values, **more).single("UR0")

    assert (found("MAX.F32", mixed), found("MIN.F32", mixed)) == (2.5, -3.0)
    assert (found("MAXABS.F32", mixed), found("MINABS.F32", mixed)) == (3.0, 0.0)
    zeros = np.array([-0.0, 0.0] * 16, np.float32)
    assert math.copysign(1, found("MAX.F32", zeros)) == 1
    assert math.copysign(1, found("MIN.F32", zeros)) == -1
    holes = np.array([nan, -1.0, -inf, -7.0] * 8, np.float32)
    assert (found("MAX.F32", holes), found("MIN.F32", holes)) == (-1.0, -inf)
    nothing = execute("CREDUX.MAX.F32 UR0, R1", arch=100, R1=np.full(32, -nan, np.float32))
    assert nothing.one("UR0") == 0x7FFF_FFFF
    for form in ("MAX.F32.NAN", "MINABS.F32.NAN"):
        assert execute(f"CREDUX.{form} UR0, R1", arch=100, R1=holes).one("UR0") == 0x7FFF_FFFF
        assert not math.isnan(found(form, holes, active=[lane % 4 == 1 for lane in range(32)]))


@pytest.mark.parametrize(
    "text",
    [
        "VOTE R0, PT, P0",
        "VOTE.EQ R0, PT, P0",
        "SHFL PT, R0, R1, 0x1, 0x1f",
        "R2UR.OR PT, UR0, R1",
        "R2UR P0, UR0, R1",
        "ELECT P0, UR0, P1",
        "MATCH R0, R1",
        "REDUX.MAX.F32 UR0, R1",
        "CREDUX.OR UR0, R1",
        "CREDUX.SUM.F32 UR0, R1",
    ],
)
def test_refusals(text: str) -> None:
    with pytest.raises(UnsupportedError):
        execute(text, arch=100)
