"""A matrix product in Triton, tuned by its autotuner: a normal script that knows nothing of cuasmrl."""

import argparse
import hashlib

import torch
import triton
import triton.language as tl

DEVICE = triton.runtime.driver.active.get_active_torch_device()


@triton.autotune(
    configs=[
        triton.Config({"BLOCK_M": 32, "BLOCK_N": 32, "BLOCK_K": 32}, num_warps=2, num_stages=3),
        triton.Config({"BLOCK_M": 64, "BLOCK_N": 32, "BLOCK_K": 32}, num_warps=4, num_stages=3),
        triton.Config({"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 32}, num_warps=4, num_stages=3),
    ],
    key=["M", "N", "K"],
)
@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    inner = tl.arange(0, BLOCK_K)
    a = a_ptr + rows[:, None] * K + inner[None, :]
    b = b_ptr + inner[:, None] * N + columns[None, :]
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, K, BLOCK_K):
        left = tl.load(a, mask=inner[None, :] < K - start, other=0.0)
        right = tl.load(b, mask=inner[:, None] < K - start, other=0.0)
        total = tl.dot(left, right, total)
        a += BLOCK_K
        b += BLOCK_K * N
    inside = (rows[:, None] < M) & (columns[None, :] < N)
    tl.store(c_ptr + rows[:, None] * N + columns[None, :], tl.maximum(total, 0.0).to(tl.float16), mask=inside)


def matmul(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    (m, k), (_, n) = a.shape, b.shape
    c = torch.empty((m, n), device=a.device, dtype=torch.float16)

    def grid(meta: dict[str, int]) -> tuple[int, int]:
        return triton.cdiv(m, meta["BLOCK_M"]), triton.cdiv(n, meta["BLOCK_N"])

    matmul_kernel[grid](a, b, c, m, n, k)
    return c


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-m", type=int, default=256)
    parser.add_argument("-n", type=int, default=256)
    parser.add_argument("-k", type=int, default=1024)
    sizes = parser.parse_args()
    torch.manual_seed(0)
    a = torch.randn((sizes.m, sizes.k), dtype=torch.float16).to(DEVICE)
    b = torch.randn((sizes.k, sizes.n), dtype=torch.float16).to(DEVICE)
    c = matmul(a, b)
    torch.testing.assert_close(c.cpu(), torch.relu(a.float() @ b.float()).half().cpu(), rtol=1e-2, atol=1e-2)
    took = triton.testing.do_bench(lambda: matmul(a, b))
    print(f"config  {matmul_kernel.best_config}")
    print(f"output  sha256 {hashlib.sha256(c.cpu().numpy().tobytes()).hexdigest()}")
    print(f"time    {1000 * took:.3f} microseconds")


if __name__ == "__main__":
    main()
