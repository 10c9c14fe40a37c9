"""Atomic operations: threads take effect in their order, which is one of those a GPU may choose."""

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.emulator import Fault
from tests.gpu.emulator.kernels import Array, Kernels, Load, numbers

CHIPS = ("sm_75", "sm_80", "sm_90", "sm_120")
TYPES: dict[str, type] = {
    "s32": np.int32, "u32": np.uint32, "s64": np.int64, "u64": np.uint64, "f32": np.float32,
    "f64": np.float64,
}  # fmt: skip
OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda old, x: old + x,
    "sub": lambda old, x: old - x,
    "min": min,
    "max": max,
    "inc": lambda old, x: 0 if old >= x & 7 else old + 1,
    "dec": lambda old, x: x & 7 if old == 0 or old > x & 7 else old - 1,
    "and": lambda old, x: old & x,
    "or": lambda old, x: old | x,
    "xor": lambda old, x: old ^ x,
    "exch": lambda old, x: x,
    "cas": lambda old, x: x if old == x >> 4 else old,
    "one": lambda old, x: old + 1,
    "next": lambda old, x: old + 1,
}
KERNELS = [
    "add_s32", "add_u32", "add_u64", "add_f32", "add_f64", "sub_s32", "min_s32", "max_s32", "min_u32",
    "max_u32", "min_s64", "max_s64", "min_u64", "max_u64", "inc_u32", "dec_u32", "and_u32", "or_u32",
    "xor_u32", "and_u64", "or_u64", "xor_u64", "exch_u32", "exch_u64", "exch_f32", "cas_u32", "cas_u64",
    "one_u32", "next_u32",
]  # fmt: skip
LOOPS_THAT_END_EARLY = ("min_s64", "max_s64", "min_u64", "max_u64")
"""Loops of LDS and ATOMS.CAST: who would change nothing is done at once, out of the order of threads."""


@pytest.fixture(scope="module", params=CHIPS)
def atomics(request: pytest.FixtureRequest, load: Load) -> Kernels:
    return load("atomics", request.param)


def make(name: str, count: int) -> tuple[Array, Array, Array]:
    """Cells, operands and the cell each thread chooses."""
    operation, _, kind = name.partition("_")
    rng = np.random.default_rng(len(name))
    if kind.startswith("f"):
        cells, x = rng.integers(-50, 50, 8), rng.integers(-50, 50, count)
    elif operation == "cas":
        # Many find what they expect: x >> 4 is one of few.
        cells, x = rng.integers(0, 3, 8), rng.integers(0, 48, count)
    else:
        limits = np.iinfo(TYPES[kind])
        low, high = (limits.min, limits.max) if operation in ("min", "max", "and", "or", "xor") else (0, 1000)
        cells = rng.integers(low, high, 8, TYPES[kind])
        x = rng.integers(low, high, count, TYPES[kind])
    return cells.astype(TYPES[kind]), x.astype(TYPES[kind]), rng.integers(0, 8, count, np.int32)


def one_by_one(name: str, cells: Array, x: Array, index: Array) -> tuple[Array, Array]:
    """Final cells, and what each thread found."""
    operation = OPERATIONS[name.partition("_")[0]]
    now, old = [cell.item() for cell in cells], []
    for value, at in zip(x.tolist(), index.tolist(), strict=True):
        old.append(now[at])
        now[at] = operation(now[at], value)
    return np.array(now, cells.dtype), np.array(old, cells.dtype)


def assert_same_multiset(found: Array, wanted: Array, index: Array) -> None:
    for cell in range(8):
        assert sorted(found[index == cell].tolist()) == sorted(wanted[index == cell].tolist())


@pytest.mark.parametrize("name", KERNELS)
def test_global_memory(atomics: Kernels, name: str) -> None:
    before, x, index = make(name, 96)
    wanted, found_by = one_by_one(name, before, x, index)
    cells, old = before.copy(), np.zeros_like(x)
    atomics.run(f"global_{name}", cells, x, index, old, grid=2, block=48)
    assert cells.tolist() == wanted.tolist()
    assert_same_multiset(old, found_by, index)
    cells = before.copy()
    atomics.run(f"reduce_{name}", cells, x, index, grid=2, block=48)
    assert cells.tolist() == wanted.tolist()


@pytest.mark.parametrize("name", KERNELS)
def test_shared_memory(atomics: Kernels, name: str) -> None:
    before, x, index = make(name, 70)
    wanted, found_by = one_by_one(name, before, x, index)
    cells, old = before.copy(), np.zeros_like(x)
    atomics.run(f"shared_{name}", cells, x, index, old, block=70)
    assert cells.tolist() == wanted.tolist()
    if name not in LOOPS_THAT_END_EARLY:
        assert_same_multiset(old, found_by, index)


