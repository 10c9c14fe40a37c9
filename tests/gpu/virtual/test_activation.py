"""Triton gets the virtual GPU and gives it back without a trace."""

import gc
import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import torch
import triton
from triton.backends.nvidia.driver import CudaDriver

import cuasmrl.gpu.virtual
from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.chips import CHIPS, chip
from cuasmrl.gpu.emulator.tensor_maps import Element, TensorMap, decode_tensor_map
from cuasmrl.gpu.virtual import wrap
from cuasmrl.gpu.virtual.device import Utils, loaded
from cuasmrl.gpu.virtual.driver import VirtualDriver
from tests.gpu.virtual.conftest import Recorder
from tests.gpu.virtual.kernels import add

config = triton.runtime.driver


def launch() -> Any:
    x = wrap(np.zeros(128, np.float32))
    return add[(1,)](x, x, x, 128, BLOCK=128)


@pytest.mark.parametrize("name", CHIPS)
def test_triton_sees_the_chip(name: str) -> None:
    asked = chip(name)
    with cuasmrl.gpu.virtual.active(name) as given:
        driver = config.active
        target = driver.get_current_target()
        properties = driver.utils.get_device_properties(driver.get_current_device())
        assert triton.runtime.driver.active.get_device_interface().current_device()
    assert given is asked
    assert isinstance(driver, CudaDriver)
    assert (target.backend, target.arch, target.warp_size) == ("cuda", asked.arch, 32)
    assert driver.get_device_capability(0) == divmod(asked.arch, 10)
    assert properties == {
        "max_shared_mem": asked.shared_per_block_optin,
        "max_num_regs": 65536,
        "multiprocessor_count": asked.sm_count,
        "warpSize": 32,
        "sm_clock_rate": asked.clock_khz,
        "mem_clock_rate": asked.memory_clock_khz,
        "mem_bus_width": asked.memory_bus_bits,
    }


def test_the_driver_answers_like_one(a100: Recorder) -> None:
    driver = config.active
    assert driver.get_current_stream(driver.get_current_device()) == 0
    assert driver.get_active_torch_device() == torch.device("cpu")
    assert driver.map_python_to_cpp_type("*fp32") == "CUdeviceptr"
    assert driver.is_active()
    driver.set_current_device(0)
    driver.clear_cache(driver.get_empty_cache_for_benchmark())
    driver.utils.set_printf_fifo_size(1 << 20)
    assert driver.utils.get_default_stream(0) == 0
    assert not driver.utils.is_stream_capturing(0)
    with pytest.raises(CuasmrlError, match="no clusters"):
        driver.utils.cuOccupancyMaxActiveClusters(None, 0, 2)
    with pytest.raises(CuasmrlError, match="no im2col"):
        driver.utils.fill_tma_descriptor_im2col()
    # As Triton calls it: address, swizzle, bytes and type of elements, box, shape, strides, padding.
    made = driver.utils.fill_tma_descriptor_tiled(0x1000, 3, 2, 9, [8, 64], [100, 200], [256, 1], 1)
    wanted = TensorMap(0x1000, Element.BF16, (200, 100), (512,), (64, 8), 128, fills_nan=True)
    assert decode_tensor_map(made.tobytes()) == wanted


def test_every_function_of_cuda_utils_that_triton_calls_is_there() -> None:
    """Triton's own launcher alone uses the two that are missing."""
    names = set(CudaDriver.__init__.__globals__["CudaUtils"].__init__.__code__.co_names)
    wanted = names & {
        "load_binary",
        "unload_module",
        "get_current_device",
        "set_current_device",
        "get_default_stream",
        "is_stream_capturing",
        "get_device_capability",
        "get_device_properties",
        "cuOccupancyMaxActiveClusters",
        "set_printf_fifo_size",
        "fill_tma_descriptor",
        "fill_tma_descriptor_tiled",
        "fill_tma_descriptor_im2col",
    }
    assert {"load_binary", "get_device_properties"} <= wanted
    assert all(hasattr(Utils, name) for name in wanted)


def test_no_driver_yet_is_restored() -> None:
    assert config._active is None
    cuasmrl.gpu.virtual.activate("a100")
    assert isinstance(config.active, VirtualDriver)
    cuasmrl.gpu.virtual.deactivate()
    assert config._active is None


def test_another_driver_is_restored(monkeypatch: pytest.MonkeyPatch) -> None:
    theirs = object()
    monkeypatch.setattr(config, "_active", theirs)
    cuasmrl.gpu.virtual.activate("a100")
    cuasmrl.gpu.virtual.activate("h100")
    cuasmrl.gpu.virtual.deactivate()
    assert config._active is theirs


def test_a_driver_set_meanwhile_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    theirs = object()
    monkeypatch.setattr(config, "_active", None)
    cuasmrl.gpu.virtual.activate("a100")
    config.set_active(theirs)
    cuasmrl.gpu.virtual.deactivate()
    assert config._active is theirs


def test_twice_is_once() -> None:
    cuasmrl.gpu.virtual.deactivate()
    cuasmrl.gpu.virtual.activate("a100")
    first = config.active
    cuasmrl.gpu.virtual.activate("a100")
    assert config.active is first
    cuasmrl.gpu.virtual.deactivate()
    cuasmrl.gpu.virtual.deactivate()
    assert config._active is None


