"""Matrix products that spread their work differently: resident blocks, split depth, routed rows."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from cuasmrl.workloads.bounds import EPS32, real, stored_as_half
from cuasmrl.workloads.definitions.common import (
    ceil_div,
    kernel_file,
    normal,
    parameters,
    strides,
    tile,
    unwritten,
)
from cuasmrl.workloads.definitions.gemm import (
    GEMM_WHY,
    bmm_expect,
    product,
    row_major,
    row_major_buffers,
    tiles,
)
from cuasmrl.workloads.model import Array, Config, Expected, Grid, Inputs, Sizes, Workload

GEMM_PARAMETERS = parameters(
    "a_ptr: *fp16, b_ptr: *fp16, c_ptr: *fp16, M: i32, N: i32, K: i32, "
    + strides("stride_am stride_ak stride_bk stride_bn stride_cm stride_cn")
)

SHAPES = (
    {"M": 64, "N": 64, "K": 128},
    {"M": 96, "N": 80, "K": 160},
    {"M": 33, "N": 65, "K": 47},
)

# Fewer than any chip has multiprocessors, so that the default problem gives each block several tiles.
RESIDENT = 24

GEMM_PERSISTENT = Workload(
    name="gemm_persistent",
    title="Matrix product by resident blocks that each walk over several tiles, fp16",
    language="triton",
    published=False,
    source=kernel_file("gemm_scheduled"),
    symbol="gemm_persistent",
    parameters=GEMM_PARAMETERS,
    configs=(
        tile(64, 64, 32, 4, 3, NUM_SMS=RESIDENT),
        tile(32, 32, 32, 2, 2, NUM_SMS=RESIDENT),
        tile(128, 64, 64, 4, 3, NUM_SMS=RESIDENT),
        tile(128, 128, 64, 8, 3, NUM_SMS=108),
    ),
    sizes={"M": 512, "N": 512, "K": 2048},
    shapes=SHAPES,
    large={"M": 4096, "N": 14336, "K": 4096},
    scalars=row_major,
    buffers=row_major_buffers,
    expect=bmm_expect,
    blocks=lambda sizes, config: (min(tiles(sizes, config), int(config.constants["NUM_SMS"])), 1, 1),
)


def splitk_buffers(sizes: Sizes, rng: np.random.Generator) -> dict[str, Array]:
    drawn = row_major_buffers(sizes, rng)
    return {**drawn, "c_ptr": np.zeros((sizes["M"], sizes["N"]), dtype=np.float32)}


def splitk_expect(inputs: Inputs, sizes: Sizes) -> Mapping[str, Expected]:
    value, error = product(np.asarray(inputs["a_ptr"]), np.asarray(inputs["b_ptr"]))
    return {"c_ptr": Expected(value, error, "K float32 additions in any order")}


def splitk_tile(m: int, n: int, k: int, warps: int, stages: int, split: int) -> Config:
    return tile(m, n, k, warps, stages, SPLIT_K=split)


GEMM_SPLITK = Workload(
    name="gemm_splitk",
    title="Matrix product with the depth split over blocks that add up atomically, fp16 into fp32",
    language="triton",
    published=False,
    source=kernel_file("gemm_scheduled"),
    symbol="gemm_splitk",
    parameters=parameters(
        "a_ptr: *fp16, b_ptr: *fp16, c_ptr: *fp32, M: i32, N: i32, K: i32, "
        + strides("stride_am stride_ak stride_bk stride_bn stride_cm stride_cn")
    ),
    configs=(
        splitk_tile(64, 64, 32, 4, 3, 4),
        splitk_tile(16, 64, 64, 4, 3, 8),
        splitk_tile(32, 32, 32, 2, 2, 2),
    ),
    sizes={"M": 64, "N": 512, "K": 4096},
    shapes=SHAPES,
    large={"M": 16, "N": 14336, "K": 4096},
    scalars=row_major,
    buffers=splitk_buffers,
    expect=splitk_expect,
    blocks=lambda sizes, config: (tiles(sizes, config), int(config.constants["SPLIT_K"]), 1),
)

# Rows of one expert are padded to this many, so a tile of rows never spans two experts.
ROUTE = 64


def moe_scalars(sizes: Sizes) -> dict[str, int]:
    n, k = sizes["N"], sizes["K"]
    scalars = {"N": n, "K": k, "slots": sizes["T"] * sizes["TOP"], "stride_xt": k, "stride_xk": 1}
    return {**scalars, "stride_we": n * k, "stride_wn": k, "stride_wk": 1, "stride_os": n, "stride_on": 1}


def route_capacity(sizes: Sizes) -> int:
    """Rows that suffice for every routing: each expert may end with an almost empty group."""
    slots, experts = sizes["T"] * sizes["TOP"], sizes["E"]
    return ceil_div(slots + min(slots, experts) * (ROUTE - 1), ROUTE) * ROUTE


def moe_buffers(sizes: Sizes, rng: np.random.Generator) -> dict[str, Array]:
    tokens, top, experts, n, k = (sizes[name] for name in ("T", "TOP", "E", "N", "K"))
    slots, capacity = tokens * top, route_capacity(sizes)
    chosen = np.argsort(rng.random((tokens, experts)), axis=1)[:, :top].reshape(-1)
    slot = np.full(capacity, slots, dtype=np.int32)
    expert = np.zeros(capacity // ROUTE, dtype=np.int32)
    used = 0
    for index in range(experts):
        mine = np.flatnonzero(chosen == index)
        slot[used : used + len(mine)] = mine
        groups = ceil_div(len(mine), ROUTE)
        expert[used // ROUTE : used // ROUTE + groups] = index
        used += groups * ROUTE
    return {
        "x_ptr": normal(rng, tokens, k),
        "w_ptr": normal(rng, experts, n, k, scale=k**-0.5),
        "out_ptr": unwritten((slots, n), np.float16),
        "slot_ptr": slot,
        "expert_ptr": expert,
        "gate_ptr": rng.random(slots, dtype=np.float32),
        "used_ptr": np.array([used], dtype=np.int32),
    }


def moe_expect(inputs: Inputs, sizes: Sizes) -> Mapping[str, Expected]:
    slot, expert = np.asarray(inputs["slot_ptr"]), np.asarray(inputs["expert_ptr"])
    slots = sizes["T"] * sizes["TOP"]
    routed = np.zeros(slots + 1, dtype=np.int64)
    routed[slot] = np.repeat(expert, ROUTE)
    x, w, gate = np.asarray(inputs["x_ptr"]), np.asarray(inputs["w_ptr"]), real(inputs["gate_ptr"])[:, None]
    total, error = np.empty((slots, sizes["N"])), np.empty((slots, sizes["N"]))
    for index in range(sizes["E"]):
        mine = np.flatnonzero(routed[:slots] == index)
        total[mine], error[mine] = product(x[mine // sizes["TOP"]], w[index].T)
    value = total * gate
    bound = stored_as_half(value, error * gate + EPS32 * np.abs(value))
    return {"out_ptr": Expected(value, bound, GEMM_WHY + ", after one product with the gate")}


def moe_grid(sizes: Sizes, config: Config) -> Grid:
    rows = route_capacity(sizes) // int(config.constants["BLOCK_M"])
    return rows, ceil_div(sizes["N"], int(config.constants["BLOCK_N"])), 1


MOE_GEMM = Workload(
    name="moe_gemm",
    title="Mixture-of-experts product with gathered tokens and routed weights, fp16",
    language="triton",
    published=False,
    source=kernel_file("gemm_scheduled"),
    symbol="moe_gemm",
    parameters=parameters(
        "x_ptr: *fp16, w_ptr: *fp16, out_ptr: *fp16, slot_ptr: *i32, expert_ptr: *i32, gate_ptr: *fp32, "
        "used_ptr: *i32, N: i32, K: i32, slots: i32, "
        + strides("stride_xt stride_xk stride_we stride_wn stride_wk stride_os stride_on")
    ),
    configs=(
        tile(64, 64, 32, 4, 3, ROUTE=ROUTE),
        tile(16, 32, 64, 2, 3, ROUTE=ROUTE),
        tile(64, 128, 32, 4, 3, ROUTE=ROUTE),
        tile(32, 64, 128, 4, 2, ROUTE=ROUTE),
    ),
    sizes={"T": 256, "TOP": 2, "E": 8, "N": 512, "K": 1024},
    shapes=(
        {"T": 16, "TOP": 2, "E": 4, "N": 64, "K": 64},
        {"T": 21, "TOP": 2, "E": 3, "N": 40, "K": 72},
    ),
    large={"T": 4096, "TOP": 2, "E": 8, "N": 14336, "K": 4096},
    scalars=moe_scalars,
    buffers=moe_buffers,
    expect=moe_expect,
    blocks=moe_grid,
    derived=lambda sizes, config: {"TOP_K": sizes["TOP"]},
)

WORKLOADS = (GEMM_PERSISTENT, GEMM_SPLITK, MOE_GEMM)
