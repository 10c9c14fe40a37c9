"""Launch arguments: what Triton hands over, as NumPy arrays and scalars in the kernel's own types."""

from __future__ import annotations

import operator
import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.launches.launch import Argument
from cuasmrl.gpu.virtual.memory import bytes_of, living_buffer
from cuasmrl.gpu.virtual.tensor_maps import encode_descriptor

_INTEGERS: dict[str, type[np.integer[Any]]] = {
    "i8": np.int8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
    "u8": np.uint8,
    "u16": np.uint16,
    "u32": np.uint32,
    "u64": np.uint64,
}
_BOOLEANS = ("i1", "u1")
_FLOATS = ("fp16", "bf16", "fp32", "f32", "fp64")
# Types that take no place in the parameter area: compile-time constants, None, and integers equal to 1.
_DROPPED = "constexpr"
_DESCRIPTOR = "tensordesc"
_MAP = "tensor map"


def marshal(
    signature: Mapping[Any, Any], values: Sequence[Any], kernel: str, maps: Sequence[Any] = ()
) -> tuple[Argument, ...]:
    """The kernel's parameters, in order, from Triton's signature and the values it was called with.

    `maps` tell, for each descriptor in turn, which map the compiler wants; without any there is no TMA.
    """
    # A list first: looking for living buffers goes over all objects, also over a tuple that is being filled.
    arguments = [
        by_type(type_, value, f"Argument {name} of {kernel}")
        for name, type_, value in parameters_of(signature, values, kernel, maps)
    ]
    return tuple(arguments)


def parameters_of(
    signature: Mapping[Any, Any], values: Sequence[Any], kernel: str, maps: Sequence[Any] = ()
) -> Iterator[tuple[str, str, Any]]:
    """Name, Triton's type and value of each parameter; constants have none, tuples have several."""
    if len(signature) != len(values):
        raise CuasmrlError(f"{kernel} takes {len(signature)} arguments, {len(values)} were given.")
    left = iter(maps)
    for label, declared, given in zip(signature, signature.values(), values, strict=True):
        yield from _flat(str(label), declared, given, left)


def _flat(name: str, type_: Any, value: Any, maps: Iterator[Any]) -> Iterator[tuple[str, str, Any]]:
    if isinstance(type_, tuple):
        for place, (inner, item) in enumerate(zip(type_, value, strict=True)):
            yield from _flat(f"{name}[{place}]", inner, item, maps)
    elif type_.startswith(_DESCRIPTOR):
        wanted = next(maps, None)
        yield from _descriptor(name, type_, value) if wanted is None else _mapped(name, value, wanted)
    elif type_ != _DROPPED:
        yield name, type_, value


def _mapped(name: str, value: Any, wanted: Mapping[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """A tensor descriptor on a chip with TMA: the map of its tensor, then its shape."""
    yield name, _MAP, (value, wanted)
    for type_, sizes in (("i32", value.shape), ("i64", value.strides)):
        for size in sizes:
            yield name, type_, size


def _descriptor(name: str, type_: str, value: Any) -> Iterator[tuple[str, str, Any]]:
    """A tensor descriptor on a chip without TMA: Triton takes it apart, and passes its shape twice."""
    rank = len(value.shape)
    yield name, "*" + type_.partition("<")[2].partition("[")[0], value.base
    for size in (*value.shape, *value.strides):
        yield name, "i64", size
    yield name, "i1", value.padding == "nan"
    # Descriptors learnt a second flag in Triton 3.7, and with it the kernels a second parameter.
    if hasattr(value, "round_f32_to_tf32"):
        yield name, "i1", value.round_f32_to_tf32
    for place, size in enumerate((*value.shape, *value.strides)):
        yield name, "i32" if place < rank else "i64", size


def by_type(type_: str, value: Any, what: str) -> Argument:
    """A value as a parameter of one of Triton's types."""
    if type_.startswith("*"):
        return _pointer(value, what)
    if type_ == _MAP:
        descriptor, wanted = value
        return encode_descriptor(descriptor, wanted, what)
    if type_ in _BOOLEANS:
        return np.uint8(bool(value))
    try:
        if type_ in _INTEGERS:
            return _integer(type_, operator.index(value), what)
        if type_ in _FLOATS:
            return _float(type_, float(value), what)
    except (TypeError, ValueError):
        raise CuasmrlError(f"{what} has type {type_}, but a {type(value).__name__} was given.") from None
    raise CuasmrlError(f"{what} has type {type_}, which the virtual GPU cannot pass to a kernel.")


def _pointer(value: Any, what: str) -> Argument:
    if value is None:
        return None
    # A kernel's author may declare a pointer and pass an address as a number: null, or some `data_ptr()`.
    if isinstance(value, int) and value == 0:
        return None
    if isinstance(value, int) and living_buffer(value) is not None:
        return np.uint64(value)
    return bytes_of(value, what)


def _integer(type_: str, value: int, what: str) -> Argument:
    scalar = _INTEGERS[type_]
    limits = np.iinfo(scalar)
    if not limits.min <= value <= limits.max:
        raise CuasmrlError(f"{what} has type {type_}, which does not hold {value}.")
    return scalar(value)


def _float(type_: str, value: float, what: str) -> Argument:
    if type_ == "fp64":
        return np.float64(value)
    if type_ == "fp16":
        try:
            half: np.float16 = np.frombuffer(struct.pack("<e", value), np.float16)[0]
            return half
        except OverflowError:
            raise CuasmrlError(f"{what} has type fp16, which does not hold {value}.") from None
    with np.errstate(over="ignore"):
        single = np.float32(value)
    # Triton's own launcher cuts the lower half off instead of rounding; a kernel has to see the same bits.
    return np.uint16(single.view(np.uint32) >> np.uint32(16)) if type_ == "bf16" else single
