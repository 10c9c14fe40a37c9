"""Dense matrix products in half precision: three of the paper's kernels."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from cuasmrl.workloads.bounds import EPS32, EXP32, Real, real, stored_as_half, summed
from cuasmrl.workloads.definitions.common import (
    ceil_div,
    kernel_file,
    normal,
    parameters,
    strides,
    tile,
    unwritten,
)
from cuasmrl.workloads.model import Array, Config, Expected, Grid, Inputs, Sizes, Workload

GEMM_WHY = "K float32 additions in any order, then one rounding to half"


def tiles(sizes: Sizes, config: Config) -> int:
    across = ceil_div(sizes["N"], int(config.constants["BLOCK_N"]))
    return ceil_div(sizes["M"], int(config.constants["BLOCK_M"])) * across


def flat_grid(sizes: Sizes, config: Config) -> Grid:
    return tiles(sizes, config), 1, 1


def product(a: Array, b: Array) -> tuple[Real, Real]:
    """The exact product and a bound on its error when summed in float32."""
    exact = real(a) @ real(b)
    return exact, summed(a.shape[-1], np.abs(real(a)) @ np.abs(real(b)))


def row_major(sizes: Sizes) -> dict[str, int]:
    m, n, k = sizes["M"], sizes["N"], sizes["K"]
    scalars = {"M": m, "N": n, "K": k, "stride_am": k, "stride_ak": 1, "stride_bk": n, "stride_bn": 1}
    return {**scalars, "stride_cm": n, "stride_cn": 1}


def row_major_buffers(sizes: Sizes, rng: np.random.Generator) -> dict[str, Array]:
    m, n, k = sizes["M"], sizes["N"], sizes["K"]
    return {
        "a_ptr": normal(rng, m, k),
        "b_ptr": normal(rng, k, n, scale=k**-0.5),
        "c_ptr": unwritten((m, n), np.float16),
    }


def leaky_relu_expect(inputs: Inputs, sizes: Sizes) -> Mapping[str, Expected]:
    total, error = product(np.asarray(inputs["a_ptr"]), np.asarray(inputs["b_ptr"]))
    value = np.where(total > 0, total, 0.01 * total)
    # The slope is rounded to float32, as is its product; near zero the error of the sum decides the branch.
    return {"c_ptr": Expected(value, stored_as_half(value, error + 2 * EPS32 * np.abs(value)), GEMM_WHY)}


GEMM_LEAKY_RELU = Workload(
    name="gemm_leaky_relu",
    title="Matrix product with a fused LeakyReLU, fp16",
    language="triton",
    published=True,
    source=kernel_file("gemm"),
    symbol="gemm_leaky_relu",
    parameters=parameters(
        "a_ptr: *fp16, b_ptr: *fp16, c_ptr: *fp16, M: i32, N: i32, K: i32, "
        + strides("stride_am stride_ak stride_bk stride_bn stride_cm stride_cn")
    ),
    configs=(
        tile(64, 64, 32, 4, 3, GROUP_M=8),
        tile(32, 32, 32, 2, 2, GROUP_M=8),
        tile(64, 128, 32, 4, 4, GROUP_M=8),
        tile(128, 64, 64, 4, 3, GROUP_M=8),
        tile(128, 128, 32, 4, 3, GROUP_M=8),
        tile(128, 256, 64, 8, 3, GROUP_M=8),
        tile(64, 64, 64, 4, 4, GROUP_M=8),
        tile(32, 64, 32, 2, 5, GROUP_M=8),
        tile(128, 128, 64, 8, 3, GROUP_M=8),
    ),
    sizes={"M": 512, "N": 512, "K": 2048},
    shapes=(
        {"M": 64, "N": 64, "K": 64},
        {"M": 128, "N": 128, "K": 256},
        {"M": 50, "N": 40, "K": 72},
        {"M": 33, "N": 65, "K": 31},
    ),
    large={"M": 4096, "N": 14336, "K": 4096},
    scalars=row_major,
    buffers=row_major_buffers,
    expect=leaky_relu_expect,
    blocks=flat_grid,
)


def bmm_scalars(sizes: Sizes) -> dict[str, int]:
    m, n, k = sizes["M"], sizes["N"], sizes["K"]
    return {**row_major(sizes), "stride_ab": m * k, "stride_bb": k * n, "stride_cb": m * n}


def bmm_buffers(sizes: Sizes, rng: np.random.Generator) -> dict[str, Array]:
    b, m, n, k = sizes["B"], sizes["M"], sizes["N"], sizes["K"]
    return {
        "a_ptr": normal(rng, b, m, k),
        "b_ptr": normal(rng, b, k, n, scale=k**-0.5),
        "c_ptr": unwritten((b, m, n), np.float16),
    }


def bmm_expect(inputs: Inputs, sizes: Sizes) -> Mapping[str, Expected]:
    value, error = product(np.asarray(inputs["a_ptr"]), np.asarray(inputs["b_ptr"]))
    return {"c_ptr": Expected(value, stored_as_half(value, error), GEMM_WHY)}


BMM = Workload(
    name="bmm",
    title="Batched matrix product, fp16",
    language="triton",
    published=True,
    source=kernel_file("gemm"),
    symbol="bmm",
    parameters=parameters(
        "a_ptr: *fp16, b_ptr: *fp16, c_ptr: *fp16, M: i32, N: i32, K: i32, "
        + strides("stride_ab stride_am stride_ak stride_bb stride_bk stride_bn stride_cb stride_cm stride_cn")
    ),
    configs=(
        tile(64, 64, 32, 4, 3, GROUP_M=8),
        tile(32, 64, 32, 2, 2, GROUP_M=8),
        tile(64, 128, 64, 4, 3, GROUP_M=8),
        tile(128, 128, 32, 8, 4, GROUP_M=8),
        tile(64, 64, 64, 4, 3, GROUP_M=8),
        tile(128, 128, 32, 4, 4, GROUP_M=8),
        tile(128, 128, 64, 8, 3, GROUP_M=8),
    ),
    sizes={"B": 4, "M": 512, "N": 512, "K": 2048},
    shapes=(
        {"B": 2, "M": 64, "N": 64, "K": 64},
        {"B": 3, "M": 48, "N": 80, "K": 96},
        {"B": 2, "M": 33, "N": 65, "K": 31},
    ),
    large={"B": 32, "M": 2048, "N": 2048, "K": 128},
    scalars=bmm_scalars,
    buffers=bmm_buffers,
    expect=bmm_expect,
    blocks=lambda sizes, config: (tiles(sizes, config), sizes["B"], 1),
)


def ff_scalars(sizes: Sizes) -> dict[str, int]:
    m, n, k = sizes["M"], sizes["N"], sizes["K"]
    scalars = {"M": m, "N": n, "K": k, "stride_xm": k, "stride_xk": 1, "stride_w1k": n, "stride_w1n": 1}
    return {**scalars, "stride_w3k": n, "stride_w3n": 1, "stride_om": n, "stride_on": 1}


def ff_buffers(sizes: Sizes, rng: np.random.Generator) -> dict[str, Array]:
    m, n, k = sizes["M"], sizes["N"], sizes["K"]
    return {
        "x_ptr": normal(rng, m, k),
        "w1_ptr": normal(rng, k, n, scale=k**-0.5),
        "w3_ptr": normal(rng, k, n, scale=k**-0.5),
        "out_ptr": unwritten((m, n), np.float16),
    }


def ff_expect(inputs: Inputs, sizes: Sizes) -> Mapping[str, Expected]:
    x = np.asarray(inputs["x_ptr"])
    gate, gate_error = product(x, np.asarray(inputs["w1_ptr"]))
    up, up_error = product(x, np.asarray(inputs["w3_ptr"]))
    silu = gate / (1 + np.exp(-gate))
    # |silu'| < 1.1; the sigmoid adds one exponential (whose argument is rounded) and one division.
    silu_error = 1.1 * gate_error + (EXP32 + (4 + np.abs(gate)) * EPS32) * np.abs(silu)
    value = silu * up
    error = silu_error * (np.abs(up) + up_error) + np.abs(silu) * up_error + EPS32 * np.abs(value)
    why = "two products of K float32 additions each, one sigmoid, then one rounding to half"
    return {"out_ptr": Expected(value, stored_as_half(value, error), why)}


FUSED_FF = Workload(
    name="fused_ff",
    title="Gated feed-forward silu(x w1) * (x w3) as in Llama, fp16",
    language="triton",
    published=True,
    source=kernel_file("gemm"),
    symbol="fused_ff",
    parameters=parameters(
        "x_ptr: *fp16, w1_ptr: *fp16, w3_ptr: *fp16, out_ptr: *fp16, M: i32, N: i32, K: i32, "
        + strides("stride_xm stride_xk stride_w1k stride_w1n stride_w3k stride_w3n stride_om stride_on")
    ),
    configs=(
        tile(64, 32, 32, 2, 2, products=2),
        tile(16, 32, 64, 2, 3, products=2),
        tile(64, 64, 32, 4, 3, products=2),
        tile(128, 64, 32, 4, 3, products=2),
        tile(128, 128, 64, 8, 3, products=2),
        tile(64, 64, 64, 4, 3, products=2),
        tile(32, 64, 64, 4, 3, products=2),
    ),
    sizes={"M": 512, "N": 512, "K": 2048},
    shapes=(
        {"M": 64, "N": 32, "K": 64},
        {"M": 96, "N": 64, "K": 128},
        {"M": 33, "N": 40, "K": 72},
    ),
    large={"M": 4096, "N": 14336, "K": 4096},
    scalars=ff_scalars,
    buffers=ff_buffers,
    expect=ff_expect,
    blocks=flat_grid,
)

WORKLOADS = (GEMM_LEAKY_RELU, BMM, FUSED_FF)
