"""Traces on disk: whole, damaged, or something else."""

import io
import json
import pickle
import zipfile
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.emulator import Trace
from tests.gpu.emulator.kernels import Load, numbers


@pytest.fixture(scope="module")
def trace(load: Load) -> Trace:
    x = numbers(256, 0, 9)
    return load("patterns", "sm_80").trace("ways", x, np.zeros(3, np.int32), grid=4, block=64)


@pytest.fixture
def saved(trace: Trace, tmp_path: Path) -> Path:
    path = tmp_path / "ways.trace"
    trace.save(path)
    return path


def test_round_trip(trace: Trace, saved: Path) -> None:
    again = Trace.load(saved)
    assert again.header == trace.header
    assert (again.header.kernel, again.header.grid, again.header.block) == ("ways", (4, 1, 1), (64, 1, 1))
    assert again.header.warps_per_block == 2
    for field in fields(trace):
        if field.name != "header":
            first, second = getattr(trace, field.name), getattr(again, field.name)
            assert first.dtype == second.dtype
            assert first.tolist() == second.tolist()


def test_saving_leaves_nothing_else_behind(saved: Path, trace: Trace) -> None:
    trace.save(saved)
    assert [path.name for path in saved.parent.iterdir()] == ["ways.trace"]


def test_no_pickles(saved: Path) -> None:
    with zipfile.ZipFile(saved) as archive:
        for name in archive.namelist():
            array = np.load(io.BytesIO(archive.read(name)), allow_pickle=False)
            assert array.dtype.kind in "iu"


def test_a_place_that_cannot_be_written(trace: Trace, tmp_path: Path) -> None:
    with pytest.raises(CuasmrlError, match="cannot write .*; choose a writable place"):
        trace.save(tmp_path / "missing" / "ways.trace")


def refuse(path: Path) -> None:
    with pytest.raises(CuasmrlError, match="(is no trace|was written by another version).*again"):
        Trace.load(path)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    refuse(tmp_path / "nothing")


@pytest.mark.parametrize("data", [b"", b"PK", b"not a trace at all", bytes(1000), b"\x80\x04K\x01."])
def test_other_files(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "other"
    path.write_bytes(data)
    refuse(path)


class Explosive:
    def __reduce__(self) -> tuple[object, ...]:
        return (Path.touch, (Path("exploded"),))


def test_pickles_are_not_executed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    plain, array, archive = (tmp_path / name for name in ("plain", "array.npy", "archive.npz"))
    plain.write_bytes(pickle.dumps(Explosive()))
    np.save(array, np.array([Explosive()], object), allow_pickle=True)
    np.savez(archive, header=np.array([Explosive()], object))
    for path in (plain, array, archive):
        refuse(path)
    assert not (tmp_path / "exploded").exists()


def test_a_plain_array(tmp_path: Path) -> None:
    path = tmp_path / "array.npy"
    np.save(path, np.arange(5))
    refuse(path)


@pytest.mark.parametrize("share", [0.01, 0.3, 0.6, 0.9, 0.999])
def test_a_file_that_was_cut_short(saved: Path, share: float) -> None:
    data = saved.read_bytes()
    saved.write_bytes(data[: int(len(data) * share)])
    refuse(saved)


def test_flipped_bytes(saved: Path) -> None:
    """A damaged file is refused, or what it holds is unharmed; nothing else may happen."""
    data, rng = saved.read_bytes(), np.random.default_rng(0)
    refused = 0
    for _ in range(300):
        damaged = bytearray(data)
        for place in rng.integers(0, len(data), 3):
            damaged[place] ^= int(rng.integers(1, 256))
        saved.write_bytes(damaged)
        try:
            Trace.load(saved)
        except CuasmrlError:
            refused += 1
    assert refused > 200


def rewrite(path: Path, **changes: object) -> None:
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    header = json.loads(bytes(arrays["header"])) | {k: v for k, v in changes.items() if k not in arrays}
    arrays["header"] = np.frombuffer(json.dumps(header).encode(), np.uint8)
    for name, value in changes.items():
        if name in arrays and value is None:
            del arrays[name]
        elif name in arrays:
            arrays[name] = np.asarray(value)
    with path.open("wb") as target:
        np.savez_compressed(target, **arrays)


def test_another_version(saved: Path) -> None:
    rewrite(saved, format=99)
    with pytest.raises(CuasmrlError, match="was written by another version; record the trace again"):
        Trace.load(saved)


@pytest.mark.parametrize("missing", ["access_lanes", "path_of_warp", "pattern_sectors"])
def test_arrays_that_are_missing(saved: Path, missing: str) -> None:
    rewrite(saved, **{missing: None})
    refuse(saved)


def test_a_header_with_other_fields(saved: Path) -> None:
    rewrite(saved, surprise=1)
    refuse(saved)
