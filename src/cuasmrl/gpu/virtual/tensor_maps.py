"""Tensor maps as the driver makes them for tensor descriptors: cuTensorMapEncodeTiled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.emulator.tensor_maps import Element, ImpossibleMapError, TensorMap
from cuasmrl.gpu.virtual.memory import bytes_of

_SWIZZLES = (0, 32, 64, 128)
_TF32 = 11
_HOST_NUMBERS = {8: Element.F64, 9: Element.BF16, 10: Element.F32_FTZ}
"""Types that the driver's interface numbers otherwise than maps do (CUtensorMapDataType)."""


def encode_tiled(
    address: int,
    swizzle: int,
    element_bytes: int,
    element: int,
    box: Sequence[int],
    shape: Sequence[int],
    strides: Sequence[int],
    padding: int = 0,
) -> np.void:
    """The map of a tensor, with the type numbered as in the driver's interface; outermost dimension first."""
    kind = Element.F32 if element == _TF32 else _HOST_NUMBERS.get(element, element)
    return _encoded(
        address, swizzle, kind, box, shape, strides, bool(padding), element == _TF32, "The tensor map"
    )


def encode_descriptor(descriptor: Any, metadata: Mapping[str, Any], what: str) -> np.void:
    """The map of one of Triton's descriptors, for the box that its compiler chose."""
    if metadata.get("is_im2col") or metadata.get("fp4_padded"):
        raise CuasmrlError(f"{what} is an im2col or FP4 descriptor, which the virtual GPU does not do.")
    data = bytes_of(descriptor.base, what)
    if data is None:
        raise CuasmrlError(f"{what} describes a tensor without elements.")
    rounds = bool(getattr(descriptor, "round_f32_to_tf32", False))
    fills_nan = getattr(descriptor, "padding", "zero") == "nan"
    return _encoded(
        int(data.ctypes.data),
        metadata["swizzle"],
        metadata["elem_type"],
        metadata["block_size"],
        descriptor.shape,
        descriptor.strides,
        fills_nan,
        rounds,
        what,
    )


def _encoded(
    address: int,
    swizzle: int,
    element: int,
    box: Sequence[int],
    shape: Sequence[int],
    strides: Sequence[int],
    fills_nan: bool,
    rounds: bool,
    what: str,
) -> np.void:
    if element not in list(Element):
        raise CuasmrlError(f"{what} has elements of type {element}, which the virtual GPU does not do.")
    if not len(box) == len(shape) == len(strides):
        raise CuasmrlError(f"{what} has {len(shape)} sizes, {len(strides)} strides and a box of {len(box)}.")
    kind = Element(element)
    map_ = TensorMap(
        address,
        kind,
        tuple(reversed([int(size) for size in shape])),
        tuple(int(stride) * kind.bytes for stride in reversed(strides[:-1])),
        tuple(reversed([int(size) for size in box])),
        _SWIZZLES[swizzle],
        fills_nan,
        rounds,
    )
    try:
        return np.void(map_.encode())
    except ImpossibleMapError as error:
        raise CuasmrlError(f"{what} cannot be made into a tensor map: {error}.") from None
