"""Entries on their way from store to store."""

import io
import tarfile
from pathlib import Path

import pytest

from cuasmrl.deploy.store import Store
from cuasmrl.errors import CuasmrlError
from tests.deploy.store.results import digest, entry, exchanged, repacked, with_byte


@pytest.fixture
def source(tmp_path: Path) -> Store:
    store = Store(tmp_path / "source")
    store.keep(entry())
    store.keep(entry("rmsnorm"))
    return store


@pytest.fixture
def target(tmp_path: Path) -> Store:
    return Store(tmp_path / "target")


def archive(path: Path, **members: bytes) -> Path:
    with tarfile.open(path, "w") as made:
        for name, data in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            made.addfile(member, io.BytesIO(data))
    return path


def test_there_and_back(source: Store, target: Store, tmp_path: Path) -> None:
    assert source.export(tmp_path / "all.tar") == 2
    found = target.import_(tmp_path / "all.tar")
    assert (set(found.added), found.replaced, found.kept) == (set(source.keys()), (), ())
    assert list(target.entries()) == list(source.entries())
    assert target.epoch == source.epoch
    target.export(tmp_path / "again.tar")
    assert digest((tmp_path / "again.tar").read_bytes()) == digest((tmp_path / "all.tar").read_bytes())
    assert target.import_(tmp_path / "all.tar").added == ()


def test_some_of_them(source: Store, target: Store, tmp_path: Path) -> None:
    assert source.export(tmp_path / "one.tar", [entry().key]) == 1
    target.import_(tmp_path / "one.tar")
    assert target.keys() == [entry().key]
    with pytest.raises(CuasmrlError, match="has no entry 000000000000"):
        source.export(tmp_path / "none.tar", ["0" * 64])
    assert not (tmp_path / "none.tar").exists()


def test_what_is_here_stays_unless_told_otherwise(source: Store, target: Store, tmp_path: Path) -> None:
    source.export(tmp_path / "one.tar", [entry().key])
    target.keep(entry(seed=1))
    assert target.import_(tmp_path / "one.tar").kept == (entry().key,)
    assert target.find(entry().key) == entry(seed=1)
    assert target.import_(tmp_path / "one.tar", replace=True).replaced == (entry().key,)
    assert target.find(entry().key) == entry()


def test_a_damaged_entry_is_not_passed_on(source: Store, tmp_path: Path) -> None:
    place = source.root / "objects" / entry().key[:2] / entry().key
    place.write_bytes(with_byte(place.read_bytes(), 5000))
    assert source.export(tmp_path / "all.tar") == 1


def test_what_was_tampered_with_is_not_imported(target: Store, tmp_path: Path) -> None:
    good, forged = entry("rmsnorm"), entry()
    key = forged.key
    unsafe = exchanged(forged.optimised)
    for data, words in (
        (with_byte(forged.packed(), 5000), "does not have the digest"),
        (repacked(forged, optimised=with_byte(forged.optimised, 3000)), "nothing was imported"),
        # A rearrangement with a forged certificate: only the proof can tell.
        (repacked(forged, optimised=unsafe), "is refused by the checker|not the one the checker gives"),
        (good.packed(), "do not belong"),
    ):
        path = archive(tmp_path / "forged.tar", **{good.key: good.packed(), key: data})
        with pytest.raises(CuasmrlError, match=words):
            target.import_(path)
        assert target.keys() == []


@pytest.mark.parametrize("name", ["../../etc/passwd", "a" * 63, "A" * 64, "note.txt"])
def test_other_files_in_an_archive_are_refused(target: Store, tmp_path: Path, name: str) -> None:
    with pytest.raises(CuasmrlError, match="no entry; nothing was imported"):
        target.import_(archive(tmp_path / "odd.tar", **{name: b"text"}))


def test_bad_files_are_one_sentence(target: Store, source: Store, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no archive")
    with pytest.raises(CuasmrlError, match="is no exported store"):
        target.import_(tmp_path / "text")
    with pytest.raises(CuasmrlError, match="cannot read .*No such file"):
        target.import_(tmp_path / "nothing")
    with pytest.raises(CuasmrlError, match="cannot write .*choose a writable place"):
        source.export(tmp_path / "not" / "there.tar")
