"""From a launch file to a launch, and the way back."""

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from cuasmrl.binary.cubin import Kernel, Section
from cuasmrl.binary.cubin.container import Parameter
from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.launches import Buffer, Bytes, LaunchRecord, SameAs, Scalar, describe, load, save
from cuasmrl.gpu.launches.description import _is_finite
from cuasmrl.gpu.launches.fills import FLOATS, INTEGERS, dtype_named
from cuasmrl.gpu.launches.launch import Launch
from cuasmrl.gpu.launches.record import Entry


def kernel(*sizes: int) -> Kernel:
    parameters, at = [], 0
    for ordinal, size in enumerate(sizes):
        parameters.append(Parameter(ordinal, at, size))
        at += size
    text = Section(1, ".text.k", 0, 0, 0)
    return Kernel("k", 80, text, (), 32, 0, tuple(parameters), 0x160, (), (), False)


def record(*entries: Entry, seed: int = 0) -> LaunchRecord:
    return LaunchRecord((2, 1, 1), (64, 1, 1), 0, entries, seed=seed, source="k.json")


def array(entry: Buffer, seed: int = 0) -> Any:
    (made,) = record(entry, seed=seed).launch(kernel(8)).arguments
    return made


def test_arguments_are_what_the_file_says() -> None:
    entries = (
        Buffer("float32", (2, 3), "constant", {"value": 1.5}),
        Scalar("int32", 7),
        SameAs(0),
        Bytes(b"abcdef"),
        None,
    )
    launch = record(*entries).launch(kernel(8, 4, 8, 6, 8))
    first, number, again, struct, null = launch.arguments
    assert isinstance(first, np.ndarray)
    assert first.shape == (2, 3)
    assert (first == np.float32(1.5)).all()
    assert number == np.int32(7)
    assert isinstance(number, np.int32)
    assert again is first
    assert isinstance(struct, np.void)
    assert struct.tobytes() == b"abcdef"
    assert null is None
    assert (launch.grid, launch.block) == ((2, 1, 1), (64, 1, 1))


def test_fills() -> None:
    assert array(Buffer("uint8", (3,), "zeros")).tolist() == [0, 0, 0]
    assert array(Buffer("int32", (2, 2), "range", {"start": 5, "step": -2})).tolist() == [[5, 3], [1, -1]]
    assert array(Buffer("float64", (3,), "range", {"start": 0.5, "step": 0.25})).tolist() == [0.5, 0.75, 1.0]
    assert array(Buffer("uint64", (2,), "range", {"start": 2**64 - 2, "step": 1}))[1] == 2**64 - 1
    assert array(Buffer("int64", (2,), "values", {}, (3, -4))).tolist() == [3, -4]
    drawn = array(Buffer("int8", (1000,), "integers", {"low": -2, "high": 2}))
    assert sorted(set(drawn.tolist())) == [-2, -1, 0, 1, 2]
    wide = array(Buffer("uint64", (100,), "integers", {"low": 0, "high": 2**64 - 1}))
    assert wide.max() > 2**63
    normal = array(Buffer("float16", (10_000,), "normal", {"mean": 3.0, "std": 0.5})).astype(np.float64)
    assert normal.mean() == pytest.approx(3, abs=0.03)
    assert normal.std() == pytest.approx(0.5, abs=0.03)
    uniform = array(Buffer("float32", (10_000,), "uniform", {"low": -1.0, "high": 3.0}))
    assert -1 <= uniform.min() < -0.9
    assert 2.9 < uniform.max() <= 3


def test_narrow_floats() -> None:
    pytest.importorskip("ml_dtypes")
    drawn = array(Buffer("bfloat16", (64,), "normal", {"mean": 0.0, "std": 1.0}))
    assert drawn.dtype.name == "bfloat16"
    assert drawn.itemsize == 2
    (scalar,) = record(Scalar("bfloat16", 1.5)).launch(kernel(2)).arguments
    assert isinstance(scalar, np.generic)
    assert scalar.tobytes() == b"\xc0\x3f"


def test_seeds_make_the_contents() -> None:
    entry = Buffer("float32", (100,), "normal", {"mean": 0.0, "std": 1.0})
    assert (array(entry) == array(entry)).all()
    assert not (array(entry) == array(entry, seed=1)).all()
    both = record(entry, entry).launch(kernel(8, 8)).arguments
    assert not np.array_equal(np.asarray(both[0]), np.asarray(both[1]))
    assert np.array_equal(np.asarray(both[0]), array(entry))


