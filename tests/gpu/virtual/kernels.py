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


@triton.jit
def checked(x, z, limit, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    value = tl.load(x + i)
    tl.device_assert(value < limit, "too large")
    tl.store(z + i, value)


@triton.jit
def printed(x, BLOCK: tl.constexpr):
    tl.device_print("half: ", tl.load(x + tl.arange(0, BLOCK)))


@triton.jit
def grouped(table, beyond, BLOCK: tl.constexpr):
    """Rows of `table` are the addresses of an input and an output, and their length."""
    row, i = table + 3 * tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(row).to(tl.pointer_type(tl.float32))
    z = tl.load(row + 1).to(tl.pointer_type(tl.float32))
    inside = i < tl.load(row + 2) + beyond
    tl.store(z + i, 2 * tl.load(x + i, mask=inside), mask=inside)


@triton.jit
def addressed(x: tl.pointer_type(tl.float32), z, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(z + i, 2 * tl.load(x + i))


@triton.jit
def both_ways(table, z, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(table).to(tl.pointer_type(tl.float16))
    same = tl.load(table + 1).to(tl.pointer_type(tl.float16))
    tl.store(same + i, 2 * tl.load(x + i, mask=i < n), mask=i < n)
    tl.debug_barrier()
    tl.store(z + i, tl.load(z + i, mask=i < n) + 1, mask=i < n)


@triton.jit
def summed(x, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.atomic_add(x + 0 * i, (0 * i + 1).to(x.dtype.element_ty))


@triton.jit
def filled(x, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x + i, 1.0, mask=i < n)


@triton.jit
def sines(x, z, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(z + i, tl.sin(tl.load(x + i)))


@triton.jit
def divided(x, z, divisor: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(z + i, tl.load(x + i) / divisor)


@triton.jit
def locked(counts, lock):
    cells = counts + tl.arange(0, 128)
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    tl.store(cells, tl.load(cells) + 1)
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0)


@triton.jit
def everybody(arrived, out, n):
    """A barrier of the grid."""
    tl.atomic_add(arrived, 1)
    while tl.atomic_add(arrived, 0) < n:
        pass
    tl.store(out + tl.program_id(0), tl.load(arrived))


@triton.jit
def multiply_described(a, b, c, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """Descriptors of the host."""
    row, column = tl.program_id(0) * M, tl.program_id(1) * N
    sums = tl.zeros((M, N), tl.float32)
    for start in range(0, k, K):
        sums = tl.dot(a.load([row, start]), b.load([column, start]).T, sums)
    c.store([row, column], sums.to(tl.float16))


@triton.jit
def multiply_persistent(
    a, b, c, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, SPECIALISED: tl.constexpr
):
    """Descriptors that the kernel makes itself; one warp may copy while others multiply."""
    left = tl.make_tensor_descriptor(a, shape=[m, k], strides=[k, 1], block_shape=[M, K])
    right = tl.make_tensor_descriptor(b, shape=[n, k], strides=[k, 1], block_shape=[N, K])
    result = tl.make_tensor_descriptor(c, shape=[m, n], strides=[n, 1], block_shape=[M, N])
    across = tl.cdiv(n, N)
    for tile in tl.range(
        tl.program_id(0), tl.cdiv(m, M) * across, tl.num_programs(0), warp_specialize=SPECIALISED
    ):
        row, column = tile // across * M, tile % across * N
        sums = tl.zeros((M, N), tl.float32)
        for start in range(0, k, K):
            sums = tl.dot(left.load([row, start]), right.load([column, start]).T, sums)
        result.store([row, column], sums.to(tl.float16))
