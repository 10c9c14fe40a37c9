"""Kernels with tensor descriptors: resident and warp-specialised products, scaled fp8, groups, attention."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from cuasmrl.workloads.bounds import EPS32, real, stored_as_half
from cuasmrl.workloads.definitions.attention import flash_buffers, flash_expect
from cuasmrl.workloads.definitions.common import ceil_div, kernel_file, normal, parameters, unwritten
from cuasmrl.workloads.definitions.gemm import GEMM_WHY, product, tiles
from cuasmrl.workloads.definitions.gemm_narrow import quarters
from cuasmrl.workloads.model import Array, Config, Constant, Expected, Grid, Inputs, Sizes, Workload

NO_TMA = {
    arch: f"sm_{arch} has no tensor memory accelerator, which begins with sm_90." for arch in (75, 80, 86, 89)
}
TOO_LARGE = {120: "the tile needs more than its 99 KiB of shared memory."}
# Fewer than any chip has multiprocessors, so that the default problem gives each block several tiles.
RESIDENT = 24
# Tensor maps want rows of whole 16 bytes.
SHAPES = (
    {"M": 128, "N": 128, "K": 128},
    {"M": 96, "N": 80, "K": 200},
)
GEMM_SIZES = {"M": 1024, "N": 1024, "K": 1024}
GEMM_LARGE = {"M": 4096, "N": 4096, "K": 4096}


def described(
    m: int, n: int, k: int, warps: int, stages: int, *, large: bool = False, **more: Constant
) -> Config:
    constants: dict[str, Constant] = {"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": k, **more}
    excluded = NO_TMA | (TOO_LARGE if large else {})
    return Config(f"m{m}n{n}k{k}_w{warps}_s{stages}", constants, warps, stages, unsupported=excluded)


def resident_grid(sizes: Sizes, config: Config) -> Grid:
    return min(tiles(sizes, config), int(config.constants["NUM_SMS"])), 1, 1


def scalars_of(sizes: Sizes) -> dict[str, int | float]:
    return {name: sizes[name] for name in ("M", "N", "K")}


def column_buffers(sizes: Sizes, rng: np.random.Generator) -> dict[str, Array]:
    m, n, k = sizes["M"], sizes["N"], sizes["K"]
    return {
        "a_ptr": normal(rng, m, k),
        "b_ptr": normal(rng, n, k, scale=k**-0.5),
        "c_ptr": unwritten((m, n), np.float16),
    }


def column_expect(inputs: Inputs, sizes: Sizes) -> Mapping[str, Expected]:
    value, error = product(np.asarray(inputs["a_ptr"]), np.asarray(inputs["b_ptr"]).T)
    return {"c_ptr": Expected(value, stored_as_half(value, error), GEMM_WHY)}


def gemm(name: str, title: str, configs: tuple[Config, ...]) -> Workload:
    return Workload(
        name=name,
        title=title,
        language="triton",
        published=False,
        source=kernel_file("tma"),
        symbol="gemm_tma",
        parameters=parameters("a_ptr: *fp16, b_ptr: *fp16, c_ptr: *fp16, M: i32, N: i32, K: i32"),
        configs=configs,
        sizes=GEMM_SIZES,
        shapes=SHAPES,
        large=GEMM_LARGE,
        scalars=scalars_of,
        buffers=column_buffers,
        expect=column_expect,
        blocks=resident_grid,
    )


def resident(
    m: int,
    n: int,
    warps: int,
    stages: int,
    *,
    sms: int = RESIDENT,
    special: bool = False,
    large: bool = False,
) -> Config:
    return described(m, n, 64, warps, stages, large=large, GROUP_M=8, NUM_SMS=sms, SPECIALISED=special)


GEMM_TMA = gemm(
    "gemm_tma",
    "Matrix product by resident blocks with tensor descriptors, fp16",
    (
        resident(128, 64, 4, 3),
        resident(64, 64, 4, 3),
        resident(128, 128, 8, 3),
        resident(128, 256, 8, 3, sms=132, large=True),
    ),
)
GEMM_SPECIALISED = gemm(
    "gemm_specialised",
    "Matrix product with tensor descriptors, one warp copying while others multiply, fp16",
    (
        resident(128, 64, 4, 3, special=True),
        resident(64, 128, 4, 2, special=True),
        resident(128, 128, 4, 3, sms=132, special=True, large=True),
    ),
)

SCALED_DEPTH = 128
"""Numbers along K that share a scale."""


def fp8_buffers(sizes: Sizes, rng: np.random.Generator) -> dict[str, Array]:
    m, n, k = sizes["M"], sizes["N"], sizes["K"]
    blocks = ceil_div(k, SCALED_DEPTH)
    return {
        "a_ptr": quarters(rng, m, k),
        "b_ptr": quarters(rng, n, k),
        "c_ptr": unwritten((m, n), np.float16),
        "a_scale_ptr": rng.uniform(0.25, 1, (m, blocks)).astype(np.float32),
        "b_scale_ptr": rng.uniform(0.25, 1, (ceil_div(n, SCALED_DEPTH), blocks)).astype(np.float32) / 16,
    }


def fp8_expect(inputs: Inputs, sizes: Sizes) -> Mapping[str, Expected]:
    a, b = real(inputs["a_ptr"]), real(inputs["b_ptr"])
    a_scale, b_scale = real(inputs["a_scale_ptr"]), real(inputs["b_scale_ptr"])
    columns = np.arange(sizes["N"]) // SCALED_DEPTH
    value = np.zeros((sizes["M"], sizes["N"]))
    error, magnitude = np.zeros_like(value), np.zeros_like(value)
    for block in range(ceil_div(sizes["K"], SCALED_DEPTH)):
        part = slice(block * SCALED_DEPTH, (block + 1) * SCALED_DEPTH)
        scale = a_scale[:, block, None] * b_scale[columns, block]
        size = np.abs(a[:, part]) @ np.abs(b[:, part]).T
        value += a[:, part] @ b[:, part].T * scale
        # Products of quarters are multiples of 1/16: 13 fraction bits hold sums of them below 512.
        error += np.where(size * 16 < 2**13, 0.0, 5 * 2.0**-13 * size) * scale
        magnitude += size * scale
    error += (ceil_div(sizes["K"], SCALED_DEPTH) + 3) * EPS32 * magnitude
    why = "sums of a block exact while they fit 13 bits, scaled and added up in float32, one rounding to half"
    return {"c_ptr": Expected(value, stored_as_half(value, error), why)}


def fp8_tile(m: int, warps: int, stages: int) -> Config:
    return described(m, SCALED_DEPTH, SCALED_DEPTH, warps, stages, GROUP_M=8, NUM_SMS=RESIDENT)


GEMM_FP8_BLOCKS = Workload(
    name="gemm_fp8_blocks",
    title="Matrix product of fp8 (e4m3) with a scale per 128 numbers, promoted to float32 between blocks",
    language="triton",
    published=False,
    source=kernel_file("tma"),
    symbol="gemm_fp8_blocks",
    parameters=parameters(
        "a_ptr: *fp8e4nv, b_ptr: *fp8e4nv, c_ptr: *fp16, a_scale_ptr: *fp32, b_scale_ptr: *fp32, "
        "M: i32, N: i32, K: i32"
    ),
    configs=(fp8_tile(64, 4, 2), fp8_tile(128, 8, 2), fp8_tile(64, 4, 3), fp8_tile(128, 8, 3)),
    sizes=GEMM_SIZES,
    shapes=({"M": 64, "N": 128, "K": 256}, {"M": 96, "N": 144, "K": 208}),
    large=GEMM_LARGE,
    scalars=scalars_of,
    buffers=fp8_buffers,
    expect=fp8_expect,
    blocks=resident_grid,
)

GROUP_ROWS = 128
"""Rows of an expert are padded to a multiple of this, so that no tile has rows of two."""


def rows_of(sizes: Sizes) -> list[int]:
    """Groups of rows by expert: some have more to do than others."""
    return [1 + 3 * expert % sizes["MOST"] for expert in range(sizes["E"])]


def grouped_scalars(sizes: Sizes) -> dict[str, int | float]:
    rows = GROUP_ROWS * sum(rows_of(sizes))
    return {"rows": rows, "N": sizes["N"], "K": sizes["K"], "experts": sizes["E"]}


def grouped_buffers(sizes: Sizes, rng: np.random.Generator) -> dict[str, Array]:
    n, k, groups = sizes["N"], sizes["K"], rows_of(sizes)
    rows = GROUP_ROWS * sum(groups)
    return {
        "x_ptr": normal(rng, rows, k),
        "w_ptr": normal(rng, sizes["E"], n, k, scale=k**-0.5),
        "out_ptr": unwritten((rows, n), np.float16),
        "expert_ptr": np.repeat(np.arange(sizes["E"], dtype=np.int32), groups),
    }


def grouped_expect(inputs: Inputs, sizes: Sizes) -> Mapping[str, Expected]:
    x, w = np.asarray(inputs["x_ptr"]), np.asarray(inputs["w_ptr"])
    value, error = np.empty((len(x), sizes["N"])), np.empty((len(x), sizes["N"]))
    for group, expert in enumerate(np.asarray(inputs["expert_ptr"])):
        rows = slice(group * GROUP_ROWS, (group + 1) * GROUP_ROWS)
        value[rows], error[rows] = product(x[rows], w[expert].T)
    return {"out_ptr": Expected(value, stored_as_half(value, error), GEMM_WHY)}


def grouped_grid(sizes: Sizes, config: Config) -> Grid:
    count = sum(rows_of(sizes)) * ceil_div(sizes["N"], int(config.constants["BLOCK_N"]))
    return min(count, int(config.constants["NUM_SMS"])), 1, 1


GEMM_GROUPED = Workload(
    name="gemm_grouped",
    title="Products of groups of rows with the weights of their experts, by tensor descriptors, fp16",
    language="triton",
    published=False,
    source=kernel_file("tma"),
    symbol="gemm_grouped",
    parameters=parameters(
        "x_ptr: *fp16, w_ptr: *fp16, out_ptr: *fp16, expert_ptr: *i32, "
        "rows: i32, N: i32, K: i32, experts: i32"
    ),
    configs=(
        described(GROUP_ROWS, 64, 64, 4, 3, NUM_SMS=RESIDENT),
        described(GROUP_ROWS, 64, 32, 4, 4, NUM_SMS=RESIDENT),
        described(GROUP_ROWS, 128, 64, 8, 3, NUM_SMS=RESIDENT),
    ),
    sizes={"E": 8, "MOST": 4, "N": 512, "K": 1024},
    shapes=({"E": 2, "MOST": 2, "N": 64, "K": 128}, {"E": 3, "MOST": 2, "N": 72, "K": 136}),
    large={"E": 8, "MOST": 16, "N": 14336, "K": 4096},
    scalars=grouped_scalars,
    buffers=grouped_buffers,
    expect=grouped_expect,
    blocks=grouped_grid,
)


def attention_scalars(sizes: Sizes) -> dict[str, int | float]:
    return {"scale": sizes["D"] ** -0.5, "heads": sizes["B"] * sizes["H"], "S": sizes["S"]}


def attention_tile(m: int, n: int, warps: int, stages: int, *, special: bool = False) -> Config:
    constants: dict[str, Constant] = {"BLOCK_M": m, "BLOCK_N": n, "SPECIALISED": special}
    name = f"m{m}n{n}_w{warps}_s{stages}{'_ws' if special else ''}"
    wide = {120: "with heads of 128 the tile needs more than its 99 KiB of shared memory."} if n > 64 else {}
    return Config(name, constants, warps, stages, unsupported=NO_TMA | wide)


ATTENTION_TMA = Workload(
    name="attention_tma",
    title="Attention forward with streaming softmax and tensor descriptors, fp16",
    language="triton",
    published=False,
    source=kernel_file("tma"),
    symbol="attention_tma",
    parameters=parameters(
        "q_ptr: *fp16, k_ptr: *fp16, v_ptr: *fp16, out_ptr: *fp16, scale: fp32, heads: i32, S: i32"
    ),
    configs=(
        attention_tile(64, 64, 4, 3),
        attention_tile(64, 64, 4, 3, special=True),
        attention_tile(128, 64, 4, 2),
        attention_tile(128, 128, 8, 2),
    ),
    sizes={"B": 1, "H": 4, "S": 1024, "D": 64},
    shapes=({"B": 1, "H": 2, "S": 128, "D": 64}, {"B": 2, "H": 1, "S": 100, "D": 32}),
    large={"B": 4, "H": 32, "S": 4096, "D": 128},
    scalars=attention_scalars,
    buffers=flash_buffers,
    expect=flash_expect(causal=False),
    blocks=lambda sizes, config: (
        ceil_div(sizes["S"], int(config.constants["BLOCK_M"])),
        sizes["B"] * sizes["H"],
        1,
    ),
    derived=lambda sizes, config: {"HEAD_DIM": sizes["D"]},
)

WORKLOADS = (GEMM_TMA, GEMM_SPECIALISED, GEMM_FP8_BLOCKS, GEMM_GROUPED, ATTENTION_TMA)
