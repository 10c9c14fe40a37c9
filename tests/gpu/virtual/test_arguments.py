"""Each type of a signature becomes the bits the kernel expects."""

from typing import Any

import numpy as np
import pytest

from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.virtual.arguments import marshal


def one(type_: str, value: Any) -> Any:
    (argument,) = marshal({"a": type_}, [value], "k")
    return argument


@pytest.mark.parametrize(
    ("type_", "value", "expected"),
    [
        ("i1", True, np.uint8(1)),
        ("u1", False, np.uint8(0)),
        ("i8", -128, np.int8(-128)),
        ("i16", 7, np.int16(7)),
        ("i32", np.int64(-5), np.int32(-5)),
        ("i64", 1 << 40, np.int64(1 << 40)),
        ("u8", 255, np.uint8(255)),
        ("u16", 65535, np.uint16(65535)),
        ("u32", 1 << 31, np.uint32(1 << 31)),
        ("u64", 1 << 63, np.uint64(1 << 63)),
        ("fp16", 1.5, np.float16(1.5)),
        ("bf16", 1.5, np.uint16(0x3FC0)),
        ("bf16", float("nan"), np.uint16(0x7FC0)),
        ("fp32", 0.1, np.float32(0.1)),
        ("f32", 3, np.float32(3)),
        ("fp64", 0.1, np.float64(0.1)),
    ],
)
def test_scalars(type_: str, value: Any, expected: np.generic) -> None:
    argument = one(type_, value)
    assert argument.dtype == expected.dtype
    assert argument.tobytes() == expected.tobytes()


def test_bfloat16_is_cut_and_not_rounded() -> None:
    """As Triton's launcher does it: 1 + 255/256 has a ninth bit of fraction, which goes."""
    assert one("bf16", 1 + 255 / 256) == 0x3FFF


def test_a_single_too_large_becomes_infinite() -> None:
    assert np.isinf(one("fp32", 1e300))


def test_constants_take_no_place() -> None:
    arguments = marshal({"n": "i32", "B": "constexpr", "none": "constexpr", "m": "i32"}, [1, 2, None, 3], "k")
    assert list(arguments) == [np.int32(1), np.int32(3)]


def test_tuples_are_flattened() -> None:
    signature = {"t": ("i32", ("i64", "constexpr"), "i8")}
    assert [a.dtype.name for a in marshal(signature, [(1, (2, 3), 4)], "k") if isinstance(a, np.generic)] == [
        "int32",
        "int64",
        "int8",
    ]


@pytest.mark.parametrize("null", [None, 0])
def test_null_pointers(null: Any) -> None:
    assert one("*fp32", null) is None


@pytest.mark.parametrize(
    ("type_", "value", "message"),
    [
        ("i32", 1 << 31, "Argument a of k has type i32, which does not hold 2147483648"),
        ("u8", -1, "Argument a of k has type u8, which does not hold -1"),
        ("i32", 1.5, "Argument a of k has type i32, but a float was given"),
        ("fp32", "x", "Argument a of k has type fp32, but a str was given"),
        ("fp16", 1e6, "Argument a of k has type fp16, which does not hold 1000000.0"),
        ("fp8e5", 1.0, "type fp8e5, which the virtual GPU cannot pass"),
        ("nvTmaDesc", object(), "type nvTmaDesc, which the virtual GPU cannot pass"),
        ("*fp32", 4096, "Argument a of k has to be a tensor and is a int; .*wrap"),
        ("*fp32", np.zeros(4), "Argument a of k has to be a tensor and is a ndarray; .*wrap"),
    ],
)
def test_a_wrong_value_is_named(type_: str, value: Any, message: str) -> None:
    with pytest.raises(CuasmrlError, match=message):
        one(type_, value)


def test_a_missing_argument() -> None:
    with pytest.raises(CuasmrlError, match="k takes 2 arguments, 1 were given"):
        marshal({"a": "i32", "b": "i32"}, [1], "k")
