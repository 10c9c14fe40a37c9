"""Triton's driver and launcher for the virtual GPU, in Python: neither a GPU nor a C compiler is needed."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, NoReturn

import triton
from triton.backends.compiler import GPUTarget
from triton.backends.nvidia.driver import CudaDriver

from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.chips import WARP_THREADS, Chip
from cuasmrl.gpu.launches.launch import Argument, Launch, argument_bytes
from cuasmrl.gpu.virtual.arguments import marshal
from cuasmrl.gpu.virtual.benchmark import Clock, benchmark
from cuasmrl.gpu.virtual.device import Function, Launched, OnLaunch, Utils, device_number
from cuasmrl.gpu.virtual.memory import zeros

Hook = Callable[[Any], Any] | None


class VirtualDriver(CudaDriver):  # type: ignore[misc]
    """Answers as the chosen chip and runs every launch on the emulator before it returns."""

    def __init__(self, chip: Chip, on_launch: OnLaunch | None, beneath: Any) -> None:
        # Not the initialiser of CudaDriver: that one compiles C against libcuda.
        self.chip = chip
        self.on_launch = on_launch
        self.beneath = beneath
        """The driver to go back to; None if Triton had not chosen one yet."""
        self.clock = Clock(device_number(chip), chip.clock_khz)
        self.utils = Utils(chip, beneath)
        self.launcher_cls = Launcher
        self.get_device_capability = self.utils.get_device_capability
        self.get_current_device = self.utils.get_current_device
        self.set_current_device = self.utils.set_current_device
        self.get_current_stream = self.utils.get_default_stream

    @staticmethod
    def is_active() -> bool:
        return True

    def get_current_target(self) -> Any:
        return GPUTarget("cuda", self.chip.arch, WARP_THREADS)

    def get_active_torch_device(self) -> Any:
        import torch

        return torch.device("cpu")

    def get_device_interface(self) -> Clock:
        return self.clock

    def get_benchmarker(self) -> Callable[..., float | list[float]]:
        return benchmark

    def get_empty_cache_for_benchmark(self) -> None:
        """The emulator has no caches."""

    def clear_cache(self, cache: Any) -> None:
        """The emulator has no caches, but those who measure call this before each repetition."""
        self.clock.rest()

    def run(self, function: Function, launch: Launch) -> None:
        if function.chip != self.chip:
            raise CuasmrlError(
                f"{function.kernel.name} was loaded on {function.chip.name} and {self.chip.name} is active; "
                "launch it through its Triton function, which compiles it for the active chip."
            )
        if self.clock.is_watched:
            self.clock.advance(function.emulator.cycles(launch))
        if self.clock.only_times:
            return
        result = function.emulator.run(launch)
        if self.on_launch is not None:
            self.on_launch(Launched(self.chip, function.cubin, function.kernel.name, launch, result))


class Launcher:
    """What Triton makes of a kernel's signature once, and calls for each launch."""

    def __init__(self, src: Any, metadata: Any) -> None:
        self.name: str = metadata.name
        self.signature = dict(src.signature)
        self.threads: int = metadata.num_warps * WARP_THREADS
        self.shared: int = metadata.shared
        self.scratch = (
            (metadata.global_scratch_size, metadata.global_scratch_align),
            (metadata.profile_scratch_size, metadata.profile_scratch_align),
        )
        # `launch_pdl` needs nothing: it lets a kernel begin before the one ahead has ended, and here that one
        # always has.
        if metadata.num_ctas != 1:
            self._refuse(f"is compiled for clusters of {metadata.num_ctas} blocks", "set num_ctas=1")
        self.cooperative: bool = metadata.launch_cooperative_grid
        self.maps: tuple[Any, ...] = tuple(getattr(metadata, "tensordesc_meta", None) or ())

    def __call__(
        self,
        grid_x: int,
        grid_y: int,
        grid_z: int,
        stream: Any,
        function: Function | None,
        kernel_metadata: Any,
        launch_metadata: Any,
        enter_hook: Hook,
        exit_hook: Hook,
        *values: Any,
    ) -> None:
        active = triton.runtime.driver.active
        # Triton keeps the launcher of a kernel that failed to load.
        if not isinstance(active, VirtualDriver) or function is None:
            self._refuse("is not loaded on the active device", "launch it through its Triton function")
        if enter_hook is not None:
            enter_hook(launch_metadata)
        grid = self._grid(grid_x, grid_y, grid_z)
        # As on a GPU, an empty grid is no error and no launch.
        if all(grid):
            active.run(function, self._launch(grid, function, values))
        if exit_hook is not None:
            exit_hook(launch_metadata)

    def _launch(self, grid: tuple[int, int, int], function: Function, values: tuple[Any, ...]) -> Launch:
        arguments = marshal(self.signature, values, self.name, self.maps)
        parameters = function.kernel.parameters
        # How many of the scratch pointers a kernel takes depends on Triton's version; the cubin knows.
        extra = len(parameters) - len(arguments)
        if not 0 <= extra <= len(self.scratch):
            self._refuse(
                f"takes {len(parameters)} parameters where Triton's signature has {len(arguments)}",
                "switch off instrumentation such as gsan",
            )
        blocks = grid[0] * grid[1] * grid[2]
        arguments += tuple(_scratch(size * blocks, align) for size, align in self.scratch[:extra])
        for place, (argument, parameter) in enumerate(zip(arguments, parameters, strict=True)):
            if argument_bytes(argument) != parameter.size:
                raise CuasmrlError(
                    f"Parameter {place} of {self.name} has {parameter.size} bytes in the cubin and "
                    f"{argument_bytes(argument)} in Triton's signature; is the cubin another kernel's?"
                )
        return Launch(grid, (self.threads, 1, 1), self.shared, arguments, self.cooperative)

    def _grid(self, *sizes: Any) -> tuple[int, int, int]:
        try:
            x, y, z = (operator.index(size) for size in sizes)
        except TypeError:
            raise CuasmrlError(f"The grid of {self.name} has to be integers, got {sizes}.") from None
        return x, y, z

    def _refuse(self, what: str, remedy: str) -> NoReturn:
        raise CuasmrlError(f"{self.name} {what}, which the virtual GPU does not do; {remedy}.")


def _scratch(size: int, alignment: int) -> Argument:
    return zeros(size, alignment) if size else None
