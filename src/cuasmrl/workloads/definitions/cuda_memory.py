"""CUDA kernels dominated by memory and by exchange between threads."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from cuasmrl.workloads.bounds import EPS32, real
from cuasmrl.workloads.definitions.common import ceil_div, cuda_file, parameters, unwritten
from cuasmrl.workloads.model import Array, Config, Expected, Grid, Inputs, Sizes, Workload


def floats(rng: np.random.Generator, *shape: int) -> Array:
    return rng.standard_normal(shape, dtype=np.float32)


def reduction_buffers(sizes: Sizes, rng: np.random.Generator) -> dict[str, Array]:
    # Small whole numbers: up to 2**24 their sums are exact in any order, so that one lost element shows.
    x = rng.integers(-8, 9, sizes["n"]).astype(np.float32)
    return {"x": x, "out": np.zeros(1, dtype=np.float32)}


def reduction_expect(inputs: Inputs, sizes: Sizes) -> Mapping[str, Expected]:
    x = real(inputs["x"])
    magnitude = float(np.abs(x).sum())
    if magnitude < 2**24:
        return {"out": Expected(x.sum(keepdims=True), 0.0, "whole numbers below 2**24 add exactly")}
    bound = sizes["n"] * EPS32 * magnitude
    return {"out": Expected(x.sum(keepdims=True), bound, "n float32 additions in any order")}


def reduction_grid(sizes: Sizes, config: Config) -> Grid:
    return min(ceil_div(sizes["n"], 4 * int(config.constants["THREADS"])), 432), 1, 1


REDUCTION = Workload(
    name="reduction",
    title="Sum of a vector with warp shuffles and one atomic per block, fp32",
    language="cuda",
    published=False,
    source=cuda_file("reduction"),
    symbol="reduction",
    parameters=parameters("x: *fp32, out: *fp32, n: i32"),
    configs=(
        Config("t256", {"THREADS": 256}, num_warps=8, block=(256, 1, 1)),
        Config("t128", {"THREADS": 128}, num_warps=4, block=(128, 1, 1)),
    ),
    sizes={"n": 1 << 20},
    shapes=({"n": 4096}, {"n": 1000}, {"n": 7}),
    large={"n": 1 << 28},
    scalars=lambda sizes: {"n": sizes["n"]},
    buffers=reduction_buffers,
    expect=reduction_expect,
    blocks=reduction_grid,
)


def transpose_grid(sizes: Sizes, config: Config) -> Grid:
    tile = int(config.constants["TILE"])
    return ceil_div(sizes["n"], tile), ceil_div(sizes["m"], tile), 1


TRANSPOSE = Workload(
    name="transpose",
    title="Transpose of a matrix through padded shared memory, fp32",
    language="cuda",
    published=False,
    source=cuda_file("transpose"),
    symbol="transpose",
    parameters=parameters("x: *fp32, out: *fp32, m: i32, n: i32"),
    configs=(
        Config("t32x8", {"TILE": 32, "ROWS": 8}, num_warps=8, block=(32, 8, 1)),
        Config("t32x4", {"TILE": 32, "ROWS": 4}, num_warps=4, block=(32, 4, 1)),
    ),
    sizes={"m": 1024, "n": 1024},
    shapes=({"m": 64, "n": 64}, {"m": 33, "n": 70}, {"m": 1, "n": 50}),
    large={"m": 32768, "n": 8192},
    scalars=lambda sizes: {"m": sizes["m"], "n": sizes["n"]},
    buffers=lambda sizes, rng: {
        "x": floats(rng, sizes["m"], sizes["n"]),
        "out": unwritten((sizes["n"], sizes["m"]), np.float32),
    },
    expect=lambda inputs, sizes: {"out": Expected(real(inputs["x"]).T, 0.0, "values are only moved")},
    blocks=transpose_grid,
)


def stencil_expect(inputs: Inputs, sizes: Sizes) -> Mapping[str, Expected]:
    x, alpha = real(inputs["x"]), float(inputs["alpha"])
    value, bound = x.copy(), np.zeros(x.shape)
    centre = x[1:-1, 1:-1]
    neighbours = x[1:-1, :-2], x[1:-1, 2:], x[:-2, 1:-1], x[2:, 1:-1]
    value[1:-1, 1:-1] = centre + alpha * (sum(neighbours) - 4 * centre)
    size = np.abs(centre) + alpha * (sum(map(np.abs, neighbours)) + 4 * np.abs(centre))
    bound[1:-1, 1:-1] = 8 * EPS32 * size
    return {"out": Expected(value, bound, "eight float32 operations inside, copies on the border")}


def stencil_grid(sizes: Sizes, config: Config) -> Grid:
    x, y = int(config.constants["TILE_X"]), int(config.constants["TILE_Y"])
    return ceil_div(sizes["columns"], x), ceil_div(sizes["rows"], y), 1


STENCIL = Workload(
    name="stencil",
    title="Five-point heat stencil with a halo in shared memory, fp32",
    language="cuda",
    published=False,
    source=cuda_file("stencil"),
    symbol="stencil",
    parameters=parameters("x: *fp32, out: *fp32, rows: i32, columns: i32, alpha: fp32"),
    configs=(
        Config("t32x8", {"TILE_X": 32, "TILE_Y": 8}, num_warps=8, block=(32, 8, 1)),
        Config("t16x16", {"TILE_X": 16, "TILE_Y": 16}, num_warps=8, block=(16, 16, 1)),
    ),
    sizes={"rows": 1024, "columns": 1024},
    shapes=({"rows": 64, "columns": 64}, {"rows": 19, "columns": 45}, {"rows": 3, "columns": 3}),
    large={"rows": 16384, "columns": 16384},
    scalars=lambda sizes: {"rows": sizes["rows"], "columns": sizes["columns"], "alpha": 0.2},
    buffers=lambda sizes, rng: {
        "x": floats(rng, sizes["rows"], sizes["columns"]),
        "out": unwritten((sizes["rows"], sizes["columns"]), np.float32),
    },
    expect=stencil_expect,
    blocks=stencil_grid,
)

WARP = 32


def scan_buffers(sizes: Sizes, rng: np.random.Generator) -> dict[str, Array]:
    n = sizes["n"]
    return {
        "x": rng.integers(-1000, 1000, n, dtype=np.int32),
        "sums": unwritten((n,), np.int32),
        "packed": unwritten((n,), np.int32),
        "counts": unwritten((ceil_div(n, WARP), 2), np.int32),
    }


def scan_expect(inputs: Inputs, sizes: Sizes) -> Mapping[str, Expected]:
    x = np.asarray(inputs["x"])
    n = len(x)
    sums, packed = np.empty_like(x), np.asarray(inputs["packed"]).copy()
    counts = np.zeros((ceil_div(n, WARP), 2), dtype=np.int32)
    for first in range(0, n, SCAN_THREADS):
        sums[first : first + SCAN_THREADS] = np.cumsum(x[first : first + SCAN_THREADS])
    for warp, first in enumerate(range(0, n, WARP)):
        kept = x[first : first + WARP]
        kept = kept[kept > 0]
        packed[first : first + len(kept)] = kept
        counts[warp] = len(kept), kept.max(initial=0)
    exact = {"sums": sums, "packed": packed, "counts": counts}
    return {name: Expected(value, 0.0, "integers are exact") for name, value in exact.items()}


SCAN_THREADS = 256

WARP_SCAN = Workload(
    name="warp_scan",
    title="Prefix sums by shuffles and packing by votes, int32",
    language="cuda",
    published=False,
    source=cuda_file("warp_scan"),
    symbol="warp_scan",
    parameters=parameters("x: *i32, sums: *i32, packed: *i32, counts: *i32, n: i32"),
    # The block is also the length of a segment, so other blocks would compute something else.
    configs=(Config("t256", {"THREADS": SCAN_THREADS}, num_warps=8, block=(SCAN_THREADS, 1, 1)),),
    sizes={"n": 1 << 20},
    shapes=({"n": 1024}, {"n": 1000}, {"n": 33}),
    large={"n": 1 << 26},
    scalars=lambda sizes: {"n": sizes["n"]},
    buffers=scan_buffers,
    expect=scan_expect,
    blocks=lambda sizes, config: (ceil_div(sizes["n"], SCAN_THREADS), 1, 1),
)


def histogram_expect(inputs: Inputs, sizes: Sizes) -> Mapping[str, Expected]:
    bins = len(np.asarray(inputs["counts"]))
    value = np.bincount(np.asarray(inputs["x"]).astype(np.int64) * bins // 256, minlength=bins)
    return {"counts": Expected(value.astype(np.uint32), 0.0, "integers are exact")}


BINS = 256

HISTOGRAM = Workload(
    name="histogram",
    title="Histogram of bytes with shared and global atomics",
    language="cuda",
    published=False,
    source=cuda_file("histogram"),
    symbol="histogram",
    parameters=parameters("x: *u8, counts: *u32, n: i32"),
    configs=(
        Config("t256", {"BINS": BINS}, num_warps=8, block=(256, 1, 1), shared_bytes=4 * BINS),
        Config("t128", {"BINS": BINS}, num_warps=4, block=(128, 1, 1), shared_bytes=4 * BINS),
    ),
    sizes={"n": 1 << 20},
    shapes=({"n": 4096}, {"n": 1000}, {"n": 7}),
    large={"n": 1 << 28},
    scalars=lambda sizes: {"n": sizes["n"]},
    buffers=lambda sizes, rng: {
        # Squares of a uniform number: low bins are crowded, so that atomics really collide.
        "x": (255 * rng.random(sizes["n"]) ** 2).astype(np.uint8),
        "counts": np.zeros(BINS, dtype=np.uint32),
    },
    expect=histogram_expect,
    blocks=lambda sizes, config: (min(ceil_div(sizes["n"], 8 * config.block_shape[0]), 432), 1, 1),
)

WORKLOADS = (REDUCTION, TRANSPOSE, STENCIL, WARP_SCAN, HISTOGRAM)
