"""What the kernels of a process run on."""

import ctypes
from dataclasses import replace

import numpy as np

import cuasmrl.gpu.virtual
from cuasmrl.deploy.deposit import gpu_of
from cuasmrl.deploy.store.allowed import measured_on
from cuasmrl.deploy.triton.gpus import on_virtual_gpu, visible_gpus
from cuasmrl.gpu.devices.cuda import find
from cuasmrl.gpu.devices.rounds import judge
from tests.gpu.devices.test_driver import Loader, fake, library

__all__ = ["fake", "library"]


def test_the_kinds_of_gpu_that_a_process_sees(library: str, fake: ctypes.CDLL) -> None:
    visible_gpus.cache_clear()
    assert visible_gpus(library) == ("Fake GPU 0 (8.6)", "Fake GPU 1 (8.6)")


def test_results_name_gpus_in_the_same_way(library: str, fake: ctypes.CDLL) -> None:
    """What was measured by one binding of the driver is looked up by another."""
    visible_gpus.cache_clear()
    gpu = find(1, Loader(library))
    rounds = replace(judge([np.array([[2.0, 1.0, 2.0]])] * 20), gpu=gpu.name, arch=gpu.arch)
    assert measured_on({"gpu": gpu_of(rounds)}) in visible_gpus(library)


def test_no_driver_and_no_gpu(library: str, fake: ctypes.CDLL) -> None:
    visible_gpus.cache_clear()
    assert visible_gpus("libnothing.so.1") == ()
    fake.fake_reset(100, 0)
    assert visible_gpus(library) == ()
    visible_gpus.cache_clear()


def test_the_virtual_gpu() -> None:
    """The tests of this room have it activated."""
    assert on_virtual_gpu()
    cuasmrl.gpu.virtual.deactivate()
    assert not on_virtual_gpu()
    cuasmrl.gpu.virtual.activate("a100")
