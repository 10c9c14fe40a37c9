"""The driver functions Triton calls, answered for a chip that is not there, and kernels loaded on it."""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NoReturn, Protocol

import numpy as np

from cuasmrl.binary.cubin import Cubin, Kernel
from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.chips import WARP_THREADS, Chip
from cuasmrl.gpu.launches.launch import Launch
from cuasmrl.gpu.virtual.tensor_maps import encode_tiled


class Result(Protocol):
    """What a run of the emulator tells afterwards."""

    @property
    def warp_instructions(self) -> int: ...


class Emulation(Protocol):
    """A kernel made ready for launches on a chip; refuses those too large for it."""

    def run(self, launch: Launch) -> Result: ...

    def cycles(self, launch: Launch) -> float:
        """Modelled cycles; the launch leaves nothing behind in memory."""
        ...


def make_emulator(cubin: Cubin, kernel: str, chip: Chip) -> Emulation:
    """The one place that knows which emulator runs the kernels."""
    from cuasmrl.gpu.virtual.modelled import ModelledKernel

    return ModelledKernel(cubin, kernel, chip)


@dataclass(frozen=True, eq=False)
class Launched:
    """One finished launch, as `on_launch` gets it."""

    chip: Chip
    cubin: Cubin = field(repr=False)
    kernel: str
    launch: Launch = field(repr=False)
    result: Result


OnLaunch = Callable[[Launched], None]


@dataclass(frozen=True, eq=False)
class Module:
    """A loaded cubin; Triton keeps it as a handle and gives it back to be unloaded."""

    name: str


loaded: weakref.WeakSet[Module] = weakref.WeakSet()
"""Modules that some kernel of Triton's still holds."""


@dataclass(frozen=True, eq=False)
class Function:
    """A kernel on a chip."""

    chip: Chip
    cubin: Cubin = field(repr=False)
    kernel: Kernel = field(repr=False)

    @cached_property
    def emulator(self) -> Emulation:
        # Made at the first launch: a kernel that is only compiled may hold what the emulator does not know.
        return make_emulator(self.cubin, self.kernel.name, self.chip)


_device_numbers: dict[Chip, int] = {}
# Triton files compiled kernels by device number alone. Numbers no real device has keep them apart: from those
# of a real GPU, and from those of another virtual chip.
_FIRST_DEVICE = 1 << 16


def device_number(chip: Chip) -> int:
    return _device_numbers.setdefault(chip, _FIRST_DEVICE + len(_device_numbers))


class Utils:
    """`driver.utils` of Triton. There is one device, so every device number means this one."""

    def __init__(self, chip: Chip, beneath: Any) -> None:
        self.chip = chip
        self._beneath = beneath

    def load_binary(
        self, name: str, binary: bytes, shared: int, device: int
    ) -> tuple[Module, Function, int, int, int]:
        cubin = Cubin.parse(binary, f"<cubin of {name}>")
        if not self.chip.runs(cubin.arch):
            raise CuasmrlError(
                f"{name} is compiled for sm_{cubin.arch} and {self.chip.name} is sm_{self.chip.arch}; "
                "activate a chip of the kernel's architecture, or compile it anew."
            )
        kernel = cubin.kernel(name)
        module = Module(name)
        loaded.add(module)
        function = Function(self.chip, cubin, kernel)
        # Triton calls all local memory spilled registers.
        spilled = kernel.stack_bytes // 4
        return module, function, kernel.registers, spilled, _most_threads(self.chip, kernel)

    def unload_module(self, module: Any) -> None:
        # A kernel loaded before the virtual GPU was activated dies now: its driver has to unload it.
        unload = getattr(getattr(self._beneath, "utils", None), "unload_module", None)
        if not isinstance(module, Module) and unload is not None:
            unload(module)

    def get_device_properties(self, device: Any = None) -> dict[str, int]:
        return {
            "max_shared_mem": self.chip.shared_per_block_optin,
            "max_num_regs": self.chip.registers_per_sm,
            "multiprocessor_count": self.chip.sm_count,
            "warpSize": WARP_THREADS,
            "sm_clock_rate": self.chip.clock_khz,
            "mem_clock_rate": self.chip.memory_clock_khz,
            "mem_bus_width": self.chip.memory_bus_bits,
        }

    def get_device_capability(self, device: Any = None) -> tuple[int, int]:
        return self.chip.capability

    def get_current_device(self) -> int:
        return device_number(self.chip)

    def set_current_device(self, device: Any) -> None:
        """Nothing to choose from."""

    def get_default_stream(self, device: Any = None) -> int:
        return 0

    def is_stream_capturing(self, stream: Any = None) -> bool:
        return False

    def set_printf_fifo_size(self, size: int) -> None:
        """The emulator has no such buffer."""

    def cuOccupancyMaxActiveClusters(self, *arguments: Any) -> NoReturn:  # noqa: N802, the driver's name
        raise CuasmrlError("The virtual GPU runs no clusters of blocks.")

    def fill_tma_descriptor(self, *arguments: Any) -> np.void:
        return encode_tiled(*arguments)

    # Triton 3.8 gave the function above a second form.
    fill_tma_descriptor_tiled = fill_tma_descriptor

    def fill_tma_descriptor_im2col(self, *arguments: Any) -> NoReturn:
        raise CuasmrlError("The virtual GPU has no im2col descriptors; load through tiled ones.")


def _most_threads(chip: Chip, kernel: Kernel) -> int:
    declared = [math.prod(r.words()[:3]) for r in kernel.records if r.name in ("REQNTID", "MAX_THREADS")]
    return min(chip.max_threads(kernel.registers), *declared)
