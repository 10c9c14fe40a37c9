"""Unmodified Triton code on the real emulator: the results are those of torch and NumPy."""

import ml_dtypes
import numpy as np
import pytest
import torch

import cuasmrl.gpu.virtual
from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.virtual import wrap
from tests.gpu.virtual import kernels


@pytest.mark.parametrize("chip", ["t4", "a100", "a6000", "rtx4090", "h100", "rtx5090"])
def test_add(chip: str) -> None:
    x, y, z = torch.rand(1000), torch.rand(1000), torch.full((1024,), -1.0)
    with cuasmrl.gpu.virtual.active(chip):
        kernels.add[(8,)](x, y, z, 1000, BLOCK=128)
    assert torch.equal(z[:1000], x + y)
    assert (z[1000:] == -1).all()


def test_shared_memory_and_exponentials() -> None:
    x, z = torch.randn(5, 300), torch.zeros(5, 300)
    with cuasmrl.gpu.virtual.active("a100"):
        kernels.softmax[(5,)](x, z, 300, BLOCK=512)
    torch.testing.assert_close(z, torch.softmax(x, 1))


def test_tensor_cores_on_bfloat16_arrays() -> None:
    rng = np.random.default_rng(0)
    a = rng.standard_normal((32, 64)).astype(ml_dtypes.bfloat16)
    b = rng.standard_normal((64, 32)).astype(ml_dtypes.bfloat16)
    c = np.zeros((32, 32), np.float32)
    with cuasmrl.gpu.virtual.active("a100"):
        kernels.multiply[(1,)](wrap(a), wrap(b), wrap(c), 64, M=32, N=32, K=32)
    np.testing.assert_allclose(c, a.astype(np.float32) @ b.astype(np.float32), rtol=1e-5, atol=1e-5)


def test_slices_and_strides() -> None:
    storage = torch.arange(64, dtype=torch.float32).reshape(8, 8)
    part, z = storage[2:6, 4:], torch.zeros(4, 4)
    with cuasmrl.gpu.virtual.active("a100"):
        kernels.strided[(1,)](part, z, 4, part.stride(0), COLUMNS=4)
    assert torch.equal(z, part)


def test_two_slices_of_one_tensor_keep_their_alignment() -> None:
    """Triton loads the second by 16 bytes at once, because its address is a multiple of 16."""
    storage, z = torch.arange(600, dtype=torch.float32), torch.zeros(512)
    x, y = storage[1:513], storage[4:516]
    assert (x.data_ptr() % 16, y.data_ptr() % 16) == (4, 0)
    with cuasmrl.gpu.virtual.active("a100"):
        kernels.add[(1,)](x, y, z, 512, BLOCK=512)
    assert torch.equal(z, x + y)


def test_scalars_of_every_type() -> None:
    out = torch.zeros(5, dtype=torch.int64)
    with cuasmrl.gpu.virtual.active("a100"):
        kernels.scalars[(1,)](out, True, -3, 40000, 1 << 40, 1.5, 2.5, 8.0, 77.0, None, 1)
    assert out.tolist() == [-3 + 40000 + (1 << 40) + 1, 12, 77, 1, 0]


def test_tuples() -> None:
    x, z = torch.rand(64), torch.zeros(64)
    with cuasmrl.gpu.virtual.active("a100"):
        kernels.pair[(1,)]((x, z), 50, BLOCK=64)
    assert torch.equal(z[:50], x[:50])
    assert not z[50:].any()


def test_a_launch_too_large_for_the_chip() -> None:
    x = torch.zeros(128)
    with (
        cuasmrl.gpu.virtual.active("a100"),
        pytest.raises(CuasmrlError, match="a grid 70000 wide in y; NVIDIA A100.* allows 65535"),
    ):
        kernels.add[(1, 70000)](x, x, x, 128, BLOCK=128)


def test_reading_outside_of_a_tensor_is_an_error() -> None:
    x = torch.zeros(128)
    with cuasmrl.gpu.virtual.active("a100"), pytest.raises(CuasmrlError, match="out of bounds"):
        kernels.add[(2,)](x, x, x, 4096, BLOCK=128)
