"""Launches as another process gets them: parameters packed, memory that is shared stays shared."""

from dataclasses import replace

import numpy as np
import pytest

from cuasmrl.binary.cubin import Kernel, Parameter
from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.devices.packed import pack
from cuasmrl.gpu.emulator.tensor_maps import Element, TensorMap, decode_tensor_map
from cuasmrl.gpu.launches.launch import Argument, Launch, Tiles
from tests.traced_kernels import traced


def launch(*arguments: Argument) -> Launch:
    return Launch((1, 1, 1), (32, 1, 1), 0, arguments)


def kernel_of(*sizes: int) -> Kernel:
    """A kernel with parameters of these sizes, each at a multiple of its size."""
    parameters, offset = [], 0
    for ordinal, size in enumerate(sizes):
        offset = -(-offset // size) * size
        parameters.append(Parameter(ordinal, offset, size))
        offset += size
    return replace(traced("vector_add").listing.kernel, parameters=tuple(parameters))


def test_parameters_stand_where_the_cubin_says() -> None:
    x = np.arange(4, dtype=np.float32)
    packed = pack(kernel_of(8, 4, 8, 2), launch(x, np.int32(-2), None, np.uint16(7)))
    area = packed.parameters([0x7F00000100])
    assert area.hex() == "000100007f000000" + "feffffff" + "00000000" + "00" * 8 + "0700"


def test_a_tensor_map_gets_the_address_of_its_tensor() -> None:
    x = np.zeros((64, 64), np.float16)
    tiles = Tiles(x[8:], "F16", (64, 56), (128,), (64, 8), swizzle=128)
    packed = pack(kernel_of(8, 128), launch(x, tiles))
    assert [region.arguments for region in packed.regions] == [(0, 1)]
    area = packed.parameters([0x10000])
    assert area[:8] == (0x10000).to_bytes(8, "little")
    assert decode_tensor_map(area[128:]) == TensorMap(
        0x10000 + 8 * 128, Element.F16, (64, 56), (128,), (64, 8), 128
    )
    alone = pack(kernel_of(128), launch(tiles))
    assert alone.parameters([0x2000], lambda tiles: tiles.address.to_bytes(128, "big"))[-2:] == b"\x20\x00"


@pytest.mark.parametrize(
    ("tiles", "reason"),
    [
        (Tiles(np.zeros(64), "F17", (64,), (), (64,)), "its elements are F17, which is none of U8, U16"),
        (Tiles(np.zeros(64), "F64", (64,), (), (512,)), "its box has 512 elements along dimension 0"),
    ],
)
def test_impossible_tensor_maps(tiles: Tiles, reason: str) -> None:
    with pytest.raises(CuasmrlError, match=f"argument 0 is a tensor map that no driver makes: {reason}"):
        pack(kernel_of(128), launch(tiles))


def test_one_buffer_passed_twice_is_one_region() -> None:
    x = np.zeros(8, np.float32)
    packed = pack(kernel_of(8, 8), launch(x, x))
    assert [region.arguments for region in packed.regions] == [(0, 1)]
    assert packed.parameters([0x1000]) == (0x1000).to_bytes(8, "little") * 2


def test_overlapping_views_keep_their_distance() -> None:
    x = np.arange(32, dtype=np.int32)
    packed = pack(kernel_of(8, 8, 8), launch(x[4:20], x[:8], x[24:]))
    assert [region.arguments for region in packed.regions] == [(0, 1), (2,)]
    area = packed.parameters([0x1000, 0x2000])
    assert [int.from_bytes(area[n : n + 8], "little") for n in (0, 8, 16)] == [0x1010, 0x1000, 0x2000]
    assert packed.regions[0].data.view(np.int32).tolist() == list(range(20))


def test_a_strided_view_brings_what_lies_between() -> None:
    x = np.arange(12, dtype=np.int16).reshape(3, 4)
    packed = pack(kernel_of(8), launch(x[:, 1]))
    assert packed.regions[0].data.view(np.int16).tolist() == list(range(1, 10))


def test_buffers_are_copies() -> None:
    x = np.zeros(4, np.int32)
    packed = pack(kernel_of(8), launch(x))
    packed.regions[0].data[:] = 1
    assert not x.any()


@pytest.mark.parametrize(
    ("dtype", "may"),
    [("float16", True), ("float64", True), ("int32", False), ("uint8", False), ("V4", False)],
)
def test_only_floats_may_be_poisoned(dtype: str, may: bool) -> None:
    packed = pack(kernel_of(8), launch(np.zeros(4, dtype)))
    assert packed.regions[0].may_poison is may


def test_narrow_floats_may_be_poisoned() -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    packed = pack(kernel_of(8), launch(np.zeros(4, ml_dtypes.bfloat16)))
    assert packed.regions[0].may_poison


def test_an_empty_buffer_is_a_null_pointer() -> None:
    packed = pack(kernel_of(8), launch(np.zeros(0, np.float32)))
    assert packed.regions == ()
    assert packed.parameters([]) == bytes(8)


def test_other_arguments_than_the_kernel_takes_are_refused() -> None:
    with pytest.raises(
        CuasmrlError, match=r"takes parameters of \[8, 4\] bytes, but the launch has \[8, 8\]"
    ):
        pack(kernel_of(8, 4), launch(None, np.int64(1)))
