# ruff: noqa: PLR0917
"""Kernels that treat each element, or each row of a token, on its own."""

import triton
import triton.language as tl


@triton.jit
def vector_add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = index < n
    x = tl.load(x_ptr + index, mask=inside)
    y = tl.load(y_ptr + index, mask=inside)
    tl.store(out_ptr + index, x + y, mask=inside)


@triton.jit
def rope(
    q_ptr, cos_ptr, sin_ptr, out_ptr, H, stride_qt, stride_qh, stride_ot, stride_oh,
    HALF: tl.constexpr, BLOCK_H: tl.constexpr,
):  # fmt: skip
    token = tl.program_id(0)
    head = tl.program_id(1) * BLOCK_H + tl.arange(0, BLOCK_H)
    feature = tl.arange(0, HALF)
    inside = head[:, None] < H
    cos = tl.load(cos_ptr + token * HALF + feature)[None, :]
    sin = tl.load(sin_ptr + token * HALF + feature)[None, :]
    q_tile = q_ptr + token * stride_qt + head[:, None] * stride_qh + feature[None, :]
    # Features i and i + HALF form one rotated pair.
    low = tl.load(q_tile, mask=inside, other=0.0).to(tl.float32)
    high = tl.load(q_tile + HALF, mask=inside, other=0.0).to(tl.float32)
    out_tile = out_ptr + token * stride_ot + head[:, None] * stride_oh + feature[None, :]
    tl.store(out_tile, (low * cos - high * sin).to(out_ptr.dtype.element_ty), mask=inside)
    tl.store(out_tile + HALF, (high * cos + low * sin).to(out_ptr.dtype.element_ty), mask=inside)
