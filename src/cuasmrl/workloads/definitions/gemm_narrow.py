"""Matrix products of 8-bit numbers; B is stored by columns, as tensor cores of these types want it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from cuasmrl.workloads.bounds import EPS32, real, stored_as_half
from cuasmrl.workloads.definitions.common import kernel_file, parameters, strides, tile, unwritten
from cuasmrl.workloads.definitions.gemm import flat_grid
from cuasmrl.workloads.model import Array, Config, Expected, Inputs, Sizes, Workload

NO_INT8 = {75: "Triton cannot lower a product of int8 matrices for this chip."}
NO_FP8 = {arch: f"sm_{arch} has no e4m3 arithmetic, which begins with sm_89." for arch in (75, 80, 86)}


def column_major(sizes: Sizes) -> dict[str, int]:
    m, n, k = sizes["M"], sizes["N"], sizes["K"]
    scalars = {"M": m, "N": n, "K": k, "stride_am": k, "stride_ak": 1, "stride_bn": k, "stride_bk": 1}
    return {**scalars, "stride_cm": n, "stride_cn": 1}


def int8_buffers(sizes: Sizes, rng: np.random.Generator) -> dict[str, Array]:
    m, n, k = sizes["M"], sizes["N"], sizes["K"]
    return {
        "a_ptr": rng.integers(-128, 128, (m, k), dtype=np.int8),
        "b_ptr": rng.integers(-128, 128, (n, k), dtype=np.int8),
        "c_ptr": unwritten((m, n), np.int32),
    }


def int8_expect(inputs: Inputs, sizes: Sizes) -> Mapping[str, Expected]:
    # Doubles hold these sums exactly (below 2**53) and, unlike integers, multiply through BLAS.
    value = real(inputs["a_ptr"]) @ real(inputs["b_ptr"]).T
    return {"c_ptr": Expected(value.astype(np.int32), 0.0, "integers are exact")}


def int8_tile(m: int, n: int, k: int, warps: int, stages: int) -> Config:
    return tile(m, n, k, warps, stages, unsupported=NO_INT8, GROUP_M=8)


SHAPES = (
    {"M": 64, "N": 64, "K": 128},
    {"M": 48, "N": 80, "K": 96},
    {"M": 33, "N": 65, "K": 47},
)

GEMM_INT8 = Workload(
    name="gemm_int8",
    title="Matrix product of int8 into int32",
    language="triton",
    published=False,
    source=kernel_file("gemm"),
    symbol="gemm_int8",
    parameters=parameters(
        "a_ptr: *i8, b_ptr: *i8, c_ptr: *i32, M: i32, N: i32, K: i32, "
        + strides("stride_am stride_ak stride_bn stride_bk stride_cm stride_cn")
    ),
    configs=(int8_tile(64, 64, 64, 4, 3), int8_tile(32, 32, 32, 2, 2), int8_tile(128, 128, 128, 8, 3)),
    sizes={"M": 512, "N": 512, "K": 2048},
    shapes=SHAPES,
    large={"M": 4096, "N": 14336, "K": 4096},
    scalars=column_major,
    buffers=int8_buffers,
    expect=int8_expect,
    blocks=flat_grid,
)


def quarters(rng: np.random.Generator, *shape: int) -> Array:
    """Normal numbers rounded to quarters, which e4m3 holds exactly up to 4."""
    from ml_dtypes import float8_e4m3fn

    drawn = np.round(2 * rng.standard_normal(shape, dtype=np.float32)) / 4
    return np.clip(drawn, -4, 4).astype(float8_e4m3fn)


def fp8_buffers(sizes: Sizes, rng: np.random.Generator) -> dict[str, Array]:
    m, n, k = sizes["M"], sizes["N"], sizes["K"]
    return {
        "a_ptr": quarters(rng, m, k),
        "b_ptr": quarters(rng, n, k),
        "c_ptr": unwritten((m, n), np.float16),
    }


def fp8_expect(inputs: Inputs, sizes: Sizes) -> Mapping[str, Expected]:
    a, b = real(inputs["a_ptr"]), real(inputs["b_ptr"]).T
    scale = float(inputs["scale_a"]) * float(inputs["scale_b"])
    value = a @ b * scale
    # sm_89 and sm_90 keep only about 13 fraction bits of the running sum, in steps of 32 products. Products
    # of quarters are multiples of 1/16, so as long as 13 bits hold them all nothing is lost.
    magnitude = np.abs(a) @ np.abs(b)
    loose = ((sizes["K"] / 32 + 1) * 2.0**-13 + sizes["K"] * EPS32) * magnitude * scale
    error = np.where(magnitude * 16 < 2**13, 0.0, loose) + 2 * EPS32 * np.abs(value)
    why = (
        "sums exact while they fit 13 bits, else that accumulator's steps; one scaling, one rounding to half"
    )
    return {"c_ptr": Expected(value, stored_as_half(value, error), why)}


def fp8_tile(m: int, n: int, k: int, warps: int, stages: int) -> Config:
    return tile(m, n, k, warps, stages, unsupported=NO_FP8, GROUP_M=8)


GEMM_FP8 = Workload(
    name="gemm_fp8",
    title="Scaled matrix product of fp8 (e4m3) into fp16",
    language="triton",
    published=False,
    source=kernel_file("gemm"),
    symbol="gemm_fp8",
    parameters=parameters(
        "a_ptr: *fp8e4nv, b_ptr: *fp8e4nv, c_ptr: *fp16, scale_a: fp32, scale_b: fp32, "
        "M: i32, N: i32, K: i32, " + strides("stride_am stride_ak stride_bn stride_bk stride_cm stride_cn")
    ),
    configs=(fp8_tile(64, 64, 64, 4, 3), fp8_tile(32, 32, 32, 2, 2), fp8_tile(128, 128, 64, 8, 3)),
    sizes={"M": 512, "N": 512, "K": 2048},
    shapes=SHAPES,
    large={"M": 4096, "N": 14336, "K": 4096},
    scalars=lambda sizes: {**column_major(sizes), "scale_a": 0.5, "scale_b": 1 / sizes["K"] ** 0.5},
    buffers=fp8_buffers,
    expect=fp8_expect,
    blocks=flat_grid,
)

WORKLOADS = (GEMM_INT8, GEMM_FP8)
