"""Tensor descriptors of Triton on chips with TMA: boxes over the edge, maps of host and kernel, refusals."""

import numpy as np
import pytest
import torch
from triton.tools.tensor_descriptor import TensorDescriptor

import cuasmrl.gpu.virtual
from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.emulator.tensor_maps import Element, decode_tensor_map
from cuasmrl.gpu.virtual.device import Launched
from tests.gpu.virtual import kernels

M, N, K = 96, 80, 104
"""Of tiles of 64, 64 and 32: all three reach over the edge."""


def operands() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    torch.manual_seed(0)
    a, b = torch.randn(M, K).half(), torch.randn(N, K).half()
    return a, b, torch.full((M, N), 7.0).half()


def assert_product(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> None:
    torch.testing.assert_close(c.float(), a.float() @ b.float().T, rtol=2e-3, atol=2e-2)


@pytest.mark.parametrize("chip", ["h100", "b200", "rtx5090"])
def test_descriptors_of_the_host(chip: str) -> None:
    a, b, c = operands()
    seen: list[Launched] = []
    described = [
        TensorDescriptor.from_tensor(x, box) for x, box in ((a, [64, 32]), (b, [64, 32]), (c, [64, 64]))
    ]
    with cuasmrl.gpu.virtual.active(chip, on_launch=seen.append):
        kernels.multiply_described[(2, 2)](*described, K, M=64, N=64, K=32)
    assert_product(a, b, c)
    passed = seen[0].launch.arguments[0]
    assert isinstance(passed, np.void)
    first = decode_tensor_map(passed.tobytes())
    assert (first.address, first.element, first.sizes) == (a.data_ptr(), Element.F16, (K, M))
    assert (first.strides, first.box[0]) == ((2 * K,), 32)


@pytest.mark.parametrize(
    ("chip", "specialised"),
    [("h100", False), pytest.param("h100", True, marks=pytest.mark.slow), ("b200", True), ("b300", False)],
)
def test_descriptors_of_the_kernel(chip: str, specialised: bool) -> None:
    a, b, c = operands()
    with cuasmrl.gpu.virtual.active(chip):
        kernels.multiply_persistent[(3,)](a, b, c, M, N, K, M=64, N=64, K=32, SPECIALISED=specialised)
    assert_product(a, b, c)


def test_a_tensor_that_no_map_can_describe() -> None:
    """Rows of 25 numbers are 100 bytes, which 16 do not divide."""
    z = torch.zeros(64)
    with cuasmrl.gpu.virtual.active("h100"):
        described = TensorDescriptor(torch.ones(16, 32), [16, 25], [32, 1], [4, 16])
        kernels.described[(1,)](described, z, BLOCK=64)
        assert z.sum() == 64
        described.strides = [25, 1]
        with pytest.raises(
            CuasmrlError,
            match=r"^Argument source of described cannot be made into a tensor map: its stride along "
            r"dimension 1 is 100 bytes; multiples of 16 below 2\^40 are possible\.$",
        ):
            kernels.described[(1,)](described, z, BLOCK=64)
