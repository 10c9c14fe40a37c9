"""Tensor maps: the 128 bytes that tell the tensor memory accelerator (TMA) how a tensor lies in memory.

The layout of the bytes was read off the code that compilers emit to change single fields of a map in memory
(PTX ISA, tensormap.replace). Sizes are kept less one. Maps of the host and of device code look alike.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum

from cuasmrl.gpu.launches.launch import Tiles

BYTES = 128
ALIGNMENT = 64
_MOST_DIMENSIONS = 5
_GRANULE = 16
_WORDS = struct.Struct("<Q13I")
"""Address, flags, four strides, their high bits, five sizes, element strides and box (twice)."""
_UNKNOWN_FLAGS = 0xFF80_000F
"""Bits of the flags that no field is known to be in; 17, 18, 21 and 22 are taken to change no value."""


class Element(IntEnum):
    """Types as maps number them; the driver's interface has other numbers for some."""

    U8 = 0
    U16 = 1
    U32 = 2
    S32 = 3
    U64 = 4
    S64 = 5
    F16 = 6
    F32 = 7
    F32_FTZ = 8
    F64 = 9
    BF16 = 10

    @property
    def bytes(self) -> int:
        return (1, 2, 4, 4, 8, 8, 2, 4, 4, 8, 2)[self]

    @property
    def is_float(self) -> bool:
        return self >= Element.F16


_PACKED = (11, 12, 13)
"""Elements of 4 and 6 bits, from sm_100 on."""
_INTERLEAVES = ("none", "16 bytes", "32 bytes")


class ImpossibleMapError(ValueError):
    """A field that no map can have, or that there is no model of; the text is one sentence without an end."""


