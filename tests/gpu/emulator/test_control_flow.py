"""Divergence and reconvergence, loops, switches, calls, and launches of every shape."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest

from cuasmrl.gpu.emulator import Fault
from cuasmrl.gpu.emulator import emulator as module
from tests.gpu.emulator.kernels import Kernels, Load, numbers

CHIPS = ("sm_75", "sm_80", "sm_90", "sm_120")
Ints = npt.NDArray[np.int32]


@pytest.fixture(scope="module", params=CHIPS)
def control(request: pytest.FixtureRequest, load: Load) -> Kernels:
    return load("control", request.param)


def int32(value: int) -> int:
    return (value + (1 << 31)) % (1 << 32) - (1 << 31)


def each(function: Callable[[int], int], count: int) -> Ints:
    return np.array([int32(function(i)) for i in range(count)], np.int32)


def collatz(x: int) -> int:
    steps = 0
    while x != 1:
        x, steps = 3 * x + 1 if x & 1 else x // 2, steps + 1
    return steps


def test_nested_branches(control: Kernels) -> None:
    x, before = numbers(96, 0, 16), numbers(96, seed=1)
    out = before.copy()

    def expected(i: int) -> int:
        v, r = int(x[i]), 0
        if v & 1:
            r = 1
            if v & 2:
                r += 3 * int(before[i])
                r = r ^ int(before[i ^ 1]) if v & 4 else r - 5
            else:
                r += 100
            r *= 7
        elif v & 8:
            r = v * v + int(before[i])
        else:
            r = sum(k * int(before[i]) for k in range(v & 3))
        return r + 1000

    control.run("nested", x, out, grid=3)
    assert out.tolist() == each(expected, 96).tolist()


def test_every_lane_has_its_own_trip_count(control: Kernels) -> None:
    x, out = numbers(70, 1, 1000), np.zeros(70, np.int32)
    control.run("trips", x, out, grid=2, block=35)
    assert out.tolist() == [collatz(int(v)) for v in x]


def test_break_and_continue(control: Kernels) -> None:
    n = 64
    x, before = numbers(n, 0, 100), numbers(n, 0, 10, seed=1)
    out = before.copy()

    def expected(i: int) -> int:
        total = 0
        for k in range(n):
            v = int(x[(i + k) % n])
            if v % 5 == 0:
                continue
            if v > 90:
                break
            for j in range(v):
                if j * j > v:
                    break
                if not (j + v) & 1:
                    total += j + int(before[i])
        return total

    control.run("jumps", x, out, np.int32(n), grid=2)
    assert out.tolist() == each(expected, n).tolist()


def test_jump_table(control: Kernels) -> None:
    x, before = numbers(128, 0, 11), numbers(128, 1, 1 << 20, seed=1)
    x[:11] = range(11)
    out = before.copy()

    def bits(v: int) -> int:
        return int(f"{v & 0xFFFF_FFFF:032b}"[::-1], 2)

    def expected(i: int) -> int:
        r = int(before[i])
        match int(x[i]):
            case 0:
                return r * 3 + 1
            case 1:
                return r ^ 0x55
            case 2:
                return r - int(before[i ^ 1])
            case 3:
                return r.bit_count() + 17
            case 4:
                return r + 17
            case 5:
                return r // 7
            case 6:
                for k in range(3):
                    r = r * 5 + int(before[i ^ k])
                return r
            case 7:
                return bits(r)
            case 8:
                return -8
        return -1

    # One warp a launch: lanes read their neighbours' numbers before anybody has written.
    for first in range(0, 128, 32):
        part = out[first : first + 32]
        control.run("switches", x[first : first + 32], part)
    assert out.tolist() == each(expected, 128).tolist()
    opcodes = {i.opcode for i in control.emulator("switches").listing.instructions}
    assert opcodes & {"BRX", "BRXU"}, "the compiler has not made a jump table"


def test_some_lanes_return_early(control: Kernels) -> None:
    x, out = numbers(64, -3, 14), np.full(64, 5, np.int32)
    control.run("leaves", x, out, grid=2)
    assert out.tolist() == [5 if v < 10 else 95 for v in x.tolist()]


def polynomial(x: int, n: int) -> int:
    r = 0
    for k in range(n):
        r = r + collatz(x + k) if (x + k) % 3 == 0 else r * x + k
    return r


def test_calls_from_divergent_code(control: Kernels) -> None:
    x, out = numbers(64, 1, 300), np.zeros(64, np.int32)

    def expected(i: int) -> int:
        v, r = int(x[i]), -1
        if i & 3:
            r = polynomial(v, v & 7)
        elif i & 4:
            r = 2 * collatz(v)
        return r + collatz(v + 1) if i & 16 else r

    control.run("calls", x, out, block=64)
    assert out.tolist() == each(expected, 64).tolist()
    assert "CALL" in {i.opcode for i in control.emulator("calls").listing.instructions}


def test_both_sides_of_a_branch_have_loops(control: Kernels) -> None:
    """Long enough that the lanes of one side are interrupted by those of the other."""
    x, table = numbers(32, 500, 700), numbers(32, seed=1)
    out = np.concatenate([table, np.zeros(32, np.int32)])

    def expected(i: int) -> int:
        v, r = int(x[i]), 0
        for k in range(v if v & 1 else 2 * v):
            t = int(table[(i + k) & 31])
            odd, even = r + k if t & 1 else r ^ v, int32(r - k if t & 2 else 2 * r + 1)
            r = odd if v & 1 else even
        return r

    control.run("sides", x, out)
    assert out[32:].tolist() == each(expected, 32).tolist()


def test_recursion_within_the_default_stack(control: Kernels) -> None:
    x, out = np.arange(32, dtype=np.int32) % 10, np.zeros(32, np.int32)
    control.run("recursive", x, out)
    fibonacci = [0, 1, 1, 2, 3, 5, 8, 13, 21, 34]
    assert out.tolist() == [fibonacci[v] for v in x]


def test_recursion_that_overflows_the_stack(control: Kernels) -> None:
    out = np.zeros(32, np.int32)
    with pytest.raises(Fault, match="local memory at .* out of bounds; 1024 bytes"):
        control.run("recursive", np.full(32, 100, np.int32), out)


@pytest.mark.parametrize(
    ("grid", "block"), [(1, 1), (3, 33), ((2, 3), (5, 7)), ((2, 2, 3), (4, 3, 5)), ((1, 5, 1), (1, 1, 64))]
)
def test_indices(control: Kernels, grid: int | tuple[int, ...], block: int | tuple[int, ...]) -> None:
    g = (*((grid,) if isinstance(grid, int) else grid), 1, 1)[:3]
    b = (*((block,) if isinstance(block, int) else block), 1, 1)[:3]
    out = np.full((int(np.prod(g)), int(np.prod(b)), 6), -1, np.int32)
    control.run("indices", out, grid=grid, block=block)
    threads = np.stack([a.ravel() for a in np.meshgrid(*map(np.arange, b[::-1]), indexing="ij")][::-1], 1)
    blocks = np.stack([a.ravel() for a in np.meshgrid(*map(np.arange, g[::-1]), indexing="ij")][::-1], 1)
    assert (out[:, :, :3] == threads).all()
    assert (out[:, :, 3:] == blocks[:, None]).all()


def test_slabs_do_not_show(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    control = load("control", "sm_80")
    x = numbers(50 * 70, 1, 1000)
    outs, runs = [], []
    for warps in (512, 7, 3, 1):
        monkeypatch.setattr(module, "_WARPS_IN_A_SLAB", warps)
        out = np.zeros_like(x)
        runs.append(control.run("trips", x, out, grid=50, block=70))
        outs.append(out)
    assert all((out == outs[0]).all() for out in outs)
    assert outs[0].tolist() == [collatz(int(v)) for v in x]
    assert len(set(runs)) == 1


def test_some_blocks_only(load: Load) -> None:
    x, out = numbers(10 * 32, 1, 1000), np.full(10 * 32, -1, np.int32)
    run = load("control", "sm_80").run("trips", x, out, grid=10, blocks=[7, 2])
    written = (out != -1).reshape(10, 32).all(axis=1)
    assert run.blocks == 2
    assert np.flatnonzero(written).tolist() == [2, 7]
