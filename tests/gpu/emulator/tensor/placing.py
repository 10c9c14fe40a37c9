"""Operands in shared memory, byte by byte, and the descriptors that find them."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tests.gpu.emulator.tensor.dense import BITS, Bits

A_AT, B_AT = 0, 0x8000
SHARED = 0x10000
SWIZZLES = {0: 0, 128: 1, 64: 2, 32: 3}


@dataclass(frozen=True)
class Placed:
    """The bytes of an operand, and the descriptor that finds them."""

    image: NDArray[np.uint8]
    descriptor: int


def chunk_of(chunk: int, line: int, width: int) -> int:
    """Where a chunk of 16 bytes goes in its line of a swizzled tile of eight lines."""
    return chunk ^ {128: line, 64: line // 2, 32: line // 4}[width]


def along_k(rows: NDArray[np.uint8], width: int, at: int, step: int) -> Placed:
    """Rows of bytes along K. `step` is the slice of 32 bytes that the instruction takes of them."""
    count, length = rows.shape
    image = np.zeros(SHARED, np.uint8)
    groups = -(-count // 8)
    if width:
        assert length == width
        for r in range(count):
            for c in range(width // 16):
                to = at + r // 8 * 8 * width + r % 8 * width + 16 * chunk_of(c, r % 8, width)
                image[to : to + 16] = rows[r, 16 * c : 16 * c + 16]
        return Placed(image, descriptor(at + 32 * step, 0, 8 * width, width))
    for r in range(count):
        for c in range(length // 16):
            to = at + c * 128 * groups + r // 8 * 128 + r % 8 * 16
            image[to : to + 16] = rows[r, 16 * c : 16 * c + 16]
    return Placed(image, descriptor(at + 2 * step * 128 * groups, 128 * groups, 128, 0))


def across_k(rows: NDArray[np.uint8], width: int, at: int, step: int, size: int = 2) -> Placed:
    """The same operand with K slowest: lines are k, elements of `size` bytes of all rows lie along them."""
    elements = rows.view({1: np.uint8, 2: np.uint16, 4: np.uint32}[size])
    count, depth = elements.shape
    image = np.zeros(SHARED // size, elements.dtype)
    tile, chunk_size = (width or 16) // size, 16 // size
    columns = -(-count // tile)
    for n in range(count):
        for k in range(depth):
            chunk, within = n % tile // chunk_size, n % chunk_size
            line = at // size + (k // 8 * columns + n // tile) * 8 * tile + k % 8 * tile
            moved = chunk_of(chunk, k % 8, width) if width else chunk
            image[line + chunk_size * moved + within] = elements[n, k]
    along, down = 8 * size * tile, 8 * size * tile * columns
    start = at + 32 // size // 8 * step * down
    leading, stride = (along, down) if width else (down, along)
    return Placed(image.view(np.uint8), descriptor(start, leading, stride, width))


def descriptor(start: int, leading: int, stride: int, width: int) -> int:
    return start >> 4 | leading >> 4 << 16 | stride >> 4 << 32 | SWIZZLES[width] << 62


def as_bytes(kind: str, patterns: Bits) -> NDArray[np.uint8]:
    word = {8: np.uint8, 16: np.uint16, 32: np.uint32}[BITS[kind]]
    return np.ascontiguousarray(patterns.astype(word)).view(np.uint8)


def small(rng: np.random.Generator, rows: int, depth: int, unsigned: bool = False) -> NDArray[np.float64]:
    return rng.integers(0 if unsigned else -2, 3, (rows, depth)).astype(np.float64)