@dataclass(frozen=True)
class TensorMap:
    """Dimensions from the innermost outwards."""

    address: int
    element: Element
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    """Bytes from one element to the next along dimensions 1 and up."""
    box: tuple[int, ...]
    swizzle: int = 0
    """Width in bytes of the pattern in shared memory: 0, 32, 64 or 128."""
    fills_nan: bool = False
    """What lies outside is not a number, instead of zero."""
    rounds_to_tf32: bool = False

    @property
    def rank(self) -> int:
        return len(self.sizes)

    @property
    def row_bytes(self) -> int:
        return self.box[0] * self.element.bytes

    @property
    def box_bytes(self) -> int:
        count = self.element.bytes
        for size in self.box:
            count *= size
        return count

    def check(self) -> None:
        """Raise for what the driver would refuse (CUDA driver API, cuTensorMapEncodeTiled)."""
        if not 1 <= self.rank <= _MOST_DIMENSIONS:
            raise ImpossibleMapError(f"it has {self.rank} dimensions; 1 to {_MOST_DIMENSIONS} are possible")
        if self.address % _GRANULE:
            raise ImpossibleMapError(
                f"its tensor begins at {self.address:#x}, not aligned to {_GRANULE} bytes"
            )
        for k, size in enumerate(self.sizes):
            if not 1 <= size <= 1 << 32:
                raise ImpossibleMapError(f"its tensor has {size} elements along dimension {k}")
        for k, stride in enumerate(self.strides, 1):
            if stride % _GRANULE or not 0 <= stride < 1 << 40:
                raise ImpossibleMapError(
                    f"its stride along dimension {k} is {stride} bytes; multiples of {_GRANULE} below 2^40 "
                    "are possible"
                )
        for k, size in enumerate(self.box):
            if not 1 <= size <= 256:
                raise ImpossibleMapError(
                    f"its box has {size} elements along dimension {k}; 1 to 256 are possible"
                )
        if self.row_bytes % _GRANULE:
            raise ImpossibleMapError(
                f"a row of its box has {self.row_bytes} bytes, which {_GRANULE} do not divide"
            )
        if self.swizzle and self.row_bytes > self.swizzle:
            raise ImpossibleMapError(
                f"a row of its box has {self.row_bytes} bytes, more than the {self.swizzle} of its swizzle"
            )
        if self.fills_nan and not self.element.is_float:
            raise ImpossibleMapError(f"it fills with NaN, and its elements are {self.element.name}")
        if self.rounds_to_tf32 and self.element not in (Element.F32, Element.F32_FTZ):
            raise ImpossibleMapError(f"it rounds to TF32, and its elements are {self.element.name}")

    def encode(self) -> bytes:
        """The bytes of the map; raises `ImpossibleMapError`."""
        self.check()
        swizzle = (0, 32, 64, 128).index(self.swizzle)
        flags = self.rank - 1 << 4 | self.element << 7 | swizzle << 13
        flags |= self.fills_nan << 15 | self.rounds_to_tf32 << 16
        units = [stride // _GRANULE for stride in _filled(self.strides, 4, 0)]
        high = sum((unit >> 32 & 15) << 4 * k for k, unit in enumerate(units))
        first, *others = (size - 1 for size in _filled(self.box, _MOST_DIMENSIONS, 1))
        words = _WORDS.pack(
            self.address,
            flags,
            *(unit & 0xFFFF_FFFF for unit in units),
            high,
            *(size - 1 for size in _filled(self.sizes, _MOST_DIMENSIONS, 1)),
            first << 24,
            sum(size << 8 * k for k, size in enumerate(others)),
        )
        return words + bytes(BYTES - len(words))


def tensor_map_of(tiles: Tiles, address: int) -> TensorMap:
    """Of an argument whose tensor begins there; raises `ImpossibleMapError`."""
    if tiles.element not in Element.__members__:
        raise ImpossibleMapError(
            f"its elements are {tiles.element}, which is none of {', '.join(Element.__members__)}"
        )
    made = TensorMap(
        address, Element[tiles.element], tiles.sizes, tiles.strides, tiles.box, tiles.swizzle,
        tiles.fills_nan, tiles.rounds_to_tf32,
    )  # fmt: skip
    made.check()
    return made


def _filled(numbers: tuple[int, ...], count: int, rest: int) -> tuple[int, ...]:
    return numbers + (rest,) * (count - len(numbers))


def decode_tensor_map(data: bytes) -> TensorMap:
    """The fields of a map; raises `ImpossibleMapError` for what no map has, or what there is no model of."""
    address, flags, s1, s2, s3, s4, high, *rest = _WORDS.unpack_from(data)
    sizes, steps, boxes = rest[:5], rest[5], rest[6]
    rank = (flags >> 4 & 7) + 1
    if rank > _MOST_DIMENSIONS:
        raise ImpossibleMapError(f"it has {rank} dimensions; 1 to {_MOST_DIMENSIONS} are possible")
    _refuse_modes(flags, steps, rank)
    strides = [(low | (high >> 4 * k & 15) << 32) * _GRANULE for k, low in enumerate((s1, s2, s3, s4))]
    box = [steps >> 24, *(boxes >> 8 * k & 255 for k in range(4))]
    found = TensorMap(
        address,
        Element(flags >> 7 & 15),
        tuple(size + 1 for size in sizes[:rank]),
        tuple(strides[: rank - 1]),
        tuple(size + 1 for size in box[:rank]),
        (0, 32, 64, 128)[flags >> 13 & 3],
        bool(flags >> 15 & 1),
        bool(flags >> 16 & 1),
    )
    found.check()
    return found


def _refuse_modes(flags: int, steps: int, rank: int) -> None:
    kind, interleave = flags >> 7 & 15, flags >> 11 & 3
    if kind in _PACKED:
        raise ImpossibleMapError("its elements are packed 4 or 6 bits, which have no model")
    if kind > max(Element):
        raise ImpossibleMapError(f"its element type is {kind}, which does not exist")
    if interleave == len(_INTERLEAVES):
        raise ImpossibleMapError(f"its interleave is {interleave}, which does not exist")
    if interleave:
        raise ImpossibleMapError(f"it interleaves {_INTERLEAVES[interleave]}, which has no model")
    if flags >> 19 & 3:
        raise ImpossibleMapError("its swizzle moves other units than 16 bytes, which has no model")
    if flags & _UNKNOWN_FLAGS:
        raise ImpossibleMapError(f"its flags {flags:#x} have bits whose meaning is not known")
    if any(steps >> 3 * k & 7 for k in range(rank)):
        raise ImpossibleMapError("it skips elements (element strides above 1), which has no model")
