"""Devices by name: `virtual:CHIP` is the SM model, `cuda:N` a GPU of this machine."""

from __future__ import annotations

from collections.abc import Callable

from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.chips import Chip, chip, chip_of_arch
from cuasmrl.gpu.devices.cuda import CudaTimer, find
from cuasmrl.gpu.devices.device import Timer
from cuasmrl.gpu.devices.objective import Objective
from cuasmrl.gpu.devices.virtual import VirtualTimer
from cuasmrl.gpu.launches.launch import Launch
from cuasmrl.gpu.traced import LaunchedKernel, TracedKernel, UntracedKernel

_VIRTUAL, _CUDA = "virtual", "cuda"


def chip_of_device(device: str) -> Chip:
    """The chip that a device is; for a GPU the one that stands for its architecture."""
    kind, name = _parts(device)
    return chip(name) if kind == _VIRTUAL else chip_of_arch(find(int(name)).arch)


def is_gpu(device: str) -> bool:
    """Is it a real one?"""
    return _parts(device)[0] == _CUDA


def ordinal_of(device: str) -> int:
    """The number of a GPU of this machine from its name."""
    kind, name = _parts(device)
    if kind != _CUDA:
        raise CuasmrlError(f"{device} is no GPU of this machine; write cuda:0")
    return int(name)


def open_timer(
    device: str,
    kernel: LaunchedKernel,
    launch: Callable[[], Launch],
    objective: Objective = Objective.ROBUST,
    game: int = 0,
) -> Timer:
    """What times schedules of this kernel; `launch` makes the one that was traced, for a GPU to run it.

    Objective and game, the seed of the player, say which chips the virtual GPU is while a game goes on.
    """
    kind, name = _parts(device)
    if kind == _CUDA:
        return CudaTimer(kernel, int(name), launch())
    if isinstance(kernel, UntracedKernel):
        raise CuasmrlError(f"{device} cannot time {kernel.name}: {kernel.refusal}")
    if chip(name) != kernel.chip:
        raise CuasmrlError(f"the kernel was traced for {kernel.chip.key}, so {device} cannot time it")
    assert isinstance(kernel, TracedKernel)
    return VirtualTimer(kernel, objective, game)


def _parts(device: str) -> tuple[str, str]:
    kind, _, name = device.partition(":")
    if (kind == _VIRTUAL and name) or (kind == _CUDA and name.isdecimal()):
        return kind, name
    raise CuasmrlError(f"there is no device {device!r}; write virtual:a100 (or another chip) or cuda:0")
