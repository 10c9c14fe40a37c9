# ruff: noqa: PLR0917
"""Row-wise normalisations: one block per row."""

import triton
import triton.language as tl


@triton.jit
def softmax(out_ptr, x_ptr, stride_out, stride_x, N, BLOCK_N: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK_N)
    inside = column < N
    x = tl.load(x_ptr + row * stride_x + column, mask=inside, other=float("-inf")).to(tl.float32)
    power = tl.exp(x - tl.max(x, 0))
    share = power / tl.sum(power, 0)
    tl.store(out_ptr + row * stride_out + column, share.to(out_ptr.dtype.element_ty), mask=inside)


@triton.jit
def rmsnorm(
    x_ptr, stride_xb, stride_xm, stride_xn, weight_ptr, stride_weight,
    out_ptr, stride_ob, stride_om, stride_on, N, eps, BLOCK_N: tl.constexpr,
):  # fmt: skip
    x_row = x_ptr + tl.program_id(0) * stride_xb + tl.program_id(1) * stride_xm
    out_row = out_ptr + tl.program_id(0) * stride_ob + tl.program_id(1) * stride_om
    lane = tl.arange(0, BLOCK_N)
    squares = tl.zeros((BLOCK_N,), dtype=tl.float32)
    for start in range(0, N, BLOCK_N):
        column = start + lane
        x = tl.load(x_row + column * stride_xn, mask=column < N, other=0.0).to(tl.float32)
        squares += x * x
    scale = tl.rsqrt(tl.sum(squares, 0) / N + eps)
    for start in range(0, N, BLOCK_N):
        column = start + lane
        inside = column < N
        # Second and last use of the row: it need not displace anything else from the cache.
        x = tl.load(x_row + column * stride_xn, mask=inside, other=0.0, eviction_policy="evict_first")
        weight = tl.load(weight_ptr + column * stride_weight, mask=inside, other=0.0).to(tl.float32)
        out = x.to(tl.float32) * scale * weight
        tl.store(out_row + column * stride_on, out.to(out_ptr.dtype.element_ty), mask=inside)


@triton.jit
def layernorm(
    x_ptr,
    weight_ptr,
    bias_ptr,
    out_ptr,
    mean_ptr,
    rstd_ptr,
    stride_x,
    stride_out,
    N,
    eps,
    BLOCK_N: tl.constexpr,
):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK_N)
    inside = column < N
    x = tl.load(x_ptr + row * stride_x + column, mask=inside, other=0.0).to(tl.float32)
    mean = tl.sum(x, 0) / N
    centred = tl.where(inside, x - mean, 0.0)
    rstd = 1 / tl.sqrt(tl.sum(centred * centred, 0) / N + eps)
    weight = tl.load(weight_ptr + column, mask=inside, other=0.0).to(tl.float32)
    bias = tl.load(bias_ptr + column, mask=inside, other=0.0).to(tl.float32)
    out = centred * rstd * weight + bias
    tl.store(out_ptr + row * stride_out + column, out.to(out_ptr.dtype.element_ty), mask=inside)
    # Training keeps both for the backward pass.
    tl.store(mean_ptr + row, mean)
    tl.store(rstd_ptr + row, rstd)


@triton.jit
def cross_entropy(logits_ptr, label_ptr, loss_ptr, stride_logits, V, ignored, BLOCK_V: tl.constexpr):
    row = tl.program_id(0)
    label = tl.load(label_ptr + row)
    logits_row = logits_ptr + row.to(tl.int64) * stride_logits
    peak = float("-inf")
    total = 0.0
    for start in range(0, V, BLOCK_V):
        column = start + tl.arange(0, BLOCK_V)
        x = tl.load(logits_row + column, mask=column < V, other=float("-inf")).to(tl.float32)
        higher = tl.maximum(peak, tl.max(x, 0))
        total = total * tl.exp(peak - higher) + tl.sum(tl.exp(x - higher), 0)
        peak = higher
    counted = label != ignored
    picked = tl.load(logits_row + label, mask=counted, other=0.0).to(tl.float32)
    tl.store(loss_ptr + row, tl.where(counted, peak + tl.log(total) - picked, 0.0))
