"""Kernels that treat each element, or each token, on its own."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from cuasmrl.workloads.bounds import EPS32, real, stored_as_half
from cuasmrl.workloads.definitions.common import ceil_div, kernel_file, normal, parameters, unwritten
from cuasmrl.workloads.model import Array, Config, Expected, Inputs, Sizes, Workload


def add_buffers(sizes: Sizes, rng: np.random.Generator) -> dict[str, Array]:
    n = sizes["n"]
    return {"x_ptr": normal(rng, n), "y_ptr": normal(rng, n), "out_ptr": unwritten((n,), np.float16)}


VECTOR_ADD = Workload(
    name="vector_add",
    title="Sum of two vectors, fp16",
    language="triton",
    published=False,
    source=kernel_file("elementwise"),
    symbol="vector_add",
    parameters=parameters("x_ptr: *fp16, y_ptr: *fp16, out_ptr: *fp16, n: i32"),
    configs=(
        Config("b1024_w4", {"BLOCK": 1024}, num_warps=4),
        Config("b256_w2", {"BLOCK": 256}, num_warps=2),
        Config("b4096_w8", {"BLOCK": 4096}, num_warps=8),
    ),
    sizes={"n": 1 << 20},
    shapes=({"n": 1024}, {"n": 1000}, {"n": 4099}),
    large={"n": 1 << 28},
    scalars=lambda sizes: {"n": sizes["n"]},
    buffers=add_buffers,
    expect=lambda inputs, sizes: {
        "out_ptr": Expected(
            value := real(inputs["x_ptr"]) + real(inputs["y_ptr"]),
            stored_as_half(value, 0.0),
            "one rounding to half",
        )
    },
    blocks=lambda sizes, config: (ceil_div(sizes["n"], int(config.constants["BLOCK"])), 1, 1),
)


def rope_scalars(sizes: Sizes) -> dict[str, int]:
    token, head = sizes["H"] * sizes["D"], sizes["D"]
    return {"H": sizes["H"], "stride_qt": token, "stride_qh": head, "stride_ot": token, "stride_oh": head}


def rope_buffers(sizes: Sizes, rng: np.random.Generator) -> dict[str, Array]:
    tokens, heads, width = sizes["T"], sizes["H"], sizes["D"]
    frequency = 10000.0 ** (-np.arange(width // 2) / (width // 2))
    angle = np.arange(tokens)[:, None] * frequency
    return {
        "q_ptr": normal(rng, tokens, heads, width),
        "cos_ptr": np.cos(angle).astype(np.float32),
        "sin_ptr": np.sin(angle).astype(np.float32),
        "out_ptr": unwritten((tokens, heads, width), np.float16),
    }


def rope_expect(inputs: Inputs, sizes: Sizes) -> Mapping[str, Expected]:
    low, high = np.split(real(inputs["q_ptr"]), 2, axis=-1)
    cos, sin = real(inputs["cos_ptr"])[:, None, :], real(inputs["sin_ptr"])[:, None, :]
    value = np.concatenate([low * cos - high * sin, high * cos + low * sin], axis=-1)
    terms = np.abs(low * cos) + np.abs(high * sin), np.abs(high * cos) + np.abs(low * sin)
    error = 2 * EPS32 * np.concatenate(terms, axis=-1)
    why = "two float32 products and their sum, then one rounding to half"
    return {"out_ptr": Expected(value, stored_as_half(value, error), why)}


ROPE = Workload(
    name="rope",
    title="Rotary position embedding of each head, fp16",
    language="triton",
    published=False,
    source=kernel_file("elementwise"),
    symbol="rope",
    parameters=parameters(
        "q_ptr: *fp16, cos_ptr: *fp32, sin_ptr: *fp32, out_ptr: *fp16, H: i32, "
        "stride_qt: i32, stride_qh: i32, stride_ot: i32, stride_oh: i32"
    ),
    configs=(
        Config("h4_w4", {"BLOCK_H": 4}, num_warps=4),
        Config("h16_w4", {"BLOCK_H": 16}, num_warps=4),
        Config("h32_w8", {"BLOCK_H": 32}, num_warps=8),
    ),
    sizes={"T": 2048, "H": 32, "D": 128},
    shapes=({"T": 4, "H": 8, "D": 64}, {"T": 3, "H": 5, "D": 32}),
    large={"T": 32768, "H": 32, "D": 128},
    scalars=rope_scalars,
    buffers=rope_buffers,
    expect=rope_expect,
    blocks=lambda sizes, config: (sizes["T"], ceil_div(sizes["H"], int(config.constants["BLOCK_H"])), 1),
    derived=lambda sizes, config: {"HALF": sizes["D"] // 2},
)

WORKLOADS = (VECTOR_ADD, ROPE)
