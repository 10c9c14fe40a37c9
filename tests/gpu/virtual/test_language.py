"""Parts of Triton's language that need more than arithmetic: assert, print, pointers, locks, whole grids."""

import numpy as np
import pytest
import torch

import cuasmrl.gpu.virtual
from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.virtual import wrap
from tests.gpu.virtual import kernels

CHIPS = ("a100", "h100", "rtx5090")


@pytest.mark.parametrize("chip", CHIPS)
def test_device_assert(chip: str, capsys: pytest.CaptureFixture[str]) -> None:
    x, z = torch.arange(128, dtype=torch.int32), torch.zeros(128, dtype=torch.int32)
    with cuasmrl.gpu.virtual.active(chip):
        kernels.checked[(2,)](x, z, 128, BLOCK=128, debug=True)
        assert torch.equal(x, z)
        with pytest.raises(
            RuntimeError, match="device-side assert triggered: .*: Assertion `too large` failed"
        ):
            kernels.checked[(2,)](x, z, 100, BLOCK=128, debug=True)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2 * 28
    assert lines[0].endswith("block: [0,0,0], thread: [100,0,0] Assertion `too large` failed.")


@pytest.mark.parametrize("chip", CHIPS)
def test_device_print(chip: str, capsys: pytest.CaptureFixture[str]) -> None:
    x = torch.arange(64, dtype=torch.float32) / 2
    with cuasmrl.gpu.virtual.active(chip):
        kernels.printed[(2,)](x, BLOCK=64, num_warps=2)
    expected = [f"pid ({pid}, 0, 0) idx ({i:2}) half: {i / 2:f}" for pid in range(2) for i in range(64)]
    assert capsys.readouterr().out.splitlines() == expected


def test_a_tensor_of_pointers() -> None:
    """Tensors that are no arguments, found by the addresses in one that is."""
    inputs = [torch.rand(n) for n in (100, 37, 256)]
    outputs = [torch.zeros(n) for n in (100, 37, 256)]
    table = torch.tensor(
        [[a.data_ptr(), b.data_ptr(), a.numel()] for a, b in zip(inputs, outputs, strict=True)]
    )
    with cuasmrl.gpu.virtual.active("a100"):
        kernels.grouped[(3,)](table, 0, BLOCK=256)
        for x, z in zip(inputs, outputs, strict=True):
            assert torch.equal(z, 2 * x)
        with pytest.raises(
            CuasmrlError, match="4 bytes of global memory are read at .* past the end of a buffer"
        ):
            kernels.grouped[(3,)](table, 1, BLOCK=256)


def test_a_pointer_to_an_argument_and_to_an_array() -> None:
    """What is written through one address is read through the other, also where words are shared."""
    x, z = np.arange(101, dtype=np.float16), np.zeros(101, np.float16)
    source, target = wrap(x), wrap(z)
    table = torch.tensor([source.data_ptr(), target.data_ptr()])
    with cuasmrl.gpu.virtual.active("a100"):
        kernels.both_ways[(1,)](table, target, 101, BLOCK=128)
    assert (z == 2 * x + 1).all()


def test_an_address_as_a_number_and_one_that_is_nobodys() -> None:
    x, z = torch.rand(64), torch.zeros(64)
    with cuasmrl.gpu.virtual.active("a100"):
        kernels.addressed[(1,)](x.data_ptr(), z, BLOCK=64)
        assert torch.equal(z, 2 * x)
        # Every object is looked at, also a tuple that is still being filled.
        assert len(tuple(kernels.addressed[(1,)](x.data_ptr(), z, BLOCK=64) for _ in range(3))) == 3
        with pytest.raises(CuasmrlError, match="read at 0x123456780, out of bounds"):
            kernels.grouped[(1,)](torch.tensor([[0x1_2345_6780, z.data_ptr(), 64]]), 0, BLOCK=64)


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("place", [0, 1])
def test_atomics_on_half_of_a_word(kind: torch.dtype, place: int) -> None:
    """They exchange the whole word around a number, and leave the rest of it as it is."""
    storage = torch.full((3,), 5, dtype=kind)
    with cuasmrl.gpu.virtual.active("a100"):
        kernels.summed[(2,)](storage[place : place + 1], BLOCK=32)
    expected = torch.full((3,), 5, dtype=kind)
    expected[place] += 64
    assert torch.equal(storage, expected)


def test_a_store_beside_half_of_a_word() -> None:
    x = torch.zeros(1, dtype=torch.float16)
    with (
        cuasmrl.gpu.virtual.active("a100"),
        pytest.raises(CuasmrlError, match="2 bytes of global memory are written .* 2 bytes past the end"),
    ):
        kernels.filled[(1,)](x, 2, BLOCK=2)


def test_sines_of_large_numbers() -> None:
    x = torch.randn(128, generator=torch.Generator().manual_seed(0)) * 1e8
    z = torch.zeros(128)
    for chip in CHIPS:
        with cuasmrl.gpu.virtual.active(chip):
            kernels.sines[(1,)](x, z, BLOCK=128)
        torch.testing.assert_close(z.double(), torch.sin(x.double()), rtol=1e-5, atol=1e-6)


def test_division_by_a_constant_double() -> None:
    x, z = torch.randn(128).double(), torch.zeros(128).double()
    with cuasmrl.gpu.virtual.active("a100"):
        kernels.divided[(1,)](x, z, -0.83984375, BLOCK=128)
    assert torch.equal(z, x / -0.83984375)


def test_a_contended_lock() -> None:
    """The holder of a lock goes on before those who wait for it."""
    counts, lock = torch.zeros(128), torch.zeros(1, dtype=torch.int32)
    executed: list[int] = []
    with cuasmrl.gpu.virtual.active(
        "a100", on_launch=lambda done: executed.append(done.result.warp_instructions)
    ):
        kernels.locked[(300,)](counts, lock)
    assert (counts == 300).all()
    # A block alone needs some 200; it sees the lock taken once by each of the 127 others of its slab.
    assert executed[0] < 300 * 4 * 10_000


def test_a_cooperative_grid() -> None:
    """Blocks of more than one slab wait for one another."""
    arrived, out = torch.zeros(1, dtype=torch.int32), torch.zeros(300, dtype=torch.int32)
    with cuasmrl.gpu.virtual.active("a100"):
        kernels.everybody[(300,)](arrived, out, 300, launch_cooperative_grid=True)
        assert (out == 300).all()
        with pytest.raises(CuasmrlError, match="A cooperative grid of 100000 blocks .* launch fewer blocks"):
            kernels.everybody[(100_000,)](arrived, out, 100_000, launch_cooperative_grid=True)
