"""Tensor maps: the bytes of each field, and fields that no map can have."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cuasmrl.gpu.emulator.tensor_maps import BYTES, Element, ImpossibleMapError, TensorMap, decode_tensor_map

PLAIN = TensorMap(0x7_0000_1230, Element.F16, (200, 300), (448,), (64, 128), 128)


def test_the_bytes_of_a_map() -> None:
    """By hand, from the table of fields."""
    data = PLAIN.encode()
    assert len(data) == BYTES
    words = [int.from_bytes(data[at : at + 4], "little") for at in range(0, BYTES, 4)]
    assert words[:2] == [0x1230, 7]
    assert words[2] == (2 - 1) << 4 | 6 << 7 | 3 << 13
    assert words[3:8] == [448 // 16, 0, 0, 0, 0]
    assert words[8:13] == [199, 299, 0, 0, 0]
    assert words[13:15] == [63 << 24, 127]
    assert not any(words[15:])


def test_long_strides_and_five_dimensions() -> None:
    strides = (16 << 33, 32, 16 << 35, 64)
    wide = TensorMap(0, Element.U8, (1, 2, 3, 4, 5), strides, (16, 2, 256, 1, 7), 0)
    words = [int.from_bytes(wide.encode()[at : at + 4], "little") for at in range(0, 64, 4)]
    assert words[3:7] == [0, 2, 0, 4]
    assert words[7] == 2 | 8 << 8
    assert words[14] == 1 | 255 << 8 | 0 << 16 | 6 << 24
    assert decode_tensor_map(wide.encode()) == wide


@st.composite
def maps(draw: st.DrawFn) -> TensorMap:
    rank = draw(st.integers(1, 5))
    element = draw(st.sampled_from(list(Element)))
    swizzle = draw(st.sampled_from((0, 32, 64, 128)))
    most = min(swizzle or 4096, 256 * element.bytes)
    row = draw(st.integers(1, most // 16)) * 16 // element.bytes
    return TensorMap(
        draw(st.integers(0, (1 << 56) // 16)) * 16,
        element,
        tuple(draw(st.lists(st.integers(1, 1 << 32), min_size=rank, max_size=rank))),
        tuple(draw(st.lists(st.integers(0, (1 << 36) - 1), min_size=rank - 1, max_size=rank - 1).map(
            lambda units: [16 * unit for unit in units]))),
        (row, *draw(st.lists(st.integers(1, 256), min_size=rank - 1, max_size=rank - 1))),
        swizzle,
        element.is_float and draw(st.booleans()),
        element in (Element.F32, Element.F32_FTZ) and draw(st.booleans()),
    )  # fmt: skip


@given(maps())
@settings(max_examples=200, deadline=None)
def test_there_and_back(map_: TensorMap) -> None:
    assert decode_tensor_map(map_.encode()) == map_


def test_bits_for_caches_change_nothing() -> None:
    data = bytearray(PLAIN.encode())
    data[10] |= 0b0110_0110
    assert decode_tensor_map(bytes(data)) == PLAIN


@pytest.mark.parametrize(
    ("map_", "sentence"),
    [
        (replace(PLAIN, address=8), "its tensor begins at 0x8, not aligned to 16 bytes"),
        (replace(PLAIN, sizes=(200, 0)), "its tensor has 0 elements along dimension 1"),
        (replace(PLAIN, strides=(440,)), "its stride along dimension 1 is 440 bytes; multiples of 16"),
        (replace(PLAIN, box=(64, 257)), "its box has 257 elements along dimension 1; 1 to 256 are possible"),
        (replace(PLAIN, box=(60, 8)), "a row of its box has 120 bytes, which 16 do not divide"),
        (replace(PLAIN, box=(72, 8)), "a row of its box has 144 bytes, more than the 128 of its swizzle"),
        (replace(PLAIN, element=Element.S32, box=(32, 8), fills_nan=True), "it fills with NaN, and .* S32"),
        (replace(PLAIN, rounds_to_tf32=True), "it rounds to TF32, and its elements are F16"),
        (replace(PLAIN, sizes=(), strides=(), box=()), "it has 0 dimensions"),
    ],
)
def test_what_the_driver_would_refuse(map_: TensorMap, sentence: str) -> None:
    with pytest.raises(ImpossibleMapError, match=sentence):
        map_.encode()


@pytest.mark.parametrize(
    ("byte", "bits", "sentence"),
    [
        (8, 0b0100_0000, "it has 6 dimensions; 1 to 5 are possible"),
        (9, 0b0000_0100, "its element type is 14, which does not exist"),
        (9, 0b0000_0101, "its elements are packed 4 or 6 bits"),
        (9, 0b0001_1000, "its interleave is 3, which does not exist"),
        (9, 0b0000_1000, "it interleaves 16 bytes, which has no model"),
        (10, 0b0001_0000, "its swizzle moves other units than 16 bytes"),
        (8, 0b0000_0001, "bits whose meaning is not known"),
        (11, 0b1000_0000, "bits whose meaning is not known"),
        (0, 0b0000_0001, "its tensor begins at 0x700001231, not aligned"),
        (0x34, 0b0000_1000, "it skips elements"),
        (0x37, 0b0100_0000, "a row of its box has 256 bytes, more than the 128 of its swizzle"),
        (0x37, 0b0000_0010, "more than|which 16 do not divide"),
    ],
)
def test_impossible_bits(byte: int, bits: int, sentence: str) -> None:
    data = bytearray(PLAIN.encode())
    data[byte] ^= bits
    with pytest.raises(ImpossibleMapError, match=sentence):
        decode_tensor_map(bytes(data))
