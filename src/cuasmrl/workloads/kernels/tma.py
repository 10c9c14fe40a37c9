# ruff: noqa: PLR0917
"""Kernels that leave copying to the tensor memory accelerator, by descriptors that they make themselves."""

import triton
import triton.language as tl


@triton.jit
def tile_of(pid, M, N, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, GROUP_M: tl.constexpr):
    # Neighbouring tiles walk down a band of GROUP_M tile rows, so that they share columns of B in L2.
    rows = tl.cdiv(M, BLOCK_M)
    columns = tl.cdiv(N, BLOCK_N)
    band = pid // (GROUP_M * columns)
    height = min(rows - band * GROUP_M, GROUP_M)
    inside = pid - band * GROUP_M * columns
    return band * GROUP_M + inside % height, inside // height


@triton.jit
def gemm_tma(
    a_ptr, b_ptr, c_ptr, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
    NUM_SMS: tl.constexpr, SPECIALISED: tl.constexpr,
):  # fmt: skip
    a_tiles = tl.make_tensor_descriptor(a_ptr, [M, K], [K, 1], [BLOCK_M, BLOCK_K])
    b_tiles = tl.make_tensor_descriptor(b_ptr, [N, K], [K, 1], [BLOCK_N, BLOCK_K])
    c_tiles = tl.make_tensor_descriptor(c_ptr, [M, N], [N, 1], [BLOCK_M, BLOCK_N])
    tiles = tl.cdiv(M, BLOCK_M) * tl.cdiv(N, BLOCK_N)
    for tile in tl.range(tl.program_id(0), tiles, NUM_SMS, warp_specialize=SPECIALISED):
        tile_m, tile_n = tile_of(tile, M, N, BLOCK_M, BLOCK_N, GROUP_M)
        row, column = tile_m * BLOCK_M, tile_n * BLOCK_N
        total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for done in range(0, K, BLOCK_K):
            a = a_tiles.load([row, done])
            b = b_tiles.load([column, done])
            total = tl.dot(a, b.T, total)
        c_tiles.store([row, column], total.to(c_ptr.dtype.element_ty))


@triton.jit
def gemm_fp8_blocks(
    a_ptr, b_ptr, c_ptr, a_scale_ptr, b_scale_ptr, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
    NUM_SMS: tl.constexpr,
):  # fmt: skip
    # A has a scale for each row and BLOCK_K columns, B one for each tile: sums of a block are promoted to
    # float32 before the next one.
    a_tiles = tl.make_tensor_descriptor(a_ptr, [M, K], [K, 1], [BLOCK_M, BLOCK_K])
    b_tiles = tl.make_tensor_descriptor(b_ptr, [N, K], [K, 1], [BLOCK_N, BLOCK_K])
    c_tiles = tl.make_tensor_descriptor(c_ptr, [M, N], [N, 1], [BLOCK_M, BLOCK_N])
    tiles = tl.cdiv(M, BLOCK_M) * tl.cdiv(N, BLOCK_N)
    blocks = tl.cdiv(K, BLOCK_K)
    for tile in tl.range(tl.program_id(0), tiles, NUM_SMS):
        tile_m, tile_n = tile_of(tile, M, N, BLOCK_M, BLOCK_N, GROUP_M)
        row, column = tile_m * BLOCK_M, tile_n * BLOCK_N
        rows = row + tl.arange(0, BLOCK_M)
        total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for block in range(blocks):
            a = a_tiles.load([row, block * BLOCK_K])
            b = b_tiles.load([column, block * BLOCK_K])
            a_scale = tl.load(a_scale_ptr + rows * blocks + block, mask=rows < M, other=0.0)
            b_scale = tl.load(b_scale_ptr + tile_n * blocks + block)
            total += tl.dot(a, b.T) * (a_scale[:, None] * b_scale)
        c_tiles.store([row, column], total.to(c_ptr.dtype.element_ty))


