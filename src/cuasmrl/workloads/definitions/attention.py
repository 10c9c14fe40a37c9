"""Attention over a whole prompt, and over a paged cache."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from cuasmrl.workloads.bounds import EPS16, EPS32, EXP32, TINY16, Real, real, stored_as_half
from cuasmrl.workloads.definitions.common import ceil_div, kernel_file, normal, parameters, strides, unwritten
from cuasmrl.workloads.model import Array, Config, Expected, Grid, Inputs, Sizes, Workload

ATTENTION_WHY = "float32 scores, shares rounded to half before the second product, then one rounding to half"


def attend(q: Array, k: Array, v: Array, scale: float, visible: Array) -> tuple[Real, Real]:
    """Softmax attention of one head, and a bound on the error of a streaming half-precision kernel."""
    q, k, v = real(q), real(k), real(v)
    keys, width = k.shape
    score = np.where(visible, (q @ k.T) * scale, -np.inf)
    share = np.exp(score - score.max(axis=1, keepdims=True))
    weight = share.sum(axis=1, keepdims=True)
    value = share @ v / weight
    magnitude = share @ np.abs(v) / weight
    # A score's absolute error becomes its exponential's relative error.
    score_error = (width + 4) * EPS32 * (np.abs(q) @ np.abs(k).T).max() * scale
    relative = EPS16 / 2 + 2 * score_error + 3 * EXP32 + 2 * keys * EPS32
    # Shares below the half range are lost one by one; the largest share is 1, so the weight is at least 1.
    lost = keys * TINY16 * np.abs(v).max() / weight
    return value, stored_as_half(value, relative * magnitude + lost)


def flash_scalars(sizes: Sizes) -> dict[str, int | float]:
    heads, length, width = sizes["H"], sizes["S"], sizes["D"]
    scalars: dict[str, int | float] = {"scale": width**-0.5, "H": heads, "S": length}
    by_axis = {"b": heads * length * width, "h": length * width, "s": width, "d": 1}
    for tensor in "qkvo":
        scalars.update({f"stride_{tensor}{axis}": stride for axis, stride in by_axis.items()})
    return scalars


def flash_buffers(sizes: Sizes, rng: np.random.Generator) -> dict[str, Array]:
    shape = (sizes["B"], sizes["H"], sizes["S"], sizes["D"])
    drawn = {name: normal(rng, *shape) for name in ("q_ptr", "k_ptr", "v_ptr")}
    return {**drawn, "out_ptr": unwritten(shape, np.float16)}


def flash_expect(*, causal: bool) -> Callable[[Inputs, Sizes], Mapping[str, Expected]]:
    def expect(inputs: Inputs, sizes: Sizes) -> Mapping[str, Expected]:
        q, k, v = (np.asarray(inputs[name]) for name in ("q_ptr", "k_ptr", "v_ptr"))
        length = sizes["S"]
        everywhere = np.ones((length, length), dtype=bool)
        visible = np.tril(everywhere) if causal else everywhere
        value, bound = np.empty(q.shape), np.empty(q.shape)
        for head in np.ndindex(sizes["B"], sizes["H"]):
            value[head], bound[head] = attend(q[head], k[head], v[head], float(inputs["scale"]), visible)
        return {"out_ptr": Expected(value, bound, ATTENTION_WHY)}

    return expect


def flash_grid(sizes: Sizes, config: Config) -> Grid:
    return ceil_div(sizes["S"], int(config.constants["BLOCK_M"])), sizes["B"] * sizes["H"], 1


def flash_config(m: int, n: int, warps: int, stages: int, *, causal: bool) -> Config:
    excluded = {}
    if m * n > 64 * 64:
        excluded[75] = "with heads of 128 the tile needs more than its 64 KiB of shared memory."
    if n > 64:
        too_large = "with heads of 128 the tile needs more than its 99 KiB of shared memory."
        excluded |= dict.fromkeys((86, 89, 120), too_large)
    constants = {"BLOCK_M": m, "BLOCK_N": n, "CAUSAL": causal}
    return Config(f"m{m}n{n}_w{warps}_s{stages}", constants, warps, stages, unsupported=excluded)


def flash(name: str, title: str, *, causal: bool) -> Workload:
    tiles = (
        *((64, 64, 4, 3), (32, 32, 2, 2), (64, 32, 4, 4)),
        *((128, 64, 4, 2), (128, 64, 8, 3), (64, 128, 4, 3)),
    )
    return Workload(
        name=name,
        title=title,
        language="triton",
        published=not causal,
        source=kernel_file("attention"),
        symbol="flash_attention",
        parameters=parameters(
            "q_ptr: *fp16, k_ptr: *fp16, v_ptr: *fp16, out_ptr: *fp16, scale: fp32, H: i32, S: i32, "
            + strides(" ".join(f"stride_{tensor}{axis}" for tensor in "qkvo" for axis in "bhsd"))
        ),
        configs=tuple(flash_config(*numbers, causal=causal) for numbers in tiles),
        sizes={"B": 1, "H": 4, "S": 4096, "D": 32},
        shapes=(
            {"B": 1, "H": 2, "S": 128, "D": 32},
            {"B": 2, "H": 3, "S": 100, "D": 32},
            {"B": 1, "H": 1, "S": 192, "D": 64},
            {"B": 1, "H": 1, "S": 128, "D": 128},
        ),
        large={"B": 1, "H": 32, "S": 8192, "D": 128},
        scalars=flash_scalars,
        buffers=flash_buffers,
        expect=flash_expect(causal=causal),
        blocks=flash_grid,
        derived=lambda sizes, config: {"HEAD_DIM": sizes["D"]},
    )


FLASH_ATTENTION = flash("flash_attention", "Attention forward with streaming softmax, fp16", causal=False)
FLASH_ATTENTION_CAUSAL = flash(
    "flash_attention_causal", "Causal attention forward with streaming softmax, fp16", causal=True
)

PAGE = 16
"""Tokens in one page of the cache."""


def pages_per_sequence(sizes: Sizes) -> int:
    return ceil_div(sizes["S"], PAGE)


def paged_scalars(sizes: Sizes) -> dict[str, int | float]:
    width, kv_heads = sizes["D"], sizes["KV"]
    heads = kv_heads * sizes["G"]
    scalars: dict[str, int | float] = {"scale": width**-0.5, "table_width": pages_per_sequence(sizes)}
    for tensor in "qo":
        scalars |= {f"stride_{tensor}b": heads * width, f"stride_{tensor}h": width}
    for tensor in "kv":
        page = {f"stride_{tensor}p": PAGE * kv_heads * width, f"stride_{tensor}t": kv_heads * width}
        scalars |= {**page, f"stride_{tensor}h": width}
    return scalars


def paged_buffers(sizes: Sizes, rng: np.random.Generator) -> dict[str, Array]:
    sequences, kv_heads, width = sizes["B"], sizes["KV"], sizes["D"]
    per_sequence = pages_per_sequence(sizes)
    pages = sequences * per_sequence
    length = rng.integers(max(1, sizes["S"] // 2), sizes["S"] + 1, sequences, dtype=np.int32)
    # The first sequence has the full length, so that the longest case is always among them.
    length[0] = sizes["S"]
    cache = (pages, PAGE, kv_heads, width)
    return {
        "q_ptr": normal(rng, sequences, kv_heads * sizes["G"], width),
        "k_ptr": normal(rng, *cache),
        "v_ptr": normal(rng, *cache),
        "table_ptr": rng.permutation(pages).astype(np.int32).reshape(sequences, per_sequence),
        "length_ptr": length,
        "out_ptr": unwritten((sequences, kv_heads * sizes["G"], width), np.float16),
    }


def paged_expect(inputs: Inputs, sizes: Sizes) -> Mapping[str, Expected]:
    q, k, v = (np.asarray(inputs[name]) for name in ("q_ptr", "k_ptr", "v_ptr"))
    table, lengths = np.asarray(inputs["table_ptr"]), np.asarray(inputs["length_ptr"])
    value, bound = np.empty(q.shape), np.empty(q.shape)
    for sequence, length in enumerate(lengths):
        keys, values = (
            cache[table[sequence]].reshape(-1, sizes["KV"], sizes["D"])[:length].transpose(1, 0, 2)
            for cache in (k, v)
        )
        visible = np.ones((sizes["G"], length), dtype=bool)
        for head in range(sizes["KV"]):
            group = slice(head * sizes["G"], (head + 1) * sizes["G"])
            value[sequence, group], bound[sequence, group] = attend(
                q[sequence, group], keys[head], values[head], float(inputs["scale"]), visible
            )
    return {"out_ptr": Expected(value, bound, ATTENTION_WHY)}


def paged_config(n: int, warps: int, stages: int) -> Config:
    excluded = {75: "the tile needs more than its 64 KiB of shared memory."} if n > 64 else {}
    return Config(
        f"n{n}_w{warps}_s{stages}", {"BLOCK_N": n, "PAGE": PAGE}, warps, stages, unsupported=excluded
    )


PAGED_ATTENTION = Workload(
    name="paged_attention",
    title="One decoding step of grouped-query attention over a paged cache, fp16",
    language="triton",
    published=False,
    source=kernel_file("attention"),
    symbol="paged_attention",
    parameters=parameters(
        "q_ptr: *fp16, k_ptr: *fp16, v_ptr: *fp16, table_ptr: *i32, length_ptr: *i32, out_ptr: *fp16, "
        "scale: fp32, table_width: i32, "
        + strides("stride_qb stride_qh stride_kp stride_kt stride_kh stride_vp stride_vt stride_vh")
        + ", stride_ob: i32, stride_oh: i32"
    ),
    configs=(paged_config(32, 4, 3), paged_config(16, 2, 2), paged_config(64, 4, 2), paged_config(128, 8, 2)),
    sizes={"B": 16, "KV": 8, "G": 4, "S": 1024, "D": 128},
    shapes=(
        {"B": 2, "KV": 1, "G": 4, "S": 64, "D": 64},
        {"B": 3, "KV": 2, "G": 1, "S": 45, "D": 32},
    ),
    large={"B": 64, "KV": 8, "G": 8, "S": 8192, "D": 128},
    scalars=paged_scalars,
    buffers=paged_buffers,
    expect=paged_expect,
    blocks=lambda sizes, config: (sizes["B"], sizes["KV"], 1),
    derived=lambda sizes, config: {"HEAD_DIM": sizes["D"], "GROUP": sizes["G"]},
)

WORKLOADS = (FLASH_ATTENTION, FLASH_ATTENTION_CAUSAL, PAGED_ATTENTION)
