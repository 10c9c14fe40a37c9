"""Reading launch files: what is in them comes back, and every mistake is named."""

import math
from typing import Any

import pytest

from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.launches import Buffer, Bytes, SameAs, Scalar, parse

BUFFER = {"dtype": "float32", "shape": [4, 2], "fill": "zeros"}


def launch(*arguments: Any, **changes: Any) -> dict[str, Any]:
    return {"format": 1, "grid": [4], "block": [32, 2], "arguments": list(arguments)} | changes


def test_every_kind_of_argument() -> None:
    found = parse(
        launch(
            {**BUFFER, "name": "x"},
            {"dtype": "int32", "value": -7, "name": "n"},
            {"dtype": "float16", "value": "-inf"},
            {"dtype": "bool", "value": True},
            {"bytes": "00ff10"},
            {"same_as": 0},
            None,
            kernel="add",
            shared_bytes=16,
            seed=3,
        )
    )
    assert (found.grid, found.block) == ((4, 1, 1), (32, 2, 1))
    assert (found.kernel, found.shared_bytes, found.seed) == ("add", 16, 3)
    assert found.arguments == (
        Buffer("float32", (4, 2), "zeros", name="x"),
        Scalar("int32", -7, "n"),
        Scalar("float16", -math.inf),
        Scalar("bool", 1),
        Bytes(b"\x00\xff\x10"),
        SameAs(0),
        None,
    )


def test_fills_have_defaults() -> None:
    found = parse(launch(BUFFER | {"fill": "normal"}, BUFFER | {"fill": "range", "step": 2}))
    assert found.arguments[0] == Buffer("float32", (4, 2), "normal", {"mean": 0.0, "std": 1.0})
    assert found.arguments[1] == Buffer("float32", (4, 2), "range", {"start": 0, "step": 2})


INT = {"dtype": "int8", "shape": [200]}


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ([], "a JSON object is needed, not list"),
        (launch(format=2), "format is 2, but this version reads 1"),
        ({"grid": [1], "block": [1], "arguments": []}, "format is None"),
        (launch(girth=1), "the field girth is not known"),
        ({"format": 1, "grid": [1], "arguments": []}, "the field block is missing"),
        (launch(grid=[1, 2, 3, 4]), "grid must be a list of one to three sizes"),
        (launch(grid=7), "grid must be a list"),
        (launch(block=[0]), "block must be a whole number from 1 on, not 0"),
        (launch(block=[True]), "block must be a whole number"),
        (launch(shared_bytes=-1), "shared_bytes must be a whole number from 0 on"),
        (launch(kernel=5), "kernel must be a name"),
        (launch(arguments={}), "arguments must be a list"),
        (launch(None, 5), "argument 1: a JSON object is needed"),
        (launch({"name": "n"}), r"argument 0 \(n\): an argument has dtype and value"),
        (launch({"dtype": "int32"}), "an argument has dtype and value"),
        (launch({"name": 3, "dtype": "int32", "value": 1}), "name must be a string"),
        (launch({"dtype": "int33", "value": 1}), "dtype 'int33' is not known; use one of bool, int8"),
        (launch({"dtype": ["int32"], "value": 1}), "is not known"),
        (
            launch({"dtype": "int32", "value": 1, "shape": [1], "fill": "zeros"}),
            "the field value is not known",
        ),
        (launch({"dtype": "int32", "value": "7"}), "value must be a number, not '7'"),
        (launch({"dtype": "int32", "value": True}), "value must be a number"),
        (launch({"dtype": "int32", "value": 2**31}), "int32 does not hold 2147483648"),
        (launch({"dtype": "int32", "value": 2**90}), "more than 64 bits"),
        (launch({"dtype": "int32", "value": 1.5}), "int32 does not hold 1.5"),
        (launch({"dtype": "int32", "value": "nan"}), "int32 does not hold 'nan'"),
        (launch({"dtype": "float16", "value": 1e6}), "float16 does not hold"),
        (launch({"dtype": "int32", "shape": [1]}), "a buffer needs fill"),
        (launch({"dtype": "int32", "fill": "zeros"}), "a buffer needs shape"),
        (launch(BUFFER | {"shape": 4}), "shape must be a list"),
        (launch(BUFFER | {"shape": [-1]}), "shape must be a whole number from 0 on, not -1"),
        (launch(BUFFER | {"fill": "ones"}), "fill 'ones' is not known; use one of zeros, constant"),
        (launch(BUFFER | {"std": 2}), "the field std is not known"),
        (launch(BUFFER | {"fill": "constant"}), "fill constant needs value"),
        (launch(BUFFER | {"fill": "normal", "std": -1}), "std -1 is below zero"),
        (launch(BUFFER | {"fill": "normal", "mean": "inf"}), "reaches inf"),
        (launch(BUFFER | {"fill": "uniform", "low": 2, "high": 1}), "low 2 is above high 1"),
        (launch(BUFFER | {"fill": "uniform", "low": -3e38, "high": 3e38}), "float32 does not hold"),
        (launch(INT | {"fill": "normal"}), "fill normal makes no int8"),
        (launch(INT | {"fill": "range"}), "fill range reaches 199, which int8 does not hold"),
        (launch(INT | {"fill": "range", "step": 0.5}), "fill range of int8 needs whole numbers"),
        (launch(INT | {"fill": "integers", "low": 0}), "fill integers needs high"),
        (launch(INT | {"fill": "integers", "low": 0, "high": 128}), "reaches 128"),
        (launch(INT | {"fill": "values"}), "needs a list called values"),
        (launch(INT | {"fill": "values", "values": [1]}), "values has 1 elements, but the shape has 200"),
        (
            launch({"dtype": "int8", "shape": [1], "fill": "values", "values": [300]}),
            "int8 does not hold 300",
        ),
        (launch({"bytes": "0"}), "bytes must be hexadecimal"),
        (launch({"bytes": ""}), "bytes must be hexadecimal"),
        (launch({"bytes": 12}), "bytes must be hexadecimal"),
        (launch({"same_as": 0}), "same_as must name an earlier buffer, which 0 is not"),
        (launch({"dtype": "int32", "value": 1}, {"same_as": 0}), "must name an earlier buffer"),
    ],
)
def test_mistakes_are_named(data: Any, expected: str) -> None:
    with pytest.raises(CuasmrlError, match=expected) as caught:
        parse(data, "k.json")
    assert str(caught.value).startswith("k.json")
