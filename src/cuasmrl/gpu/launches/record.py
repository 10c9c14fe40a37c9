"""A launch file in memory: what it says of each argument, and the `Launch` it stands for."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from cuasmrl.binary.cubin import Kernel
from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.launches.fills import Number, cast, dtype_named, filled
from cuasmrl.gpu.launches.launch import Argument, Launch, argument_bytes

FORMAT = 1
_MOST_BYTES = 32 << 30
"""Buffers live in the memory of this machine; more than this is a mistake in a shape."""


@dataclass(frozen=True)
class Buffer:
    """An array passed by pointer."""

    dtype: str
    shape: tuple[int, ...]
    fill: str
    """A key of `fills.FILLS`, or `values`."""
    settings: Mapping[str, Number] = field(default_factory=dict)
    values: tuple[Number, ...] = ()
    """All elements in the order of memory, for the fill `values`."""
    name: str = ""

    @property
    def bytes(self) -> int:
        return math.prod(self.shape) * dtype_named(self.dtype).itemsize


@dataclass(frozen=True)
class Scalar:
    """A number passed by value in its own type."""

    dtype: str
    value: Number
    name: str = ""


@dataclass(frozen=True)
class Bytes:
    """Anything else passed by value, such as a struct."""

    bytes: bytes
    name: str = ""


@dataclass(frozen=True)
class SameAs:
    """The same buffer as an earlier argument."""

    argument: int
    name: str = ""


Entry: TypeAlias = Buffer | Scalar | Bytes | SameAs | None
"""None is a null pointer."""


@dataclass(frozen=True)
class LaunchRecord:
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int
    """Dynamic shared memory."""
    arguments: tuple[Entry, ...]
    kernel: str | None = None
    """Which kernel of the cubin it launches; None where there is only one."""
    seed: int = 0
    cooperative: bool = False
    """Do all blocks run at the same time?"""
    cluster: tuple[int, int, int] | None = None
    """Blocks of a cluster, where the launch says it instead of the cubin."""
    source: str = "the launch file"
    """For messages."""

    def launch(self, kernel: Kernel) -> Launch:
        """The launch with its buffers filled; refused if the kernel takes other arguments."""
        self.check(kernel)
        made: list[Argument] = []
        for number, entry in enumerate(self.arguments):
            if isinstance(entry, SameAs):
                made.append(made[entry.argument])
            elif isinstance(entry, Buffer):
                made.append(self._buffer(entry, number))
            else:
                made.append(_by_value(entry))
        return Launch(self.grid, self.block, self.shared_bytes, tuple(made), self.cooperative, self.cluster)

    def check(self, kernel: Kernel) -> None:
        """Refuse arguments that do not fill the kernel's parameter area exactly."""
        wanted, given = len(kernel.parameters), len(self.arguments)
        if wanted != given:
            sizes = ", ".join(str(parameter.size) for parameter in kernel.parameters)
            raise CuasmrlError(
                f"{self.source} has {given} arguments, but kernel {kernel.name} takes {wanted}"
                + (f" (of {sizes} bytes)" if wanted else "")
            )
        for number, (parameter, entry) in enumerate(zip(kernel.parameters, self.arguments, strict=True)):
            is_pointer = entry is None or isinstance(entry, Buffer | SameAs)
            size = argument_bytes(None if is_pointer else _by_value(entry))
            if size != parameter.size:
                what = "a pointer" if is_pointer else getattr(entry, "dtype", "a value")
                raise CuasmrlError(
                    f"{self.source}, argument {number}{_named(entry)}: kernel {kernel.name} takes "
                    f"{parameter.size} bytes there, but {what} has {size}"
                )
        total = sum(entry.bytes for entry in self.arguments if isinstance(entry, Buffer))
        if total > _MOST_BYTES:
            raise CuasmrlError(
                f"{self.source} asks for buffers of {total >> 30} GiB, more than the {_MOST_BYTES >> 30} GiB "
                "allowed; make the shapes smaller"
            )

    def _buffer(self, entry: Buffer, number: int) -> Argument:
        if entry.fill == "values":
            kind = dtype_named(entry.dtype)
            return np.array([cast(v, entry.dtype) for v in entry.values], kind).reshape(entry.shape)
        # Each argument has a stream of its own, so that one more of them does not change the others.
        return filled(entry.dtype, entry.shape, entry.fill, entry.settings, (self.seed, number))


def _by_value(entry: Entry) -> Argument:
    if isinstance(entry, Scalar):
        return cast(entry.value, entry.dtype)
    return np.void(entry.bytes) if isinstance(entry, Bytes) else None


def _named(entry: Entry) -> str:
    return f" ({entry.name})" if entry is not None and entry.name else ""
