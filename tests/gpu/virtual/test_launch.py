"""What `kernel[grid](...)` says is what the emulator gets."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
import triton
from triton.runtime.errors import OutOfResources
from triton.tools.tensor_descriptor import TensorDescriptor

import cuasmrl.gpu.virtual
from cuasmrl.binary.cubin import Cubin
from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.chips import chip
from cuasmrl.gpu.launches.launch import Launch
from cuasmrl.gpu.virtual import Launched, wrap
from cuasmrl.gpu.virtual.driver import Launcher
from tests.gpu.virtual import kernels
from tests.gpu.virtual.conftest import Recorder


def array(launch: Launch, position: int, dtype: Any) -> npt.NDArray[Any]:
    argument = launch.arguments[position]
    assert isinstance(argument, np.ndarray)
    return argument.view(dtype)


def add(launch: Launch) -> int:
    """What kernels.add computes."""
    x, y, z = (array(launch, position, np.float32) for position in range(3))
    n = launch.arguments[3]
    assert isinstance(n, np.int32)
    z[:n] = x[:n] + y[:n]
    return launch.blocks


def test_a_launch_arrives(a100: Recorder) -> None:
    a100.effect = add
    x, y, z = torch.rand(1000), torch.rand(1000), torch.zeros(1000)
    kernels.add[(8,)](x, y, z, 1000, BLOCK=128)
    assert torch.equal(z, x + y)
    assert (a100.last.grid, a100.last.block, a100.last.shared_bytes) == ((8, 1, 1), (128, 1, 1), 0)
    # Three pointers, n, and the scratch pointers that Triton adds; the constant has no place.
    assert [type(a) for a in a100.last.arguments[:4]] == [np.ndarray, np.ndarray, np.ndarray, np.int32]
    assert [a for a in a100.last.arguments[4:] if a is not None] == []
    assert a100.made == [("add", "a100")]


def test_numpy_arrays(a100: Recorder) -> None:
    a100.effect = add
    x, z = np.arange(100, dtype=np.float32), np.zeros(100, np.float32)
    kernels.add[(1,)](wrap(x), wrap(x), wrap(z), 100, BLOCK=128)
    assert z.tolist() == (2 * x).tolist()


def test_grids_and_warps(a100: Recorder) -> None:
    x = torch.zeros(256)
    kernels.add[(2, 3, 4)](x, x, x, 256, BLOCK=256, num_warps=2)
    assert (a100.last.grid, a100.last.block) == ((2, 3, 4), (64, 1, 1))
    kernels.add[lambda meta: (triton.cdiv(256, meta["BLOCK"]), np.int64(5))](x, x, x, 256, BLOCK=64)
    assert a100.last.grid == (4, 5, 1)


def test_shared_memory(a100: Recorder) -> None:
    kernel = kernels.total[(1,)](torch.zeros(1024), torch.zeros(1), BLOCK=1024)
    assert a100.last.shared_bytes == kernel.metadata.shared > 0


def test_scalars(a100: Recorder) -> None:
    out = torch.zeros(5, dtype=torch.int64)
    kernels.scalars[(1,)](out, True, -3, 40000, 1 << 40, 1.5, 2.5, 0.1, 0.1, None, 1)
    arguments = [a for a in a100.last.arguments[1:] if isinstance(a, np.generic)]
    # None and the integer 1 became constants.
    assert [(a.dtype.name, a.tolist()) for a in arguments] == [
        ("uint8", 1),
        ("int8", -3),
        ("uint16", 40000),
        ("int64", 1 << 40),
        ("float16", 1.5),
        ("uint16", 0x4020),
        ("float32", np.float32(0.1)),
        ("float64", 0.1),
    ]


def test_slices_and_strides(a100: Recorder) -> None:
    storage = torch.arange(64, dtype=torch.float32).reshape(8, 8)
    part = storage[2:6, 4:]
    kernels.strided[(1,)](part, torch.zeros(16), 4, part.stride(0), COLUMNS=4)
    assert array(a100.last, 0, np.float32).tolist() == list(range(20, 64))
    assert a100.last.arguments[3] == 8
    whole = storage.T
    assert not whole.is_contiguous()
    kernels.strided[(1,)](whole, torch.zeros(16), 4, whole.stride(1), COLUMNS=4)
    assert array(a100.last, 0, np.float32).tolist() == list(range(64))


def test_tensors_without_dimensions(a100: Recorder) -> None:
    result = torch.tensor(0.0)
    kernels.total[(1,)](torch.ones(1024), result, BLOCK=1024)
    array(a100.last, 1, np.float32)[0] = 5
    assert result == 5


def test_tuples(a100: Recorder) -> None:
    x, z = torch.ones(64), torch.zeros(64)
    kernels.pair[(1,)]((x, z), 50, BLOCK=64)
    assert array(a100.last, 0, np.float32).sum() == 64
    assert array(a100.last, 1, np.float32).sum() == 0
    assert a100.last.arguments[2] == 50


def test_descriptors_without_tma_are_taken_apart(a100: Recorder) -> None:
    source = torch.ones(16, 32)
    kernels.described[(1,)](TensorDescriptor.from_tensor(source, [4, 16]), torch.zeros(64), BLOCK=64)
    numbers = [int(a) for a in a100.last.arguments if isinstance(a, np.integer)]
    assert numbers[:4] == numbers[-4:] == [16, 32, 32, 1]


def test_clusters_are_refused(recorder: Recorder) -> None:
    x = torch.zeros(256)
    with (
        cuasmrl.gpu.virtual.active("h100"),
        pytest.raises(CuasmrlError, match="add is compiled for clusters of 2 blocks, .*; set num_ctas=1"),
    ):
        kernels.add[(1,)](x, x, x, 256, BLOCK=256, num_ctas=2)


def test_cooperative_grids_are_marked(a100: Recorder) -> None:
    x = torch.zeros(256)
    kernels.add[(1,)](x, x, x, 256, BLOCK=128, launch_cooperative_grid=True)
    assert a100.last.cooperative
    kernels.add[(1,)](x, x, x, 256, BLOCK=128)
    assert not a100.last.cooperative


def test_dependent_launches_are_ordinary_ones(recorder: Recorder) -> None:
    x = torch.zeros(256)
    with cuasmrl.gpu.virtual.active("h100"):
        kernels.add[(1,)](x, x, x, 256, BLOCK=256, launch_pdl=True)
    assert len(recorder.launches) == 1


def test_an_empty_grid_launches_nothing(a100: Recorder) -> None:
    x = torch.zeros(128)
    kernels.add[(0,)](x, x, x, 128, BLOCK=128)
    assert a100.launches == []


def test_a_grid_of_fractions(a100: Recorder) -> None:
    x = torch.zeros(128)
    with pytest.raises(CuasmrlError, match=r"grid of add has to be integers, got \(1.5, 1, 1\)"):
        kernels.add[(1.5,)](x, x, x, 128, BLOCK=128)


def test_shared_memory_too_large_is_what_triton_says_it_is(recorder: Recorder) -> None:
    """So that the autotuner passes over such a configuration."""
    small = replace(chip("a100"), shared_per_block_optin=8)
    with (
        cuasmrl.gpu.virtual.active(small),
        pytest.raises(OutOfResources, match="shared memory, Required: 16"),
    ):
        kernels.total[(1,)](torch.zeros(1024), torch.zeros(1), BLOCK=1024)


def test_tensors_elsewhere(a100: Recorder) -> None:
    x = torch.zeros(128)
    with pytest.raises(CuasmrlError, match="Argument y of add lives on meta"):
        kernels.add[(1,)](x, torch.zeros(128, device="meta"), x, 128, BLOCK=128)


def test_errors_of_a_launch_reach_the_user(a100: Recorder) -> None:
    def fail(launch: Launch) -> int:
        raise CuasmrlError("Thread 7 reads outside of its buffer.")

    a100.effect = fail
    x = torch.zeros(128)
    for _ in range(2):
        with pytest.raises(CuasmrlError, match="Thread 7"):
            kernels.add[(1,)](x, x, x, 128, BLOCK=128)


def test_a_kernel_that_cannot_be_emulated_fails_at_each_launch(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(cubin: Cubin, kernel: str, chip: object) -> Any:
        raise CuasmrlError(f"{kernel} holds an unknown opcode.")

    monkeypatch.setattr("cuasmrl.gpu.virtual.device.make_emulator", refuse)
    x = torch.zeros(128)
    with cuasmrl.gpu.virtual.active("a100"):
        kernel = kernels.add.warmup(x, x, x, 128, BLOCK=128, grid=(1,))
        kernel._init_handles()
        assert kernel.n_regs > 0
        for _ in range(2):
            with pytest.raises(CuasmrlError, match="add holds an unknown opcode"):
                kernels.add[(1,)](x, x, x, 128, BLOCK=128)


def test_what_a_loaded_kernel_says_of_itself(a100: Recorder) -> None:
    x = torch.zeros(128)
    kernel = kernels.add[(1,)](x, x, x, 128, BLOCK=128)
    assert 0 < kernel.n_regs < 64
    assert kernel.n_spills == 0
    assert kernel.n_max_threads == 128


def test_hooks(a100: Recorder) -> None:
    calls: list[str] = []

    def run(launch: Launch) -> int:
        calls.append("run")
        return 1

    a100.effect = run

    def enter(metadata: Any) -> None:
        calls.append(f"enter {metadata.get()['name']}")

    def leave(metadata: Any) -> None:
        calls.append("exit")

    knobs = triton.knobs.runtime
    knobs.launch_enter_hook.add(enter)
    knobs.launch_exit_hook.add(leave)
    try:
        x = torch.zeros(128)
        kernels.add[(1,)](x, x, x, 128, BLOCK=128)
    finally:
        knobs.launch_enter_hook.remove(enter)
        knobs.launch_exit_hook.remove(leave)
    assert calls == ["enter add", "run", "exit"]


def test_on_launch(recorder: Recorder) -> None:
    seen: list[Launched] = []
    recorder.effect = lambda launch: 17
    x = torch.zeros(128)
    with cuasmrl.gpu.virtual.active("rtx3090", on_launch=seen.append) as given:
        kernels.add[(1,)](x, x, x, 128, BLOCK=128)
    (launched,) = seen
    assert launched.chip is given
    assert launched.kernel == launched.cubin.kernel().name == "add"
    assert launched.launch is recorder.last
    assert launched.result.warp_instructions == 17


def scratch_launcher(**changes: Any) -> Launcher:
    metadata = {
        "name": "k",
        "num_warps": 4,
        "shared": 0,
        "num_ctas": 1,
        "launch_cooperative_grid": False,
        "global_scratch_size": 0,
        "global_scratch_align": 1,
        "profile_scratch_size": 0,
        "profile_scratch_align": 1,
    }
    return Launcher(SimpleNamespace(signature={"n": "i32"}), SimpleNamespace(**metadata | changes))


def function(*sizes: int) -> Any:
    parameters = tuple(SimpleNamespace(size=size) for size in sizes)
    return SimpleNamespace(kernel=SimpleNamespace(parameters=parameters))


def test_scratch_memory_is_allocated_for_the_whole_grid() -> None:
    launcher = scratch_launcher(global_scratch_size=96, global_scratch_align=128)
    launch = launcher._launch((2, 3, 1), function(4, 8, 8), (7,))
    number, scratch, profile = launch.arguments
    assert number == 7
    assert isinstance(scratch, np.ndarray)
    assert (scratch.nbytes, scratch.ctypes.data % 128) == (6 * 96, 0)
    assert profile is None


def test_kernels_of_all_versions_of_triton() -> None:
    """They append none, one or two scratch pointers."""
    for pointers in range(3):
        launch = scratch_launcher()._launch((1, 1, 1), function(4, *[8] * pointers), (7,))
        assert launch.arguments == (7, *[None] * pointers)


def test_parameters_nobody_knows() -> None:
    with pytest.raises(CuasmrlError, match="k takes 6 parameters where Triton's signature has 1"):
        scratch_launcher()._launch((1, 1, 1), function(4, 8, 8, 8, 8, 8), (7,))
    with pytest.raises(CuasmrlError, match="Parameter 0 of k has 8 bytes in the cubin and 4"):
        scratch_launcher()._launch((1, 1, 1), function(8), (7,))
