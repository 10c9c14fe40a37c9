# ruff: noqa: PLR0917
"""Matrix products that differ in how work is spread over blocks."""

import triton
import triton.language as tl


@triton.jit
def gemm_persistent(
    a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, NUM_SMS: tl.constexpr,
):  # fmt: skip
    columns = tl.cdiv(N, BLOCK_N)
    tiles = tl.cdiv(M, BLOCK_M) * columns
    depth = tl.arange(0, BLOCK_K)
    for tile in tl.range(tl.program_id(0), tiles, NUM_SMS):
        row = (tile // columns) * BLOCK_M + tl.arange(0, BLOCK_M)
        column = (tile % columns) * BLOCK_N + tl.arange(0, BLOCK_N)
        a_tile = a_ptr + row[:, None] * stride_am + depth[None, :] * stride_ak
        b_tile = b_ptr + depth[:, None] * stride_bk + column[None, :] * stride_bn
        total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for done in range(0, K, BLOCK_K):
            inside = depth < K - done
            a = tl.load(a_tile, mask=(row[:, None] < M) & inside[None, :], other=0.0)
            b = tl.load(b_tile, mask=inside[:, None] & (column[None, :] < N), other=0.0)
            total = tl.dot(a, b, total)
            a_tile += BLOCK_K * stride_ak
            b_tile += BLOCK_K * stride_bk
        c_tile = c_ptr + row[:, None] * stride_cm + column[None, :] * stride_cn
        tl.store(c_tile, total.to(c_ptr.dtype.element_ty), mask=(row[:, None] < M) & (column[None, :] < N))


@triton.jit
def gemm_splitk(
    a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, SPLIT_K: tl.constexpr,
):  # fmt: skip
    columns = tl.cdiv(N, BLOCK_N)
    tile = tl.program_id(0)
    row = (tile // columns) * BLOCK_M + tl.arange(0, BLOCK_M)
    column = (tile % columns) * BLOCK_N + tl.arange(0, BLOCK_N)
    depth = tl.program_id(1) * BLOCK_K + tl.arange(0, BLOCK_K)
    a_tile = a_ptr + row[:, None] * stride_am + depth[None, :] * stride_ak
    b_tile = b_ptr + depth[:, None] * stride_bk + column[None, :] * stride_bn
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for done in range(0, K, BLOCK_K * SPLIT_K):
        inside = depth < K - done
        a = tl.load(a_tile, mask=(row[:, None] < M) & inside[None, :], other=0.0)
        b = tl.load(b_tile, mask=inside[:, None] & (column[None, :] < N), other=0.0)
        total = tl.dot(a, b, total)
        a_tile += BLOCK_K * SPLIT_K * stride_ak
        b_tile += BLOCK_K * SPLIT_K * stride_bk
    c_tile = c_ptr + row[:, None] * stride_cm + column[None, :] * stride_cn
    tl.atomic_add(c_tile, total, mask=(row[:, None] < M) & (column[None, :] < N), sem="relaxed")


@triton.jit
def moe_gemm(
    x_ptr, w_ptr, out_ptr, slot_ptr, expert_ptr, gate_ptr, used_ptr, N, K, slots,
    stride_xt, stride_xk, stride_we, stride_wn, stride_wk, stride_os, stride_on,
    TOP_K: tl.constexpr, ROUTE: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    first = tl.program_id(0) * BLOCK_M
    # The grid covers the worst routing; most of it has nothing to do.
    if first >= tl.load(used_ptr):
        return
    slot = tl.load(slot_ptr + first + tl.arange(0, BLOCK_M))
    real = slot < slots
    expert = tl.load(expert_ptr + first // ROUTE).to(tl.int64)
    column = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    depth = tl.arange(0, BLOCK_K)
    x_tile = x_ptr + (slot // TOP_K)[:, None] * stride_xt + depth[None, :] * stride_xk
    w_tile = w_ptr + expert * stride_we + depth[:, None] * stride_wk + column[None, :] * stride_wn
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for done in range(0, K, BLOCK_K):
        inside = depth < K - done
        x = tl.load(x_tile, mask=real[:, None] & inside[None, :], other=0.0)
        w = tl.load(w_tile, mask=inside[:, None] & (column[None, :] < N), other=0.0)
        total = tl.dot(x, w, total)
        x_tile += BLOCK_K * stride_xk
        w_tile += BLOCK_K * stride_wk
    gate = tl.load(gate_ptr + slot, mask=real, other=0.0)
    out_tile = out_ptr + slot[:, None] * stride_os + column[None, :] * stride_on
    weighted = total * gate[:, None]
    tl.store(out_tile, weighted.to(out_ptr.dtype.element_ty), mask=real[:, None] & (column[None, :] < N))
