"""Devices by name."""

import pytest

from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.chips import chip
from cuasmrl.gpu.devices import VirtualTimer, chip_of_device, open_timer
from cuasmrl.gpu.devices.cuda import available
from cuasmrl.gpu.launches.launch import Launch
from tests.traced_kernels import traced


def no_launch() -> Launch:
    raise AssertionError("the model replays a trace and launches nothing")


def test_the_virtual_gpu() -> None:
    assert chip_of_device("virtual:rtx4090") == chip("rtx4090")
    timer = open_timer("virtual:a100", traced("softmax"), no_launch)
    assert isinstance(timer, VirtualTimer)
    assert timer.device == "virtual:a100"


def test_a_kernel_traced_for_another_chip_is_refused() -> None:
    with pytest.raises(CuasmrlError, match="was traced for a100"):
        open_timer("virtual:a6000", traced("softmax"), no_launch)


@pytest.mark.parametrize("name", ["", "a100", "virtual", "virtual:", "cuda", "cuda:x", "cuda:-1", "rocm:0"])
def test_what_is_no_device(name: str) -> None:
    with pytest.raises(CuasmrlError, match="there is no device"):
        chip_of_device(name)


@pytest.mark.skipif(available() is None, reason="there is a GPU")
def test_a_gpu_that_is_not_there() -> None:
    with pytest.raises(CuasmrlError, match="--device virtual:a100"):
        chip_of_device("cuda:0")
