"""Host memory as the kernel sees it: whatever a tensor points to, as bytes, without a copy."""

from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from cuasmrl.errors import CuasmrlError

Bytes = npt.NDArray[np.uint8]

# Element types that Triton has a pointer type for; it goes by the name.
_INTEGERS = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
_FLOATS = ("float16", "bfloat16", "float32", "float64", "float8_e4m3fn", "float8_e5m2")


_wrapped: weakref.WeakSet[Buffer] = weakref.WeakSet()


class Buffer:
    """A NumPy array in the clothes of a tensor, as far as Triton and its autotuner look."""

    device = "cpu"

    def __init__(self, array: npt.NDArray[Any]) -> None:
        self.array = array
        _wrapped.add(self)

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.array.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape

    def data_ptr(self) -> int:
        return int(self.array.__array_interface__["data"][0])

    def numel(self) -> int:
        return self.array.size

    def element_size(self) -> int:
        return self.array.itemsize

    def stride(self, axis: int | None = None) -> tuple[int, ...] | int:
        """Steps along each axis, counted in elements."""
        steps = tuple(step // self.array.itemsize for step in self.array.strides)
        return steps if axis is None else steps[axis]

    # What the autotuner does with arguments it has to restore between configurations.

    def zero_(self) -> Buffer:
        self.array[...] = 0
        return self

    def clone(self) -> Buffer:
        return Buffer(self.array.copy())

    def copy_(self, other: Buffer) -> Buffer:
        self.array[...] = other.array
        return self


def wrap(array: npt.NDArray[Any]) -> Buffer:
    """Make a NumPy array an argument of a Triton kernel; the kernel works on the array itself."""
    if not isinstance(array, np.ndarray):
        raise CuasmrlError(f"wrap takes a NumPy array, got a {type(array).__name__}.")
    if array.dtype.name not in _INTEGERS + _FLOATS or not array.dtype.isnative:
        raise CuasmrlError(
            f"Triton has no pointer to elements of type {array.dtype}; "
            f"use one of {', '.join(_INTEGERS + _FLOATS)}."
        )
    if not array.flags.writeable:
        raise CuasmrlError("The array is read-only and a kernel might write to it; pass a copy.")
    if any(step < 0 for step, length in zip(array.strides, array.shape, strict=True) if length > 1):
        raise CuasmrlError("The array runs backwards in memory (a negative stride); pass a copy.")
    if any(step % array.itemsize for step in array.strides):
        raise CuasmrlError("The array's strides are not whole elements (a field of records?); pass a copy.")
    return Buffer(array)


class _Region:
    """Lets NumPy look at foreign memory and keeps the owner of that memory alive meanwhile."""

    def __init__(self, owner: object, start: int, size: int) -> None:
        self.owner = owner
        self.__array_interface__ = {"data": (start, False), "shape": (size,), "typestr": "|u1", "version": 3}


def bytes_of(tensor: Any, what: str) -> Bytes | None:
    """The memory from a tensor's first element to the end of its storage; None for a null pointer.

    A slice so keeps everything behind it, which is what a kernel that gets strides as numbers walks over.
    """
    if not callable(getattr(tensor, "data_ptr", None)):
        raise CuasmrlError(
            f"{what} has to be a tensor and is a {type(tensor).__name__}; "
            "pass a CPU tensor, or a NumPy array by cuasmrl.gpu.virtual.wrap(array)."
        )
    _check_device(tensor, what)
    try:
        start = tensor.data_ptr()
        if start == 0:
            return None
        end = _end(tensor, start)
    except RuntimeError as error:
        # Sparse and fake tensors have a data_ptr that raises.
        raise CuasmrlError(f"{what} has no memory of its own: {error}") from error
    if end is None:
        raise CuasmrlError(
            f"{what} is a {type(tensor).__name__} with data_ptr() but neither untyped_storage() nor nbytes, "
            "so its size is unknown; pass a CPU tensor, or a NumPy array by cuasmrl.gpu.virtual.wrap(array)."
        )
    return np.asarray(_Region(tensor, start, max(end - start, 0)))


def living_buffer(address: int) -> Bytes | None:
    """The storage of a living CPU tensor, or the wrapped NumPy array, that holds an address.

    A kernel may find addresses in memory: a tensor filled with the `data_ptr()` of others. Nothing but whole
    storages is ever given out, so no other memory of this process can be reached.
    """
    for owner, start, end in _living():
        if start <= address < end:
            return np.asarray(_Region(owner, start, end - start))
    return None


def _living() -> Iterator[tuple[object, int, int]]:
    """Owner, start and end of all memory that a kernel could have been told of."""
    for buffer in _wrapped:
        root = _root_of(buffer.array)
        yield root, int(root.__array_interface__["data"][0]), _end_of_array(root)
    torch = sys.modules.get("torch")
    if torch is None:
        return
    for tensor in _tensors(torch.Tensor):
        if tensor.device.type == "cpu" and tensor.layout is torch.strided:
            try:
                storage = tensor.untyped_storage()
                start = int(storage.data_ptr())
            except (NotImplementedError, RuntimeError):
                # Fake tensors and wrappers of other tensors have no memory of their own.
                continue
            yield storage, start, start + int(storage.nbytes())


def _tensors(kind: type) -> list[Any]:
    """All tensors that Python knows of.

    By type alone, since asking an object for its class may run code of its own. No other object is kept for
    longer than a moment: among them are tuples that somebody is still filling, which nobody else may hold.
    """
    return [thing for thing in gc.get_objects() if issubclass(type(thing), kind)]


def zeros(size: int, alignment: int) -> Bytes:
    """Fresh memory whose address is a multiple of the alignment."""
    room = np.zeros(size + alignment - 1, np.uint8)
    skip = -int(room.__array_interface__["data"][0]) % alignment
    return room[skip : skip + size]


def _check_device(tensor: Any, what: str) -> None:
    device = getattr(tensor, "device", "cpu")
    kind = str(getattr(device, "type", device))
    if kind.partition(":")[0] != "cpu":
        raise CuasmrlError(
            f"{what} lives on {device}; the virtual GPU works on host memory, so move it to the CPU."
        )


def _end(tensor: Any, start: int) -> int | None:
    if isinstance(tensor, Buffer):
        return _end_of_array(tensor.array)
    if hasattr(tensor, "untyped_storage"):
        storage = tensor.untyped_storage()
        return int(storage.data_ptr() + storage.nbytes())
    # Triton's reinterpret() wraps a tensor to give it another element type.
    base = getattr(tensor, "base", None)
    if callable(getattr(base, "data_ptr", None)):
        return _end(base, start)
    size = getattr(tensor, "nbytes", None)
    return start + size if isinstance(size, int) else None


def _root_of(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The array that owns the memory of a view."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def _end_of_array(array: npt.NDArray[Any]) -> int:
    root = _root_of(array)
    first = int(root.__array_interface__["data"][0])
    steps = zip(root.strides, root.shape, strict=True)
    reach = sum(max(step, 0) * (length - 1) for step, length in steps)
    return first + int(reach) + root.itemsize
