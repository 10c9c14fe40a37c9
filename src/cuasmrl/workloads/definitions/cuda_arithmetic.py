"""CUDA kernels dominated by arithmetic, one for each pipe that matrix kernels leave idle."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from cuasmrl.workloads.bounds import EPS16, TINY16, real, summed
from cuasmrl.workloads.definitions.common import ceil_div, cuda_file, normal, parameters, unwritten
from cuasmrl.workloads.model import Array, Config, Expected, Grid, Inputs, Sizes, Workload

EPS64 = 2.0**-52


def sgemm_buffers(sizes: Sizes, rng: np.random.Generator) -> dict[str, Array]:
    m, n, k = sizes["m"], sizes["n"], sizes["k"]
    return {
        "a": rng.standard_normal((m, k), dtype=np.float32),
        "b": rng.standard_normal((k, n), dtype=np.float32),
        "c": unwritten((m, n), np.float32),
    }


def sgemm_expect(inputs: Inputs, sizes: Sizes) -> Mapping[str, Expected]:
    a, b = real(inputs["a"]), real(inputs["b"])
    bound = summed(sizes["k"] + 1, np.abs(a) @ np.abs(b))
    return {"c": Expected(a @ b, bound, "k float32 multiply-adds")}


def sgemm_config(bm: int, bn: int, bk: int, tm: int, tn: int) -> Config:
    threads = (bm // tm) * (bn // tn)
    constants = {"BM": bm, "BN": bn, "BK": bk, "TM": tm, "TN": tn}
    return Config(f"m{bm}n{bn}k{bk}_t{tm}x{tn}", constants, threads // 32, block=(threads, 1, 1))


def sgemm_grid(sizes: Sizes, config: Config) -> Grid:
    across = ceil_div(sizes["n"], int(config.constants["BN"]))
    return across, ceil_div(sizes["m"], int(config.constants["BM"])), 1


SGEMM = Workload(
    name="sgemm",
    title="Matrix product with register tiles on the scalar pipes, fp32",
    language="cuda",
    published=False,
    source=cuda_file("sgemm"),
    symbol="sgemm",
    parameters=parameters("a: *fp32, b: *fp32, c: *fp32, m: i32, n: i32, k: i32"),
    configs=(sgemm_config(64, 64, 16, 4, 4), sgemm_config(128, 128, 8, 8, 8)),
    sizes={"m": 512, "n": 512, "k": 512},
    shapes=({"m": 64, "n": 64, "k": 32}, {"m": 50, "n": 70, "k": 19}, {"m": 1, "n": 130, "k": 5}),
    large={"m": 4096, "n": 4096, "k": 4096},
    scalars=dict,
    buffers=sgemm_buffers,
    expect=sgemm_expect,
    blocks=sgemm_grid,
)


def poly_buffers(sizes: Sizes, rng: np.random.Generator) -> dict[str, Array]:
    n = sizes["n"]
    return {
        "x": rng.uniform(-1.5, 1.5, n),
        "y": rng.uniform(-1.5, 1.5, n),
        "coefficients": rng.standard_normal(9),
        "poly": unwritten((n,), np.float64),
        "mixed": unwritten((n,), np.float64),
    }


def poly_expect(inputs: Inputs, sizes: Sizes) -> Mapping[str, Expected]:
    x, y, c = (real(inputs[name]) for name in ("x", "y", "coefficients"))
    poly = np.polynomial.polynomial.polyval(x, c)
    # Twice Horner's bound, because the reference is itself computed in doubles.
    bound = 2 * 2 * 8 * EPS64 * np.polynomial.polynomial.polyval(np.abs(x), np.abs(c))
    product = (x + y) * (x - y)
    mixed = np.where(product > 0.0, product, (x + y) * 0.5)
    return {
        "poly": Expected(poly, bound, "eight double multiply-adds, on either side of the comparison"),
        "mixed": Expected(mixed, 0.0, "IEEE additions and products, which NumPy rounds the same way"),
    }


def stride_grid(sizes: Sizes, config: Config) -> Grid:
    return min(ceil_div(sizes["n"], config.block_shape[0]), 432), 1, 1


FP64_POLY = Workload(
    name="fp64_poly",
    title="Polynomials by chains of double-precision operations",
    language="cuda",
    published=False,
    source=cuda_file("fp64_poly"),
    symbol="fp64_poly",
    parameters=parameters("x: *fp64, y: *fp64, coefficients: *fp64, poly: *fp64, mixed: *fp64, n: i32"),
    configs=(Config("t128", num_warps=4, block=(128, 1, 1)),),
    sizes={"n": 1 << 18},
    shapes=({"n": 1024}, {"n": 1000}, {"n": 5}),
    scalars=lambda sizes: {"n": sizes["n"]},
    buffers=poly_buffers,
    expect=poly_expect,
    blocks=stride_grid,
)


def axpy_expect(inputs: Inputs, sizes: Sizes) -> Mapping[str, Expected]:
    factor = float(np.float16(np.float32(inputs["a"])))
    value = factor * real(inputs["x"]) + real(inputs["y"])
    return {
        "y": Expected(value, np.abs(value) * EPS16 / 2 + TINY16, "one fused multiply-add rounded to half")
    }


HALF2_AXPY = Workload(
    name="half2_axpy",
    title="y = a x + y two halves at a time",
    language="cuda",
    published=False,
    source=cuda_file("half2_axpy"),
    symbol="half2_axpy",
    parameters=parameters("x: *fp16, y: *fp16, a: fp32, n: i32"),
    configs=(
        Config("t256", num_warps=8, block=(256, 1, 1)),
        Config("t64", num_warps=2, block=(64, 1, 1)),
    ),
    sizes={"n": 1 << 20},
    shapes=({"n": 2048}, {"n": 1001}, {"n": 1}),
    large={"n": 1 << 28},
    scalars=lambda sizes: {"a": 1.7, "n": sizes["n"]},
    buffers=lambda sizes, rng: {"x": normal(rng, sizes["n"]), "y": normal(rng, sizes["n"])},
    expect=axpy_expect,
    blocks=lambda sizes, config: (min(ceil_div(sizes["n"], 4 * config.block_shape[0]), 432), 1, 1),
)


def mix_buffers(sizes: Sizes, rng: np.random.Generator) -> dict[str, Array]:
    n = sizes["n"]
    # Numbers of all magnitudes: uniform ones would never be small enough for a quotient above 2**31.
    x = rng.integers(0, 2**64, n, dtype=np.uint64) >> rng.integers(0, 64, n, dtype=np.uint64)
    y = rng.integers(0, 2**64, n, dtype=np.uint64) >> rng.integers(0, 64, n, dtype=np.uint64)
    return {
        "x": x,
        "y": y,
        "hash": np.zeros(n, dtype=np.uint64),
        "ratio": unwritten((n,), np.int64),
    }


def mix_one(a: int, b: int) -> tuple[int, int]:
    """The kernel's arithmetic on Python's unbounded integers."""
    mask = 2**64 - 1
    h = (a * 0x9E3779B97F4A7C15 + b) & mask
    h ^= h >> 29
    turn = b & 63
    h = ((h << turn) | (h >> (64 - turn))) & mask
    h = (h + (a * b >> 64)) & mask
    numerator = a - 2**64 if a >> 63 else a
    denominator = (b >> 33) + 1
    quotient = abs(numerator) // denominator * (-1 if numerator < 0 else 1)
    return h, quotient + (numerator - quotient * denominator)


def mix_expect(inputs: Inputs, sizes: Sizes) -> Mapping[str, Expected]:
    pairs = zip(np.asarray(inputs["x"]).tolist(), np.asarray(inputs["y"]).tolist(), strict=True)
    hashes, ratios = zip(*(mix_one(a, b) for a, b in pairs), strict=True)
    return {
        "hash": Expected(np.array(hashes, dtype=np.uint64), 0.0, "integers are exact"),
        "ratio": Expected(np.array(ratios, dtype=np.int64), 0.0, "integers are exact"),
    }


INT64_MIX = Workload(
    name="int64_mix",
    title="64-bit multiplication, division, remainder and rotation",
    language="cuda",
    published=False,
    source=cuda_file("int64_mix"),
    symbol="int64_mix",
    parameters=parameters("x: *u64, y: *u64, hash: *u64, ratio: *i64, n: i32"),
    configs=(Config("t128", num_warps=4, block=(128, 1, 1)),),
    sizes={"n": 1 << 16},
    shapes=({"n": 1024}, {"n": 1000}, {"n": 5}),
    scalars=lambda sizes: {"n": sizes["n"]},
    buffers=mix_buffers,
    expect=mix_expect,
    blocks=lambda sizes, config: (ceil_div(sizes["n"], 128), 1, 1),
)

WORKLOADS = (SGEMM, FP64_POLY, HALF2_AXPY, INT64_MIX)
