# ruff: noqa: PLR0917
"""Attention: all queries of a prompt, and one query against a paged cache."""

import triton
import triton.language as tl


@triton.jit
def flash_attention(
    q_ptr, k_ptr, v_ptr, out_ptr, scale, H, S,
    stride_qb, stride_qh, stride_qs, stride_qd, stride_kb, stride_kh, stride_ks, stride_kd,
    stride_vb, stride_vh, stride_vs, stride_vd, stride_ob, stride_oh, stride_os, stride_od,
    HEAD_DIM: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, CAUSAL: tl.constexpr,
):  # fmt: skip
    batch = tl.program_id(1) // H
    head = tl.program_id(1) % H
    query = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    key = tl.arange(0, BLOCK_N)
    feature = tl.arange(0, HEAD_DIM)
    q_head = q_ptr + batch * stride_qb + head * stride_qh
    k_head = k_ptr + batch * stride_kb + head * stride_kh
    v_head = v_ptr + batch * stride_vb + head * stride_vh
    q_tile = q_head + query[:, None] * stride_qs + feature[None, :] * stride_qd
    # K is addressed with features down and keys across, so that the first product needs no transpose.
    k_tile = k_head + feature[:, None] * stride_kd + key[None, :] * stride_ks
    v_tile = v_head + key[:, None] * stride_vs + feature[None, :] * stride_vd
    q = tl.load(q_tile, mask=query[:, None] < S, other=0.0)
    # The hardware's exponential is base two: fold the change of base into the scale.
    to_log2 = scale * 1.4426950408889634
    peak = tl.full((BLOCK_M,), float("-inf"), dtype=tl.float32)
    weight = tl.zeros((BLOCK_M,), dtype=tl.float32)
    mixed = tl.zeros((BLOCK_M, HEAD_DIM), dtype=tl.float32)
    last = min(S, (tl.program_id(0) + 1) * BLOCK_M) if CAUSAL else S
    for start in range(0, last, BLOCK_N):
        position = start + key
        k = tl.load(k_tile, mask=position[None, :] < S, other=0.0)
        score = tl.dot(q, k) * to_log2
        visible = position[None, :] < S
        if CAUSAL:
            visible = visible & (query[:, None] >= position[None, :])
        score = tl.where(visible, score, float("-inf"))
        higher = tl.maximum(peak, tl.max(score, 1))
        share = tl.exp2(score - higher[:, None])
        shrink = tl.exp2(peak - higher)
        weight = weight * shrink + tl.sum(share, 1)
        v = tl.load(v_tile, mask=position[:, None] < S, other=0.0)
        mixed = tl.dot(share.to(v.dtype), v, mixed * shrink[:, None])
        peak = higher
        k_tile += BLOCK_N * stride_ks
        v_tile += BLOCK_N * stride_vs
    mixed = mixed / weight[:, None]
    out_head = out_ptr + batch * stride_ob + head * stride_oh
    out_tile = out_head + query[:, None] * stride_os + feature[None, :] * stride_od
    tl.store(out_tile, mixed.to(out_ptr.dtype.element_ty), mask=query[:, None] < S)


@triton.jit
def paged_attention(
    q_ptr, k_ptr, v_ptr, table_ptr, length_ptr, out_ptr, scale, table_width,
    stride_qb, stride_qh, stride_kp, stride_kt, stride_kh, stride_vp, stride_vt, stride_vh,
    stride_ob, stride_oh,
    HEAD_DIM: tl.constexpr, GROUP: tl.constexpr, PAGE: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    sequence = tl.program_id(0)
    kv_head = tl.program_id(1)
    # A tensor-core tile has 16 rows: the query heads that share this key head fill the first GROUP of them.
    member = tl.arange(0, 16)
    feature = tl.arange(0, HEAD_DIM)
    head = kv_head * GROUP + member
    q_tile = q_ptr + sequence * stride_qb + head[:, None] * stride_qh + feature[None, :]
    q = tl.load(q_tile, mask=member[:, None] < GROUP, other=0.0)
    length = tl.load(length_ptr + sequence)
    to_log2 = scale * 1.4426950408889634
    peak = tl.full((16,), float("-inf"), dtype=tl.float32)
    weight = tl.zeros((16,), dtype=tl.float32)
    mixed = tl.zeros((16, HEAD_DIM), dtype=tl.float32)
    for start in range(0, length, BLOCK_N):
        position = start + tl.arange(0, BLOCK_N)
        known = position < length
        entry = table_ptr + sequence * table_width + position // PAGE
        page = tl.load(entry, mask=known, other=0).to(tl.int64)
        k_row = page * stride_kp + (position % PAGE) * stride_kt + kv_head * stride_kh
        v_row = page * stride_vp + (position % PAGE) * stride_vt + kv_head * stride_vh
        k = tl.load(k_ptr + k_row[None, :] + feature[:, None], mask=known[None, :], other=0.0)
        v = tl.load(v_ptr + v_row[:, None] + feature[None, :], mask=known[:, None], other=0.0)
        score = tl.where(known[None, :], tl.dot(q, k) * to_log2, float("-inf"))
        higher = tl.maximum(peak, tl.max(score, 1))
        share = tl.exp2(score - higher[:, None])
        shrink = tl.exp2(peak - higher)
        weight = weight * shrink + tl.sum(share, 1)
        mixed = tl.dot(share.to(v.dtype), v, mixed * shrink[:, None])
        peak = higher
    out_tile = out_ptr + sequence * stride_ob + head[:, None] * stride_oh + feature[None, :]
    tl.store(out_tile, (mixed / weight[:, None]).to(out_ptr.dtype.element_ty), mask=member[:, None] < GROUP)