@triton.jit
def gemm_grouped(
    x_ptr, w_ptr, out_ptr, expert_ptr, rows, N, K, experts,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, NUM_SMS: tl.constexpr,
):  # fmt: skip
    # Rows are sorted by expert and padded, so that no tile has rows of two experts.
    x_tiles = tl.make_tensor_descriptor(x_ptr, [rows, K], [K, 1], [BLOCK_M, BLOCK_K])
    w_tiles = tl.make_tensor_descriptor(w_ptr, [experts, N, K], [N * K, K, 1], [1, BLOCK_N, BLOCK_K])
    out_tiles = tl.make_tensor_descriptor(out_ptr, [rows, N], [N, 1], [BLOCK_M, BLOCK_N])
    columns = tl.cdiv(N, BLOCK_N)
    for tile in tl.range(tl.program_id(0), rows // BLOCK_M * columns, NUM_SMS):
        row, column = tile // columns * BLOCK_M, tile % columns * BLOCK_N
        expert = tl.load(expert_ptr + tile // columns)
        total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for done in range(0, K, BLOCK_K):
            x = x_tiles.load([row, done])
            w = w_tiles.load([expert, column, done]).reshape(BLOCK_N, BLOCK_K)
            total = tl.dot(x, w.T, total)
        out_tiles.store([row, column], total.to(out_ptr.dtype.element_ty))


@triton.jit
def attention_tma(
    q_ptr, k_ptr, v_ptr, out_ptr, scale, heads, S,
    HEAD_DIM: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, SPECIALISED: tl.constexpr,
):  # fmt: skip
    apart = S * HEAD_DIM
    q_tiles = tl.make_tensor_descriptor(
        q_ptr, [heads, S, HEAD_DIM], [apart, HEAD_DIM, 1], [1, BLOCK_M, HEAD_DIM]
    )
    k_tiles = tl.make_tensor_descriptor(
        k_ptr, [heads, S, HEAD_DIM], [apart, HEAD_DIM, 1], [1, BLOCK_N, HEAD_DIM]
    )
    v_tiles = tl.make_tensor_descriptor(
        v_ptr, [heads, S, HEAD_DIM], [apart, HEAD_DIM, 1], [1, BLOCK_N, HEAD_DIM]
    )
    out_tiles = tl.make_tensor_descriptor(
        out_ptr, [heads, S, HEAD_DIM], [apart, HEAD_DIM, 1], [1, BLOCK_M, HEAD_DIM]
    )
    first = tl.program_id(0) * BLOCK_M
    head = tl.program_id(1)
    q = q_tiles.load([head, first, 0]).reshape(BLOCK_M, HEAD_DIM)
    # The hardware's exponential is base two: fold the change of base into the scale.
    to_log2 = scale * 1.4426950408889634
    peak = tl.full((BLOCK_M,), float("-inf"), dtype=tl.float32)
    weight = tl.zeros((BLOCK_M,), dtype=tl.float32)
    mixed = tl.zeros((BLOCK_M, HEAD_DIM), dtype=tl.float32)
    for start in tl.range(0, S, BLOCK_N, warp_specialize=SPECIALISED):
        k = k_tiles.load([head, start, 0]).reshape(BLOCK_N, HEAD_DIM)
        score = tl.dot(q, k.T) * to_log2
        score = tl.where((start + tl.arange(0, BLOCK_N))[None, :] < S, score, float("-inf"))
        higher = tl.maximum(peak, tl.max(score, 1))
        share = tl.exp2(score - higher[:, None])
        shrink = tl.exp2(peak - higher)
        weight = weight * shrink + tl.sum(share, 1)
        v = v_tiles.load([head, start, 0]).reshape(BLOCK_N, HEAD_DIM)
        mixed = tl.dot(share.to(v.dtype), v, mixed * shrink[:, None])
        peak = higher
    result = (mixed / weight[:, None]).to(out_ptr.dtype.element_ty)
    out_tiles.store([head, first, 0], result.reshape(1, BLOCK_M, HEAD_DIM))
