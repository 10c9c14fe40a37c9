"""Row-wise normalisations."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from cuasmrl.workloads.bounds import EPS32, EXP32, real, stored_as_half, summed
from cuasmrl.workloads.definitions.common import kernel_file, normal, parameters, strides, unwritten
from cuasmrl.workloads.model import Array, Config, Expected, Inputs, Sizes, Workload


def next_power_of_two(n: int) -> int:
    return 1 << (n - 1).bit_length()


def softmax_buffers(sizes: Sizes, rng: np.random.Generator) -> dict[str, Array]:
    shape = (sizes["M"], sizes["N"])
    return {"out_ptr": unwritten(shape, np.float16), "x_ptr": normal(rng, *shape, scale=2.0)}


def softmax_expect(inputs: Inputs, sizes: Sizes) -> Mapping[str, Expected]:
    x = real(inputs["x_ptr"])
    below = x - x.max(axis=1, keepdims=True)
    power = np.exp(below)
    value = power / power.sum(axis=1, keepdims=True)
    # The exponent is scaled to base two in float32, so its rounding grows with its size.
    relative = EXP32 + 2 * np.abs(below).max() * EPS32 + (sizes["N"] + 4) * EPS32
    why = "one exponential, N float32 additions and a division, then one rounding to half"
    return {"out_ptr": Expected(value, stored_as_half(value, relative * value), why)}


SOFTMAX = Workload(
    name="softmax",
    title="Softmax of each row, fp16",
    language="triton",
    published=True,
    source=kernel_file("normalisation"),
    symbol="softmax",
    parameters=parameters("out_ptr: *fp16, x_ptr: *fp16, stride_out: i32, stride_x: i32, N: i32"),
    configs=(Config("w4", num_warps=4), Config("w2", num_warps=2), Config("w8", num_warps=8)),
    sizes={"M": 512, "N": 4096},
    shapes=({"M": 4, "N": 256}, {"M": 3, "N": 1000}, {"M": 5, "N": 77}),
    large={"M": 32768, "N": 8192},
    scalars=lambda sizes: {"stride_out": sizes["N"], "stride_x": sizes["N"], "N": sizes["N"]},
    buffers=softmax_buffers,
    expect=softmax_expect,
    blocks=lambda sizes, config: (sizes["M"], 1, 1),
    derived=lambda sizes, config: {"BLOCK_N": next_power_of_two(sizes["N"])},
)


def rmsnorm_scalars(sizes: Sizes) -> dict[str, int | float]:
    rows, columns = sizes["S"], sizes["H"] * sizes["D"]
    scalars: dict[str, int | float] = {"stride_weight": 1, "N": columns, "eps": 1e-6}
    for tensor in "xo":
        scalars |= {f"stride_{tensor}b": rows * columns, f"stride_{tensor}m": columns, f"stride_{tensor}n": 1}
    return scalars


def rmsnorm_buffers(sizes: Sizes, rng: np.random.Generator) -> dict[str, Array]:
    columns = sizes["H"] * sizes["D"]
    shape = (sizes["B"], sizes["S"], columns)
    return {
        "x_ptr": normal(rng, *shape),
        "weight_ptr": normal(rng, columns, scale=0.2) + np.float16(1),
        "out_ptr": unwritten(shape, np.float16),
    }


def rmsnorm_expect(inputs: Inputs, sizes: Sizes) -> Mapping[str, Expected]:
    x, weight = real(inputs["x_ptr"]), real(inputs["weight_ptr"])
    mean_square = np.mean(x * x, axis=-1, keepdims=True)
    value = x / np.sqrt(mean_square + float(inputs["eps"])) * weight
    # rsqrt halves the relative error of its argument and adds 2 ulp of its own (PTX ISA "rsqrt").
    relative = (x.shape[-1] / 2 + 8) * EPS32
    why = "N float32 additions under a reciprocal root, two products, then one rounding to half"
    return {"out_ptr": Expected(value, stored_as_half(value, relative * np.abs(value)), why)}


RMSNORM = Workload(
    name="rmsnorm",
    title="RMS normalisation of each token in two passes over blocks of the row, fp16",
    language="triton",
    published=True,
    source=kernel_file("normalisation"),
    symbol="rmsnorm",
    parameters=parameters(
        "x_ptr: *fp16, "
        + strides("stride_xb stride_xm stride_xn")
        + ", weight_ptr: *fp16, stride_weight: i32, "
        "out_ptr: *fp16, " + strides("stride_ob stride_om stride_on") + ", N: i32, eps: fp32"
    ),
    configs=(
        # The paper's block, with the row length known at run time or at compile time: the published
        # benchmark compares one against the other.
        Config("n32_w4", {"BLOCK_N": 32}, num_warps=4),
        Config("n32_w4_fixed", {"BLOCK_N": 32}, num_warps=4, fold=("N",)),
        Config("n1024_w4", {"BLOCK_N": 1024}, num_warps=4),
        Config("n1024_w8", {"BLOCK_N": 1024}, num_warps=8),
    ),
    # Heads are merged before the norm, so a row is H x D = 2048 long and there is one per token.
    sizes={"B": 1, "H": 32, "S": 4096, "D": 64},
    shapes=(
        {"B": 1, "H": 4, "S": 4, "D": 64},
        {"B": 2, "H": 3, "S": 5, "D": 20},
        {"B": 1, "H": 1, "S": 3, "D": 1500},
    ),
    large={"B": 4, "H": 32, "S": 4096, "D": 128},
    scalars=rmsnorm_scalars,
    buffers=rmsnorm_buffers,
    expect=rmsnorm_expect,
    blocks=lambda sizes, config: (sizes["B"], sizes["S"], 1),
)


def layernorm_scalars(sizes: Sizes) -> dict[str, int | float]:
    return {"stride_x": sizes["N"], "stride_out": sizes["N"], "N": sizes["N"], "eps": 1e-5}


def layernorm_buffers(sizes: Sizes, rng: np.random.Generator) -> dict[str, Array]:
    m, n = sizes["M"], sizes["N"]
    return {
        "x_ptr": normal(rng, m, n) + np.float16(0.5),
        "weight_ptr": normal(rng, n, scale=0.2) + np.float16(1),
        "bias_ptr": normal(rng, n, scale=0.2),
        "out_ptr": unwritten((m, n), np.float16),
        "mean_ptr": unwritten((m,), np.float32),
        "rstd_ptr": unwritten((m,), np.float32),
    }


def layernorm_expect(inputs: Inputs, sizes: Sizes) -> Mapping[str, Expected]:
    x, weight, bias = real(inputs["x_ptr"]), real(inputs["weight_ptr"]), real(inputs["bias_ptr"])
    n = sizes["N"]
    mean = x.mean(axis=1, keepdims=True)
    mean_error = summed(n + 1, np.abs(x).mean(axis=1, keepdims=True))
    centred = x - mean
    variance = np.mean(centred**2, axis=1, keepdims=True)
    rstd = 1 / np.sqrt(variance + float(inputs["eps"]))
    # A shifted mean moves the variance by its square only; sqrt and division add 1 ulp each.
    rstd_relative = (n / 2 + 8) * EPS32 + 0.5 * (mean_error * rstd) ** 2
    scaled = centred * rstd * weight
    value = scaled + bias
    error = (rstd_relative + 4 * EPS32) * np.abs(scaled) + mean_error * rstd * np.abs(weight)
    error = error + EPS32 * np.abs(value)
    row_why = "N float32 additions in any order"
    why = "N float32 additions for mean and for variance, then one rounding to half"
    return {
        "out_ptr": Expected(value, stored_as_half(value, error), why),
        "mean_ptr": Expected(mean[:, 0], mean_error[:, 0], row_why),
        "rstd_ptr": Expected(rstd[:, 0], (rstd_relative * rstd)[:, 0], row_why + ", a root and a division"),
    }


LAYERNORM = Workload(
    name="layernorm",
    title="Layer normalisation of each row, keeping mean and deviation, fp16",
    language="triton",
    published=False,
    source=kernel_file("normalisation"),
    symbol="layernorm",
    parameters=parameters(
        "x_ptr: *fp16, weight_ptr: *fp16, bias_ptr: *fp16, out_ptr: *fp16, mean_ptr: *fp32, rstd_ptr: *fp32, "
        "stride_x: i32, stride_out: i32, N: i32, eps: fp32"
    ),
    configs=(Config("w4", num_warps=4), Config("w8", num_warps=8)),
    sizes={"M": 512, "N": 2048},
    shapes=({"M": 4, "N": 256}, {"M": 3, "N": 1000}, {"M": 5, "N": 77}),
    large={"M": 16384, "N": 8192},
    scalars=layernorm_scalars,
    buffers=layernorm_buffers,
    expect=layernorm_expect,
    blocks=lambda sizes, config: (sizes["M"], 1, 1),
    derived=lambda sizes, config: {"BLOCK_N": next_power_of_two(sizes["N"])},
)

IGNORED_LABEL = -100


def entropy_buffers(sizes: Sizes, rng: np.random.Generator) -> dict[str, Array]:
    m, v = sizes["M"], sizes["V"]
    label = rng.integers(0, v, m, dtype=np.int32)
    label[rng.random(m) < 0.2] = IGNORED_LABEL
    return {
        "logits_ptr": normal(rng, m, v, scale=2.0),
        "label_ptr": label,
        "loss_ptr": unwritten((m,), np.float32),
    }


def entropy_expect(inputs: Inputs, sizes: Sizes) -> Mapping[str, Expected]:
    x, label = real(inputs["logits_ptr"]), np.asarray(inputs["label_ptr"])
    peak = x.max(axis=1)
    log_total = np.log(np.exp(x - peak[:, None]).sum(axis=1))
    counted = label != IGNORED_LABEL
    picked = x[np.arange(len(label)), np.where(counted, label, 0)]
    value = np.where(counted, peak + log_total - picked, 0.0)
    # The sum's relative error is the logarithm's absolute error.
    spread = 2 * (peak - x.min(axis=1)) * EPS32
    total_relative = 2 * EXP32 + spread + (sizes["V"] + 4) * EPS32
    error = total_relative + 4 * EPS32 * (np.abs(peak) + np.abs(log_total) + np.abs(picked))
    why = "V exponentials summed in float32, one logarithm, two additions"
    return {"loss_ptr": Expected(value, np.where(counted, error, 0.0), why)}


CROSS_ENTROPY = Workload(
    name="cross_entropy",
    title="Cross-entropy of each token's logits with a streaming log-sum-exp, fp16",
    language="triton",
    published=False,
    source=kernel_file("normalisation"),
    symbol="cross_entropy",
    parameters=parameters(
        "logits_ptr: *fp16, label_ptr: *i32, loss_ptr: *fp32, stride_logits: i32, V: i32, ignored: i32"
    ),
    configs=(
        Config("v1024_w4", {"BLOCK_V": 1024}, num_warps=4),
        Config("v2048_w8", {"BLOCK_V": 2048}, num_warps=8),
        Config("v4096_w8", {"BLOCK_V": 4096}, num_warps=8),
    ),
    sizes={"M": 256, "V": 32000},
    shapes=({"M": 4, "V": 2048}, {"M": 3, "V": 1000}, {"M": 5, "V": 5003}),
    large={"M": 8192, "V": 128256},
    scalars=lambda sizes: {"stride_logits": sizes["V"], "V": sizes["V"], "ignored": IGNORED_LABEL},
    buffers=entropy_buffers,
    expect=entropy_expect,
    blocks=lambda sizes, config: (sizes["M"], 1, 1),
)

WORKLOADS = (SOFTMAX, RMSNORM, LAYERNORM, CROSS_ENTROPY)
