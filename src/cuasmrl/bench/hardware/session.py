"""A GPU that runs single launches and hands back what they wrote.

It is used in this process: the kernels of the bench are its own and end by themselves. Schedules that nobody
has run before go through `devices.cuda`, which keeps them in a process apart.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from cuasmrl.binary.cubin import Cubin
from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.chips import CHIPS, Chip, chip_of_arch
from cuasmrl.gpu.devices.cuda import find
from cuasmrl.gpu.devices.driver import Gpu, Parameters
from cuasmrl.gpu.devices.loading import load
from cuasmrl.gpu.devices.packed import PackedLaunch, pack
from cuasmrl.gpu.devices.worker import Connect
from cuasmrl.gpu.launches.launch import Launch

Arrays: TypeAlias = dict[int, npt.NDArray[Any]]
"""Buffers by the number of their argument."""

_KIND = "cuda:"


def ordinal_of(device: str) -> int:
    """The number of a GPU from its name."""
    number = device.removeprefix(_KIND)
    if not device.startswith(_KIND) or not number.isdecimal():
        raise CuasmrlError(
            f"experiments run on a GPU, and {device!r} is none; write cuda:0, or leave --device out"
        )
    return int(number)


def chip_of(gpu: Gpu) -> Chip:
    """The chip of this name, else the one that stands for its architecture."""
    named = (chip for chip in CHIPS.values() if chip.name == gpu.name)
    return next(named, None) or chip_of_arch(gpu.arch)


class Session:
    """One context on one GPU."""

    def __init__(self, ordinal: int, connect: Connect = load) -> None:
        self.gpu = find(ordinal, connect)
        self.chip = chip_of(self.gpu)
        self._driver = connect()
        self._driver.open_context(ordinal)
        self._stream = self._driver.create_stream()

    def run(self, cubin: Cubin, kernel: str, launch: Launch, times: int) -> list[Arrays]:
        """Launch a kernel so often, each time on fresh buffers; what they hold afterwards."""
        driver, packed = self._driver, pack(cubin.kernel(kernel), launch)
        module = driver.load_module(cubin.data)
        function = driver.function(module, kernel)
        bases = [driver.allocate(region.data.nbytes) for region in packed.regions]
        parameters = Parameters(packed.parameters(bases))
        found = []
        for _ in range(times):
            for base, region in zip(bases, packed.regions, strict=True):
                driver.upload(base, region.data, self._stream)
            driver.launch(function, launch.grid, launch.block, launch.shared_bytes, self._stream, parameters)
            driver.synchronize(self._stream)
            contents = [
                driver.download(base, region.data.nbytes, self._stream)
                for base, region in zip(bases, packed.regions, strict=True)
            ]
            found.append(_arrays(packed, launch, contents))
        for base in bases:
            driver.free(base)
        driver.unload_module(module)
        return found


def _arrays(packed: PackedLaunch, launch: Launch, contents: list[npt.NDArray[np.uint8]]) -> Arrays:
    found: Arrays = {}
    for number, argument in enumerate(launch.arguments):
        if isinstance(argument, np.ndarray) and argument.size:
            region = next(n for n, r in enumerate(packed.regions) if number in r.arguments)
            place = packed.pointers[_pointer_number(launch, number)].place
            raw = contents[region][place : place + argument.nbytes]
            found[number] = raw.view(argument.dtype).reshape(argument.shape)
    return found


def _pointer_number(launch: Launch, number: int) -> int:
    """Which of the pointers belongs to an argument: they are in the order of the arguments."""
    before = launch.arguments[:number]
    return sum(isinstance(argument, np.ndarray) and argument.size > 0 for argument in before)