def test_nested() -> None:
    with cuasmrl.gpu.virtual.active("a100"):
        outer = config.active
        with cuasmrl.gpu.virtual.active("h100"):
            assert config.active.chip.key == "h100"
            with cuasmrl.gpu.virtual.active("t4"):
                cuasmrl.gpu.virtual.deactivate()
                assert config._active is None
            assert config.active.chip.key == "h100"
        assert config.active is outer
    assert config._active is None


def test_an_error_inside_restores_too() -> None:
    with pytest.raises(ZeroDivisionError), cuasmrl.gpu.virtual.active("a100"):
        _ = 1 // 0
    assert config._active is None


def test_an_unknown_chip_changes_nothing() -> None:
    with pytest.raises(CuasmrlError, match="no chip 'b9'; choose one of"):
        cuasmrl.gpu.virtual.activate("b9")
    assert config._active is None


def test_environment_and_torch_are_untouched(recorder: Recorder) -> None:
    def state() -> tuple[Any, ...]:
        return (
            dict(os.environ),
            torch.get_default_device(),
            torch.cuda.is_available(),
            torch.get_num_threads(),
        )

    before = state()
    with cuasmrl.gpu.virtual.active("a100"):
        launch()
        assert state() == before
    assert state() == before


def test_without_triton(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "triton.runtime", None)
    with pytest.raises(CuasmrlError, match="Triton does not import .*; install cuasmrl\\[triton\\]"):
        cuasmrl.gpu.virtual.activate("a100")


def test_kernels_of_different_chips_are_kept_apart(recorder: Recorder) -> None:
    archs = []
    for name in ("a100", "rtx4090", "a100"):
        with cuasmrl.gpu.virtual.active(name):
            archs.append(launch().metadata.target.arch)
    assert archs == [80, 89, 80]
    assert [made for _, made in recorder.made] == ["a100", "rtx4090", "a100"]


def test_inside_another_activation_of_the_chip_a_kernel_stays_loaded(recorder: Recorder) -> None:
    seen: list[str] = []
    with cuasmrl.gpu.virtual.active("a100"):
        launch()
        with cuasmrl.gpu.virtual.active("a100", on_launch=lambda launched: seen.append(launched.kernel)):
            launch()
        launch()
    assert seen == ["add"]
    assert len(recorder.made) == 1


def test_a_kernel_that_outlives_the_gpu_is_unloaded(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    with cuasmrl.gpu.virtual.active("a100"):
        kernel = launch()
        assert kernel.module in loaded
    assert kernel.module is None
    assert kernel.function is None
    # It comes to life again with the chip,
    with cuasmrl.gpu.virtual.active("a100"):
        kernel[(1, 1, 1)](*[wrap(np.zeros(128, np.float32))] * 3, 128, 128)
    assert len(recorder.launches) == 2
    # and when it dies without a driver, nobody complains.
    complaints: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", complaints.append)
    add.device_caches.clear()
    del kernel
    gc.collect()
    assert complaints == []


def test_a_held_kernel_runs_on_its_own_chip_only(recorder: Recorder) -> None:
    x = wrap(np.zeros(128, np.float32))
    with cuasmrl.gpu.virtual.active("a100"):
        kernel = launch()
        with (
            cuasmrl.gpu.virtual.active("h100"),
            pytest.raises(CuasmrlError, match="add was loaded on NVIDIA A100.* and NVIDIA H100.* is active"),
        ):
            kernel[(1, 1, 1)](x, x, x, 128, 128)
    with (
        cuasmrl.gpu.virtual.active("h100"),
        pytest.raises(CuasmrlError, match="add is compiled for sm_80 and NVIDIA H100.* is sm_90"),
    ):
        kernel[(1, 1, 1)](x, x, x, 128, 128)


def test_a_launcher_kept_by_hand_is_refused(recorder: Recorder) -> None:
    with cuasmrl.gpu.virtual.active("a100"):
        kernel = launch()
        run, function = kernel.run, kernel.function
    with cuasmrl.gpu.virtual.active("a100"), pytest.raises(CuasmrlError, match="add is not loaded"):
        run(1, 1, 1, 0, None, None, None, None, None)
    config.set_active(object())
    try:
        with pytest.raises(CuasmrlError, match="add is not loaded on the active device"):
            run(1, 1, 1, 0, function, None, None, None, None)
    finally:
        config.set_active(None)


def test_handles_of_the_driver_beneath_go_back_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    class Beneath:
        class utils:  # noqa: N801
            unloaded: list[int] = []  # noqa: RUF012

            @classmethod
            def unload_module(cls, module: int) -> None:
                cls.unloaded.append(module)

    monkeypatch.setattr(config, "_active", Beneath())
    with cuasmrl.gpu.virtual.active("a100"):
        config.active.utils.unload_module(4096)
    assert Beneath.utils.unloaded == [4096]
    Utils(chip("a100"), None).unload_module(4096)


def test_importing_the_package_imports_neither_triton_nor_torch() -> None:
    code = "import sys, cuasmrl.gpu.virtual; assert not {'triton', 'torch'} & set(sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