@pytest.mark.parametrize(
    ("start", "added", "total"), [(3e-38, -2.5e-38, 0.0), (0.9e-38, 0.9e-38, 0.0), (3e-38, 1e-39, 3e-38)]
)
def test_subnormal_numbers_are_flushed(load: Load, start: float, added: float, total: float) -> None:
    """PTX ISA, atom: addition of f32 in global memory takes and gives no subnormal numbers."""
    cells, x = np.full(8, start, np.float32), np.zeros(32, np.float32)
    x[0] = added
    load("atomics", "sm_80").run("reduce_add_f32", cells, x, np.zeros(32, np.int32))
    assert cells[0] == np.float32(total)


def test_sums_wrap_around(load: Load) -> None:
    kernels, index = load("atomics", "sm_80"), np.zeros(32, np.int32)
    small, x = np.full(8, 0xFFFF_FFF0, np.uint32), np.ones(32, np.uint32)
    kernels.run("reduce_add_u32", small, x, index)
    assert small[0] == 0x10
    large, y = np.full(8, (1 << 64) - 1, np.uint64), np.full(32, (1 << 53) + 1, np.uint64)
    kernels.run("reduce_add_u64", large, y, index)
    assert large[0] == (32 << 53) + 31


def test_out_of_bounds(load: Load) -> None:
    cells, x = np.zeros(8, np.int32), numbers(32)
    index = np.zeros(32, np.int32)
    index[7] = 8
    with pytest.raises(
        Fault, match=r"thread \(7, 0, 0\): 4 bytes .* written .* 4 bytes past the end of argument 0"
    ):
        load("atomics", "sm_80").run("reduce_add_s32", cells, x, index)
    assert not cells.any()


def test_read_only_cells(load: Load) -> None:
    cells = np.zeros(8, np.int32)
    cells.flags.writeable = False
    with pytest.raises(Fault, match="argument 0 is read-only"):
        load("atomics", "sm_80").run("reduce_add_s32", cells, numbers(32), np.zeros(32, np.int32))


def test_shared_cells_that_nobody_has_written(atomics: Kernels) -> None:
    with pytest.raises(Fault, match="never written"):
        atomics.run("uninitialised", np.zeros(32, np.int32))


def test_pairs_of_halves_are_refused(atomics: Kernels) -> None:
    with pytest.raises(CuasmrlError, match=r"cannot be emulated; .*ATOM\.E\.ADD\.F16x2.* at 0x"):
        atomics.run("half_pairs", np.zeros(8, np.uint32), np.zeros(32, np.uint32), np.zeros(32, np.int32))


def test_sums_of_pairs_of_halves(atomics: Kernels) -> None:
    """One after the other, each rounded to nearest even; subnormal numbers are kept."""
    rng = np.random.default_rng(1)
    x = rng.integers(0, 1 << 16, (32, 2)).astype(np.uint16).view(np.float16)
    x[:4, 0] = 2.0**-24, 2.0**-15, 65504, np.inf
    x = np.where(np.isnan(x), np.float16(1), x)
    index, cells = numbers(32, 0, 8), np.zeros(8, np.uint32)
    atomics.run("reduced_pairs", cells, x.view(np.uint32).reshape(-1), index)
    expected = np.zeros((8, 2), np.float16)
    with np.errstate(all="ignore"):
        for cell, pair in zip(index, x, strict=True):
            expected[cell] += pair
    found = cells.view(np.float16).reshape(8, 2)
    np.testing.assert_array_equal(found, expected)
    assert (cells.view(np.uint16)[np.isnan(found).reshape(-1)] == 0x7FFF).all()


@pytest.mark.parametrize("chip", ["sm_90", "sm_120"])
def test_sums_of_pairs_of_brain_floats(load: Load, chip: str) -> None:
    kind = ml_dtypes.bfloat16
    x = (np.random.default_rng(2).normal(size=(32, 2)) * 10.0 ** np.arange(-32, 32, 2)[:, None]).astype(kind)
    index, cells = numbers(32, 0, 8), np.zeros(8, np.uint32)
    load("atomics", chip).run("reduced_brains", cells, x.view(np.uint32).reshape(-1), index)
    expected = np.zeros((8, 2), kind)
    for cell, pair in zip(index, x, strict=True):
        expected[cell] = (expected[cell].astype(np.float64) + pair.astype(np.float64)).astype(kind)
    assert (cells.view(kind).reshape(8, 2) == expected).all()
