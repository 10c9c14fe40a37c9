"""Tensors that a kernel gets, on the host and in their own types, as far as a launch file needs them."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.launches.fills import FLOATS, dtype_named
from cuasmrl.gpu.virtual.memory import bytes_of

SAMPLED = 1 << 22
"""Elements of a float buffer that tell its distribution. Of integers the range has to be exact."""

_ELEMENTS = {
    "i1": "bool", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64",
    "u1": "bool", "u8": "uint8", "u16": "uint16", "u32": "uint32", "u64": "uint64",
    "fp16": "float16", "bf16": "bfloat16", "fp32": "float32", "fp64": "float64",
    "fp8e4nv": "float8_e4m3fn", "fp8e5": "float8_e5m2",
}  # fmt: skip
_CONSTANT = "k"
"""Behind the star, for a pointer through which nothing is written."""


@dataclass(frozen=True, eq=False)
class Taken:
    """A buffer from its first element to the end of its storage, or the beginning of it."""

    array: npt.NDArray[Any]
    elements: int
    """Of the whole."""


def take(type_: str, tensor: Any, what: str) -> Taken:
    """What a pointer of one of Triton's types points to."""
    element = _element(type_, what)
    kind = dtype_named(element)
    most = SAMPLED * kind.itemsize if element in FLOATS else None
    data, size = _on_host(tensor, what, most)
    return Taken(data[: data.nbytes - data.nbytes % kind.itemsize].view(kind), size // kind.itemsize)


def _element(type_: str, what: str) -> str:
    inner = type_[1:]
    found = _ELEMENTS.get(inner) or _ELEMENTS.get(inner.removeprefix(_CONSTANT))
    if found is None:
        raise CuasmrlError(f"{what} points to elements of type {inner}, which launch files do not know")
    return found


def _on_host(tensor: Any, what: str, most: int | None) -> tuple[npt.NDArray[np.uint8], int]:
    """At most so many bytes, and how many there are."""
    device = getattr(tensor, "device", "cpu")
    if str(getattr(device, "type", device)) == "cpu":
        there = bytes_of(tensor, what)
        assert there is not None
        return there[:most], there.nbytes
    torch = importlib.import_module("torch")
    # Triton's reinterpret() wraps a tensor to give it another element type.
    base = getattr(tensor, "base", tensor)
    place = base.storage_offset() * base.element_size()
    storage = torch.tensor([], dtype=torch.uint8, device=device).set_(base.untyped_storage())[place:]
    return storage[:most].cpu().numpy(), storage.numel()
