"""What makes a timer in another process that gives the same answers as the one here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.devices.cuda import CudaTimer, find
from cuasmrl.gpu.devices.device import Timer
from cuasmrl.gpu.devices.effort import Effort
from cuasmrl.gpu.devices.objective import Objective
from cuasmrl.gpu.devices.virtual import VirtualTimer
from cuasmrl.gpu.devices.worker import Connect
from cuasmrl.gpu.launches.launch import Launch
from cuasmrl.gpu.traced import LaunchedKernel, TracedKernel


class Replica(Protocol):
    """A value that can be pickled."""

    @property
    def kernel(self) -> LaunchedKernel: ...

    def open(self, seat: int) -> Timer:
        """In the worker of that number."""


@dataclass(frozen=True)
class VirtualReplica:
    """The virtual GPU, with what has been measured of the kernel: nobody measures it again."""

    kernel: TracedKernel
    objective: Objective
    game: int
    effort: Effort
    seeds: tuple[int, ...]

    def open(self, seat: int) -> Timer:
        timer = VirtualTimer(self.kernel, self.objective, self.game, workers=1)
        timer.adopt(self.effort, self.seeds)
        _ = timer.panel
        return timer


@dataclass(frozen=True)
class CudaReplica:
    """A GPU for each worker: the next ones of this machine, or what a cluster gives each."""

    kernel: LaunchedKernel
    ordinal: int
    launch: Launch = field(repr=False)
    connect: Connect
    own: bool = False
    """Does every worker see its own GPUs only?"""

    def open(self, seat: int) -> Timer:
        ordinal = self.ordinal + (0 if self.own else seat)
        return CudaTimer(self.kernel, ordinal, self.launch, self.connect)


def replica_of(timer: Timer, launch: Callable[[], Launch], width: int, own: bool = False) -> Replica:
    """For so many workers. GPUs must be there for all, and alike; with `own` a cluster sees to that."""
    if type(timer) is VirtualTimer:
        return VirtualReplica(timer.kernel, timer.objective, timer.game, timer.effort, timer.seeds)
    if isinstance(timer, CudaTimer):
        if not own:
            _check_alike(timer, width)
        return CudaReplica(timer.kernel, timer.gpu.ordinal, launch(), timer.connect, own)
    raise CuasmrlError(f"{timer.device} cannot be timed by several workers; leave out --workers")


def _check_alike(timer: CudaTimer, width: int) -> None:
    """Two workers on one GPU would disturb each other's times."""
    first = timer.gpu
    for ordinal in range(first.ordinal, first.ordinal + width):
        try:
            gpu = find(ordinal, timer.connect)
        except CuasmrlError as error:
            raise CuasmrlError(
                f"{width} workers need a GPU each, from cuda:{first.ordinal} on: {error}; "
                "give fewer --workers"
            ) from error
        if (gpu.name, gpu.arch) != (first.name, first.arch):
            raise CuasmrlError(
                f"cuda:{ordinal} is a {gpu.name} and cuda:{first.ordinal} a {first.name}; times of different "
                "GPUs cannot be compared, so give fewer --workers"
            )
