"""What a GPU is given to run: the launch of a kernel without anything of this process's memory in it.

Buffers become regions, one for each stretch of memory, so that arguments that share memory still share it on
the GPU; parameters are packed as the cubin lays them out, with holes where addresses go.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from numpy.lib.array_utils import byte_bounds

from cuasmrl.binary.cubin import Kernel
from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.emulator.tensor_maps import ImpossibleMapError, TensorMap, tensor_map_of
from cuasmrl.gpu.launches.launch import POINTER_BYTES, TILES_BYTES, Launch, Tiles, argument_bytes, buffer_of

Bytes: TypeAlias = npt.NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class Region:
    """Memory on the GPU."""

    data: Bytes = field(repr=False)
    """What it holds before a launch."""
    arguments: tuple[int, ...]
    """Numbers of the arguments that point into it."""
    may_poison: bool
    """Can it hold anything? Floats rarely decide where a kernel goes; integers may be locks or indices."""
    element: str = "bytes"
    """Type of its elements, as NumPy or ml_dtypes call it; `bytes` where arguments disagree."""


@dataclass(frozen=True)
class Pointer:
    """A hole in the parameters: the address of a place in a region."""

    offset: int
    region: int
    place: int


@dataclass(frozen=True)
class Map:
    """A hole in the parameters: a tensor map whose tensor lies in a region."""

    offset: int
    region: int
    place: int
    tiles: TensorMap
    """With address 0."""


@dataclass(frozen=True, eq=False)
class PackedLaunch:
    """A launch that another process can repeat."""

    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int
    """Dynamic."""
    static_bytes: int
    """Shared memory that the kernel itself declares."""
    regions: tuple[Region, ...]
    values: bytes = field(repr=False)
    """The parameter area without addresses."""
    pointers: tuple[Pointer, ...]
    cooperative: bool = False
    """Do all blocks run at the same time?"""
    cluster: tuple[int, int, int] | None = None
    """Blocks of a cluster, unless the cubin says it."""
    maps: tuple[Map, ...] = ()

    def parameters(
        self, bases: Sequence[int], encode: Callable[[TensorMap], bytes] = TensorMap.encode
    ) -> bytes:
        """The parameter area with regions at these addresses; the driver makes the bytes of tensor maps."""
        area = bytearray(self.values)
        for pointer in self.pointers:
            address = bases[pointer.region] + pointer.place
            area[pointer.offset : pointer.offset + POINTER_BYTES] = address.to_bytes(POINTER_BYTES, "little")
        for hole in self.maps:
            address = bases[hole.region] + hole.place
            area[hole.offset : hole.offset + TILES_BYTES] = encode(replace(hole.tiles, address=address))
        return bytes(area)


def pack(kernel: Kernel, launch: Launch) -> PackedLaunch:
    """A launch of a kernel, its buffers copied."""
    _check(kernel, launch)
    spans = {
        number: byte_bounds(array)
        for number, array in enumerate(map(buffer_of, launch.arguments))
        if array is not None and array.size
    }
    stretches = _merged(list(spans.values()))
    area = bytearray(max((p.offset + p.size for p in kernel.parameters), default=0))
    pointers, maps = [], []
    for number, (parameter, argument) in enumerate(zip(kernel.parameters, launch.arguments, strict=True)):
        array = buffer_of(argument)
        if array is not None and number in spans:
            start = array.ctypes.data
            region = next(n for n, (low, high) in enumerate(stretches) if low <= start < high)
            place = start - stretches[region][0]
            if isinstance(argument, Tiles):
                maps.append(Map(parameter.offset, region, place, _tensor_map(argument, number)))
            else:
                pointers.append(Pointer(parameter.offset, region, place))
        elif isinstance(argument, np.generic):
            area[parameter.offset : parameter.offset + parameter.size] = argument.tobytes()
    regions = tuple(_region(span, spans, launch) for span in stretches)
    return PackedLaunch(
        kernel.name,
        launch.grid,
        launch.block,
        launch.shared_bytes,
        kernel.shared_bytes,
        regions,
        bytes(area),
        tuple(pointers),
        launch.cooperative,
        launch.cluster,
        tuple(maps),
    )


def _tensor_map(tiles: Tiles, number: int) -> TensorMap:
    try:
        return tensor_map_of(tiles, 0)
    except ImpossibleMapError as error:
        raise CuasmrlError(f"argument {number} is a tensor map that no driver makes: {error}") from None


def _check(kernel: Kernel, launch: Launch) -> None:
    wanted = [parameter.size for parameter in kernel.parameters]
    given = [argument_bytes(argument) for argument in launch.arguments]
    if wanted != given:
        raise CuasmrlError(
            f"kernel {kernel.name} takes parameters of {wanted} bytes, but the launch has {given}; "
            "launch it with the arguments it was compiled for"
        )


def _merged(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Stretches of memory that hold all spans, those that overlap in one."""
    merged: list[tuple[int, int]] = []
    for low, high in sorted(spans):
        if merged and low < merged[-1][1]:
            merged[-1] = merged[-1][0], max(high, merged[-1][1])
        else:
            merged.append((low, high))
    return merged


def _region(span: tuple[int, int], spans: dict[int, tuple[int, int]], launch: Launch) -> Region:
    low, high = span
    inside = tuple(number for number, (start, _) in spans.items() if low <= start < high)
    arrays = [
        array for array in (buffer_of(launch.arguments[number]) for number in inside) if array is not None
    ]
    # A view's memory has gaps that belong to its neighbours, so the stretch is copied as it lies in memory;
    # `launch` keeps it alive meanwhile.
    data = np.array(memoryview((ctypes.c_ubyte * (high - low)).from_address(low)), np.uint8)
    names = {array.dtype.name for array in arrays}
    element = names.pop() if len(names) == 1 else "bytes"
    return Region(data, inside, all(_is_float(array) for array in arrays), element)


def _is_float(array: npt.NDArray[Any]) -> bool:
    # bfloat16 and its like are of NumPy's kind "void", as plain bytes are, but have types of their own.
    return array.dtype.kind in "fV" and array.dtype.type is not np.void
