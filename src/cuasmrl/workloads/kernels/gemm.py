# ruff: noqa: PLR0917
"""Dense matrix products with fused epilogues."""

import triton
import triton.language as tl


@triton.jit
def tile_of(pid, M, N, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, GROUP_M: tl.constexpr):
    # Neighbouring blocks walk down a band of GROUP_M tile rows, so that they share columns of B in L2.
    rows = tl.cdiv(M, BLOCK_M)
    columns = tl.cdiv(N, BLOCK_N)
    band = pid // (GROUP_M * columns)
    height = min(rows - band * GROUP_M, GROUP_M)
    inside = pid - band * GROUP_M * columns
    return band * GROUP_M + inside % height, inside // height


@triton.jit
def product(
    a_tile, b_tile, K, step_a, step_b, row_ok, column_ok,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, ACC: tl.constexpr,
):  # fmt: skip
    depth = tl.arange(0, BLOCK_K)
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=ACC)
    for done in range(0, K, BLOCK_K):
        inside = depth < K - done
        a = tl.load(a_tile, mask=row_ok[:, None] & inside[None, :], other=0.0)
        b = tl.load(b_tile, mask=inside[:, None] & column_ok[None, :], other=0.0)
        total = tl.dot(a, b, total, out_dtype=ACC)
        a_tile += BLOCK_K * step_a
        b_tile += BLOCK_K * step_b
    return total


@triton.jit
def gemm_leaky_relu(
    a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
):  # fmt: skip
    tile_m, tile_n = tile_of(tl.program_id(0), M, N, BLOCK_M, BLOCK_N, GROUP_M)
    row = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)
    column = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)
    depth = tl.arange(0, BLOCK_K)
    a_tile = a_ptr + row[:, None] * stride_am + depth[None, :] * stride_ak
    b_tile = b_ptr + depth[:, None] * stride_bk + column[None, :] * stride_bn
    total = product(
        a_tile, b_tile, K, stride_ak, stride_bk, row < M, column < N, BLOCK_M, BLOCK_N, BLOCK_K, tl.float32
    )
    active = tl.where(total > 0, total, 0.01 * total)
    c_tile = c_ptr + row[:, None] * stride_cm + column[None, :] * stride_cn
    tl.store(c_tile, active.to(c_ptr.dtype.element_ty), mask=(row[:, None] < M) & (column[None, :] < N))


@triton.jit
def bmm(
    a_ptr, b_ptr, c_ptr, M, N, K,
    stride_ab, stride_am, stride_ak, stride_bb, stride_bk, stride_bn, stride_cb, stride_cm, stride_cn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
):  # fmt: skip
    batch = tl.program_id(1).to(tl.int64)
    tile_m, tile_n = tile_of(tl.program_id(0), M, N, BLOCK_M, BLOCK_N, GROUP_M)
    row = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)
    column = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)
    depth = tl.arange(0, BLOCK_K)
    a_tile = a_ptr + batch * stride_ab + row[:, None] * stride_am + depth[None, :] * stride_ak
    b_tile = b_ptr + batch * stride_bb + depth[:, None] * stride_bk + column[None, :] * stride_bn
    total = product(
        a_tile, b_tile, K, stride_ak, stride_bk, row < M, column < N, BLOCK_M, BLOCK_N, BLOCK_K, tl.float32
    )
    c_tile = c_ptr + batch * stride_cb + row[:, None] * stride_cm + column[None, :] * stride_cn
    tl.store(c_tile, total.to(c_ptr.dtype.element_ty), mask=(row[:, None] < M) & (column[None, :] < N))


@triton.jit
def fused_ff(
    x_ptr, w1_ptr, w3_ptr, out_ptr, M, N, K,
    stride_xm, stride_xk, stride_w1k, stride_w1n, stride_w3k, stride_w3n, stride_om, stride_on,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    columns = tl.cdiv(N, BLOCK_N)
    pid = tl.program_id(0)
    row = (pid // columns) * BLOCK_M + tl.arange(0, BLOCK_M)
    column = (pid % columns) * BLOCK_N + tl.arange(0, BLOCK_N)
    depth = tl.arange(0, BLOCK_K)
    x_tile = x_ptr + row[:, None] * stride_xm + depth[None, :] * stride_xk
    gate_tile = w1_ptr + depth[:, None] * stride_w1k + column[None, :] * stride_w1n
    up_tile = w3_ptr + depth[:, None] * stride_w3k + column[None, :] * stride_w3n
    gate = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    up = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for done in range(0, K, BLOCK_K):
        inside = depth < K - done
        x = tl.load(x_tile, mask=(row[:, None] < M) & inside[None, :], other=0.0)
        w_mask = inside[:, None] & (column[None, :] < N)
        gate = tl.dot(x, tl.load(gate_tile, mask=w_mask, other=0.0), gate)
        up = tl.dot(x, tl.load(up_tile, mask=w_mask, other=0.0), up)
        x_tile += BLOCK_K * stride_xk
        gate_tile += BLOCK_K * stride_w1k
        up_tile += BLOCK_K * stride_w3k
    out = gate * tl.sigmoid(gate) * up
    out_tile = out_ptr + row[:, None] * stride_om + column[None, :] * stride_on
    tl.store(out_tile, out.to(out_ptr.dtype.element_ty), mask=(row[:, None] < M) & (column[None, :] < N))


@triton.jit
def gemm_int8(
    a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_ak, stride_bn, stride_bk, stride_cm, stride_cn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
):  # fmt: skip
    tile_m, tile_n = tile_of(tl.program_id(0), M, N, BLOCK_M, BLOCK_N, GROUP_M)
    row = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)
    column = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)
    depth = tl.arange(0, BLOCK_K)
    a_tile = a_ptr + row[:, None] * stride_am + depth[None, :] * stride_ak
    b_tile = b_ptr + depth[:, None] * stride_bk + column[None, :] * stride_bn
    total = product(
        a_tile, b_tile, K, stride_ak, stride_bk, row < M, column < N, BLOCK_M, BLOCK_N, BLOCK_K, tl.int32
    )
    c_tile = c_ptr + row[:, None] * stride_cm + column[None, :] * stride_cn
    tl.store(c_tile, total, mask=(row[:, None] < M) & (column[None, :] < N))


@triton.jit
def gemm_fp8(
    a_ptr, b_ptr, c_ptr, scale_a, scale_b, M, N, K,
    stride_am, stride_ak, stride_bn, stride_bk, stride_cm, stride_cn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
):  # fmt: skip
    tile_m, tile_n = tile_of(tl.program_id(0), M, N, BLOCK_M, BLOCK_N, GROUP_M)
    row = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)
    column = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)
    depth = tl.arange(0, BLOCK_K)
    a_tile = a_ptr + row[:, None] * stride_am + depth[None, :] * stride_ak
    b_tile = b_ptr + depth[:, None] * stride_bk + column[None, :] * stride_bn
    total = product(
        a_tile, b_tile, K, stride_ak, stride_bk, row < M, column < N, BLOCK_M, BLOCK_N, BLOCK_K, tl.float32
    )
    scaled = total * (scale_a * scale_b)
    c_tile = c_ptr + row[:, None] * stride_cm + column[None, :] * stride_cn
    tl.store(c_tile, scaled.to(c_ptr.dtype.element_ty), mask=(row[:, None] < M) & (column[None, :] < N))