@pytest.mark.parametrize(
    ("entries", "sizes", "expected"),
    [
        ((Scalar("int32", 1),), (), r"k.json has 1 arguments, but kernel k takes 0"),
        ((), (8, 4), r"has 0 arguments, but kernel k takes 2 \(of 8, 4 bytes\)"),
        (
            (Scalar("int64", 1, "n"),),
            (4,),
            r"argument 0 \(n\): kernel k takes 4 bytes there, but int64 has 8",
        ),
        ((None,), (4,), r"takes 4 bytes there, but a pointer has 8"),
        ((Bytes(b"abc"),), (4,), r"takes 4 bytes there, but a value has 3"),
        ((Buffer("float64", (1 << 40,), "zeros"),), (8,), r"buffers of 8192 GiB, more than the 32 GiB"),
    ],
)
def test_arguments_have_to_fit_the_kernel(
    entries: tuple[Entry, ...], sizes: tuple[int, ...], expected: str
) -> None:
    with pytest.raises(CuasmrlError, match=expected):
        record(*entries).launch(kernel(*sizes))


def written(launch: Launch, path: Path, names: tuple[str, ...] = ()) -> LaunchRecord:
    save(path, describe(launch, "k", names))
    return load(path)


def test_a_launch_is_described_and_read_back(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    shared = np.zeros((4, 4), np.float32)
    arguments = (
        shared,
        shared,
        rng.standard_normal((64, 64)).astype(np.float16),
        rng.random(500, np.float32),
        rng.permutation(1000).astype(np.int32),
        rng.integers(-5, 100, 10_000, np.int64),
        np.arange(10, 100_010, 10),
        np.full(7, np.nan, np.float32),
        np.zeros(0, np.int8),
        np.float32(0.125),
        np.uint64(2**64 - 1),
        np.void(b"\x01\x02\x03"),
        None,
    )
    found = written(Launch((3, 2, 1), (32, 1, 1), 48, arguments), tmp_path / "k.launch.json", ("x", "y"))
    fills = [e.fill if isinstance(e, Buffer) else type(e).__name__ for e in found.arguments]
    assert fills == ["zeros", "SameAs", "normal", "uniform", "values", "integers", "range", "constant",
                     "zeros", "Scalar", "Scalar", "Bytes", "NoneType"]  # fmt: skip
    assert (found.grid, found.block, found.shared_bytes, found.kernel) == ((3, 2, 1), (32, 1, 1), 48, "k")
    assert found.arguments[0] == Buffer("float32", (4, 4), "zeros", name="x")
    integers = found.arguments[5]
    assert isinstance(integers, Buffer)
    assert integers.settings == {"low": -5, "high": 99}
    again = found.launch(kernel(*[8] * 9, 4, 8, 3, 8))
    for old, new in zip(arguments, again.arguments, strict=True):
        if isinstance(old, np.ndarray):
            assert isinstance(new, np.ndarray)
            assert (new.shape, new.dtype) == (old.shape, old.dtype)
        else:
            assert new == old
    assert np.array_equal(np.asarray(again.arguments[4]), arguments[4])
    assert not list(tmp_path.glob("*.partial"))


def test_a_view_is_as_long_as_its_memory() -> None:
    view = np.arange(100, dtype=np.int32).reshape(10, 10)[:, :5]
    (entry,) = describe(Launch((1, 1, 1), (1, 1, 1), 0, (view,))).arguments
    assert isinstance(entry, Buffer)
    assert entry.shape == (95,)
    assert entry.settings == {"low": 0, "high": 94}


@pytest.mark.parametrize(
    "array",
    [
        np.array([0, 1 << 63], np.uint64),
        np.array([(1 << 64) - 1, 0], np.uint64),
        np.array([1 << 63, (1 << 63) + 3, (1 << 63) + 6], np.uint64),
        np.array([100, -128, -100], np.int8),
        np.array([-(1 << 63), (1 << 63) - 1], np.int64),
    ],
    ids=str,
)
def test_any_range_of_a_type_is_kept(array: npt.NDArray[Any], tmp_path: Path) -> None:
    described = written(Launch((1, 1, 1), (1, 1, 1), 0, (array,)), tmp_path / "k.json")
    (made,) = described.launch(kernel(8)).arguments
    assert isinstance(made, np.ndarray)
    np.testing.assert_array_equal(made, array, strict=True)


_SIGNALLING = {2: 0x7D01, 4: 0x7FA00001, 8: 0x7FF4000000000001}
"""Bits of a NaN whose mere conversion is an invalid operation; memory that nobody wrote may hold them."""


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("dtype", FLOATS[:3])
def test_floats_that_are_no_numbers_are_described_without_a_warning(dtype: str) -> None:
    numbers = np.linspace(-1, 1, 100).astype(dtype)
    signalling = np.array(_SIGNALLING[numbers.itemsize], f"u{numbers.itemsize}").view(dtype)
    for odd in (np.nan, np.inf, -np.inf, signalling):
        buffer = numbers.copy()
        buffer[7] = odd
        buffer.view(f"u{numbers.itemsize}")[8] = signalling.view(f"u{numbers.itemsize}")
        assert not np.isfinite(buffer[7:9]).any()
        (entry,) = describe(Launch((1, 1, 1), (1, 1, 1), 0, (buffer,))).arguments
        assert isinstance(entry, Buffer)
        assert (entry.fill, entry.settings) == ("uniform", {"low": -1.0, "high": 1.0})
    none = np.array([np.nan, np.inf], dtype)
    alone = np.full(4, _SIGNALLING[numbers.itemsize], f"u{numbers.itemsize}").view(dtype)
    for buffer in (none, alone):
        (entry,) = describe(Launch((1, 1, 1), (1, 1, 1), 0, (buffer,))).arguments
        assert isinstance(entry, Buffer)
        assert entry.fill == "constant"
        assert np.isnan(entry.settings["value"])


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("dtype", FLOATS[3:])
def test_narrow_floats_that_are_no_numbers_are_described_without_a_warning(dtype: str) -> None:
    pytest.importorskip("ml_dtypes")
    buffer = np.linspace(-1, 1, 100).astype(dtype_named(dtype))
    buffer.view(f"u{buffer.itemsize}")[:2] = 0x7FA1 if buffer.itemsize == 2 else 0x7F
    (entry,) = describe(Launch((1, 1, 1), (1, 1, 1), 0, (buffer,))).arguments
    assert isinstance(entry, Buffer)
    assert entry.fill == "uniform"


@pytest.mark.parametrize("dtype", ["float16", *FLOATS[3:]])
def test_finite_numbers_are_told_by_their_bits(dtype: str) -> None:
    pytest.importorskip("ml_dtypes")
    kind = dtype_named(dtype)
    every = np.arange(1 << 8 * kind.itemsize).astype(f"u{kind.itemsize}").view(kind)
    with np.errstate(invalid="ignore"):
        expected = np.isfinite(every)
    assert np.array_equal(_is_finite(every), expected)


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_any_buffer_can_be_described(data: st.DataObject) -> None:
    dtype = data.draw(st.sampled_from(INTEGERS + FLOATS[:3]))
    shape = arrays.array_shapes(max_dims=3, max_side=6)
    given_array = data.draw(arrays.arrays(dtype, shape))
    with tempfile.TemporaryDirectory() as folder:
        described = written(Launch((1, 1, 1), (1, 1, 1), 0, (given_array,)), Path(folder) / "k.json")
    (entry,) = described.arguments
    assert isinstance(entry, Buffer)
    (made,) = described.launch(kernel(8)).arguments
    assert isinstance(made, np.ndarray)
    assert (made.shape, made.dtype) == (given_array.shape, given_array.dtype)
    if dtype in INTEGERS:
        assert np.array_equal(made, given_array)


@pytest.mark.parametrize(("text", "expected"), [("{", "is not JSON"), ("[]", "a JSON object is needed")])
def test_a_file_that_is_no_launch(tmp_path: Path, text: str, expected: str) -> None:
    path = tmp_path / "k.json"
    path.write_text(text)
    with pytest.raises(CuasmrlError, match=expected):
        load(path)


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(CuasmrlError, match="cannot read .*name a launch file"):
        load(tmp_path / "none.json")
