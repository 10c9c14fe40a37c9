"""Proving again what a store holds."""

from pathlib import Path

import pytest

from cuasmrl.deploy.store import Store, deploy
from tests.deploy.store.results import compiled, entry, exchanged, repacked, with_byte


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = Store(tmp_path / "store")
    store.keep(entry())
    return store


def rewrite(store: Store, data: bytes) -> Path:
    place = store.root / "objects" / entry().key[:2] / entry().key
    place.write_bytes(data)
    return place


def test_good_entries_stay_as_they_are(store: Store) -> None:
    before, steps = (store.root / "epoch").stat().st_mtime_ns, list[tuple[int, int]]()
    (found,) = store.verify(lambda done, total: steps.append((done, total)))
    assert (found.key, found.good, found.sentence) == (entry().key, True, "proved")
    assert steps == [(1, 1)]
    assert (store.root / "epoch").stat().st_mtime_ns == before


def test_damaged_entries_are_set_aside(store: Store) -> None:
    place = rewrite(store, with_byte(entry().packed(), 4000))
    (found,) = store.verify()
    assert not found.good
    assert "damaged: its content does not have the digest" in found.sentence
    assert not place.exists()


def test_a_forged_rearrangement_is_found(store: Store) -> None:
    """All digests agree and all words are there; that the order is wrong is for the checker to say."""
    rewrite(store, repacked(entry(), optimised=exchanged(entry().optimised)))
    (found,) = store.verify()
    assert "is refused by the checker" in found.sentence
    assert store.keys() == []
    assert store.epoch == "empty"


def test_certificates_of_older_rules_are_renewed(store: Store) -> None:
    rewrite(store, repacked(entry(), certificate={"checker": "0"}))
    assert not deploy(compiled(), store).used
    (found,) = store.verify()
    assert found.good
    assert found.sentence == "proved by the rules of today, certificate renewed"
    assert deploy(compiled(), store).used
    assert store.find(entry().key) == entry()


def test_what_a_newer_version_stored_is_left_alone(store: Store) -> None:
    place = rewrite(store, entry().packed().replace(b"entry 1 ", b"entry 2 ", 1))
    (found,) = store.verify()
    assert not found.good
    assert found.sentence.startswith("left alone: it has schema 2")
    assert place.exists()


def test_without_a_disassembler_nothing_is_set_aside(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUASMRL_NVDISASM", "/nowhere/nvdisasm")
    (found,) = store.verify()
    assert not found.good
    assert found.sentence.startswith("left alone, for it cannot be proved: ")
    assert store.keys() == [entry().key]


def test_an_epoch_that_was_copied_from_elsewhere_is_made_right(store: Store) -> None:
    right = store.epoch
    (store.root / "epoch").write_text("1 0123456789abcdef0123456789abcdef\n")
    store.verify()
    assert store.epoch == right
