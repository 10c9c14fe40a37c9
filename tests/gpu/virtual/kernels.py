"""Triton kernels for the tests: small, and each for one way of passing arguments."""

# mypy: disable-error-code="no-untyped-def,untyped-decorator,attr-defined,valid-type"
# ruff: noqa: N803, PLR0917

import triton
import triton.language as tl


@triton.jit
def add(x, y, z, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(z + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)


@triton.jit
def softmax(x, z, columns, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    row = tl.load(x + tl.program_id(0) * columns + i, mask=i < columns, other=float("-inf"))
    powers = tl.exp(row - tl.max(row))
    tl.store(z + tl.program_id(0) * columns + i, powers / tl.sum(powers), mask=i < columns)


@triton.jit
def multiply(a, b, c, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    i, j, inner = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    sums = tl.zeros((M, N), tl.float32)
    for start in range(0, k, K):
        left = tl.load(a + i[:, None] * k + start + inner[None, :])
        right = tl.load(b + (start + inner)[:, None] * N + j[None, :])
        sums += tl.dot(left, right)
    tl.store(c + i[:, None] * N + j[None, :], sums)


@triton.jit
def total(x, z, BLOCK: tl.constexpr):
    """Crosses warps, so it needs shared memory."""
    i = tl.arange(0, BLOCK)
    tl.store(z, tl.sum(tl.load(x + i)))


@triton.jit
def scalars(
    out,
    flag,
    small: tl.int8,
    unsigned: tl.uint16,
    wide,
    half: tl.float16,
    brain: tl.bfloat16,
    single,
    double: tl.float64,
    maybe,
    one,
):
    value = small + unsigned + wide + one
    tl.store(out, value)
    tl.store(out + 1, (half + brain + single).to(tl.int64))
    tl.store(out + 2, double.to(tl.int64))
    if flag:
        tl.store(out + 3, 1)
    if maybe is not None:
        tl.store(out + 4, 1)


@triton.jit
def strided(x, z, rows, step, COLUMNS: tl.constexpr):
    i = tl.arange(0, COLUMNS)
    for row in range(rows):
        tl.store(z + row * COLUMNS + i, tl.load(x + row * step + i))


@triton.jit
def pair(pointers, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(pointers[1] + i, tl.load(pointers[0] + i, mask=i < n), mask=i < n)


@triton.jit
def described(source, z, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(z + i, tl.reshape(source.load([0, 0]), BLOCK))


@triton.autotune(
    configs=[triton.Config({"BLOCK": block}, num_warps=2) for block in (64, 128, 256)], key=["n"]
)
@triton.jit
def tuned(x, z, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(z + i, tl.load(x + i, mask=i < n) + 1, mask=i < n)


@triton.autotune(
    configs=[triton.Config({"BLOCK": block}, num_warps=2) for block in (64, 128, 256)], key=["n"]
)
@triton.jit
def retuned(x, z, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(z + i, tl.load(x + i, mask=i < n) + 1, mask=i < n)
