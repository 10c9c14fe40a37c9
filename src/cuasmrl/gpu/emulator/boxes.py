"""Boxes of a tensor: the part of it that lies inside, moved from and to global memory.

A box is dense, the innermost dimension fastest. What lies outside of the tensor is filled when a box is read,
and left alone when it is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from cuasmrl.gpu.emulator.events import Numbers, sectors_between
from cuasmrl.gpu.emulator.global_memory import GlobalMemory
from cuasmrl.gpu.emulator.regions import Bytes
from cuasmrl.gpu.emulator.tensor_maps import Element, TensorMap

_DTYPES: dict[Element, type] = {
    Element.U8: np.uint8, Element.U16: np.uint16, Element.U32: np.uint32, Element.S32: np.int32,
    Element.U64: np.uint64, Element.S64: np.int64, Element.F16: np.float16, Element.F32: np.float32,
    Element.F32_FTZ: np.float32, Element.F64: np.float64, Element.BF16: np.uint16,
}  # fmt: skip
_NAN = {1: 0, 2: 0x7FFF, 4: 0x7FFF_FFFF, 8: 0x7FF8_0000_0000_0000}
_SMALLEST_NORMAL = np.float32(2.0**-126)

Combine = Callable[[Element, Bytes, Bytes], Bytes]
"""What becomes of old and new bytes of some elements."""


def read_box(memory: GlobalMemory, map_: TensorMap, coordinates: tuple[int, ...], position: int) -> Bytes:
    """The bytes of a box whose first element is at the coordinates; a thread at `position` asks for it."""
    box = _empty(map_)
    inside = _inside(map_, coordinates)
    if all(inside):
        here = _part(map_, box, inside)
        there = _window(memory, map_, coordinates, inside)
        if there is not None:
            here[...] = there
        else:
            for row, address in _rows(map_, coordinates, inside, here):
                row[...] = memory.read(address, row.size, position)
    return _converted(map_, box)


def write_box(
    memory: GlobalMemory,
    map_: TensorMap,
    coordinates: tuple[int, ...],
    box: Bytes,
    position: int,
    combine: Combine | None = None,
) -> None:
    """Store a box, or combine it with what is there."""
    inside = _inside(map_, coordinates)
    if not all(inside):
        return
    here = _part(map_, box, inside)
    there = _window(memory, map_, coordinates, inside, written=True)
    if there is not None and combine is None:
        there[...] = here
        return
    for row, address in _rows(map_, coordinates, inside, here):
        new = row
        if combine is not None:
            new = combine(map_.element, memory.read(address, row.size, position), row)
        memory.write(address, new, position)


def sectors_of(map_: TensorMap, coordinates: tuple[int, ...]) -> Numbers:
    """Sectors of global memory that hold the part of a box inside of the tensor, in rising order."""
    inside = _inside(map_, coordinates)
    starts = np.zeros(1, np.int64)
    if not all(inside):
        return starts[:0]
    for at, part, stride in zip(coordinates[1:], inside[1:], map_.strides, strict=True):
        starts = (starts[:, None] + (at + np.arange(part.start, part.stop)) * stride).reshape(-1)
    row = (coordinates[0] + inside[0].start) * map_.element.bytes
    return sectors_between(map_.address + row + starts, len(inside[0]) * map_.element.bytes)


def _inside(map_: TensorMap, coordinates: tuple[int, ...]) -> list[range]:
    """What of the box lies inside of the tensor, along each dimension."""
    return [
        range(max(0, -at), min(box, size - at))
        for at, box, size in zip(coordinates, map_.box, map_.sizes, strict=True)
    ]


def _part(map_: TensorMap, box: Bytes, inside: list[range]) -> Bytes:
    """The bytes of a box inside, outermost dimension first and bytes of a row last."""
    first, *outer = inside
    element = map_.element.bytes
    shaped = box.reshape(*reversed(map_.box[1:]), map_.row_bytes)
    places = [slice(r.start, r.stop) for r in reversed(outer)]
    return shaped[(*places, slice(first.start * element, first.stop * element))]


def _address(map_: TensorMap, coordinates: tuple[int, ...], inside: list[range]) -> int:
    """Of the first byte inside."""
    steps = (map_.element.bytes, *map_.strides)
    return map_.address + sum(
        (at + r.start) * step for at, r, step in zip(coordinates, inside, steps, strict=True)
    )


def _window(
    memory: GlobalMemory,
    map_: TensorMap,
    coordinates: tuple[int, ...],
    inside: list[range],
    written: bool = False,
) -> Bytes | None:
    """The same bytes in global memory; None unless they all lie in one stretch of it."""
    address = _address(map_, coordinates, inside)
    region = memory.region_at(address)
    lengths = [len(r) for r in reversed(inside[1:])]
    strides = tuple(reversed(map_.strides))
    row = len(inside[0]) * map_.element.bytes
    end = address + row + sum((n - 1) * stride for n, stride in zip(lengths, strides, strict=True))
    if region is None or address < region.start or end > region.limit or (written and not region.writable):
        return None
    begin = region.data[address - region.base :]
    return np.lib.stride_tricks.as_strided(begin, (*lengths, row), (*strides, 1))


def _rows(
    map_: TensorMap, coordinates: tuple[int, ...], inside: list[range], here: Bytes
) -> Iterator[tuple[Bytes, int]]:
    """Each row of the part inside, and its address."""
    first = _address(map_, coordinates, inside)
    strides = tuple(reversed(map_.strides))
    for index in np.ndindex(*here.shape[:-1]):
        yield here[index], first + sum(i * stride for i, stride in zip(index, strides, strict=True))


def _empty(map_: TensorMap) -> Bytes:
    if not map_.fills_nan:
        return np.zeros(map_.box_bytes, np.uint8)
    size = map_.element.bytes
    filled = np.full(map_.box_bytes // size, _NAN[size], f"u{size}")
    return filled.view(np.uint8)


def _converted(map_: TensorMap, box: Bytes) -> Bytes:
    if map_.element is Element.F32_FTZ:
        values = box.view(np.float32)
        is_small = np.abs(values) < _SMALLEST_NORMAL
        box = np.where(is_small, np.copysign(np.float32(0), values), values).view(np.uint8)
    if map_.rounds_to_tf32:
        bits = box.view(np.uint32)
        is_finite = bits & np.uint32(0x7F80_0000) != np.uint32(0x7F80_0000)
        # Nearest, ties away from zero, as cvt.rna.tf32 rounds.
        rounded = bits + np.uint32(0x1000) & np.uint32(0xFFFF_E000)
        box = np.where(is_finite, rounded, bits).view(np.uint8)
    return box


_OPERATIONS: dict[str, Callable[[npt.NDArray[Any], npt.NDArray[Any]], npt.NDArray[Any]]] = {
    "ADD": np.add, "MIN": np.fmin, "MAX": np.fmax, "AND": np.bitwise_and, "OR": np.bitwise_or,
    "XOR": np.bitwise_xor,
}  # fmt: skip
REDUCTIONS = tuple(_OPERATIONS)


def reduction(name: str) -> Combine:
    """ADD, MIN and the like of each element; bits for AND, OR and XOR."""
    function = _OPERATIONS[name]

    def combine(element: Element, old: Bytes, new: Bytes) -> Bytes:
        if name in ("AND", "OR", "XOR"):
            return function(old, new)
        if element is Element.BF16:
            wide = function(_widened(old), _widened(new)).view(np.uint32)
            return _narrowed(wide).view(np.uint8)
        kind = _DTYPES[element]
        return function(old.copy().view(kind), new.copy().view(kind)).view(np.uint8)

    return combine


def _widened(bytes_: Bytes) -> npt.NDArray[np.float32]:
    return (bytes_.copy().view(np.uint16).astype(np.uint32) << np.uint32(16)).view(np.float32)


def _narrowed(bits: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint16]:
    """FP32 to BF16, nearest even."""
    is_nan = (bits & np.uint32(0x7FFF_FFFF)) > np.uint32(0x7F80_0000)
    rounded = (bits + np.uint32(0x7FFF) + (bits >> np.uint32(16) & np.uint32(1))) >> np.uint32(16)
    return np.where(is_nan, np.uint32(0x7FFF), rounded).astype(np.uint16)
