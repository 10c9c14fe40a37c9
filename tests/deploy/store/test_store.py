"""What a store keeps and finds."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from cuasmrl.binary.cubin import Cubin
from cuasmrl.checker import Checker, Refusal
from cuasmrl.deploy.store import EMPTY, Store, code_key, deploy
from cuasmrl.errors import CuasmrlError
from tests.deploy.store.results import (
    MEASUREMENT,
    MODELLED,
    compiled,
    entry,
    entry_of,
    rearranged,
    unproved,
)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def test_what_is_put_is_found(store: Store) -> None:
    given = entry_of(compiled(), rearranged(compiled()))
    stored = store.put(given)
    found = store.find(given.key)
    assert found == stored
    assert found is not None
    assert found.key == code_key(compiled())
    assert (found.original, found.optimised) == (given.original, given.optimised)
    assert found.measurement == given.measurement
    assert found.certificates["softmax"]["certified"] is True
    assert found.gain == given.measurement["gain"], "the confirmed one, not original / optimised - 1"
    assert [one.key for one in store.entries()] == [given.key]
    assert Store(store.root).find(given.key) == stored


def test_nothing_is_touched_before_the_first_put(tmp_path: Path) -> None:
    store = Store(tmp_path / "not" / "there")
    assert store.epoch == EMPTY == "empty"
    assert store.find(entry().key) is None
    assert list(store.entries()) == []
    assert store.recorded() == []
    assert store.verify() == []
    assert not store.remove(entry().key)
    assert not deploy(compiled(), store).used
    assert not (tmp_path / "not").exists()


def test_where_it_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("CUASMRL_STORE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert Store().root == tmp_path / "home" / ".cache" / "cuasmrl" / "store"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert Store().root == tmp_path / "cache" / "cuasmrl" / "store"
    monkeypatch.setenv("CUASMRL_STORE", "here")
    assert Store().root == Path.cwd() / "here"
    assert Store(tmp_path).root == tmp_path


def test_a_new_result_replaces_the_old_one(store: Store) -> None:
    store.keep(entry(seed=0))
    store.keep(entry(seed=1))
    found = store.find(entry().key)
    assert found is not None
    assert found.optimised == entry(seed=1).optimised
    assert len(store.keys()) == 1


def test_removal(store: Store) -> None:
    store.keep(entry())
    assert store.remove(entry().key)
    assert not store.remove(entry().key)
    assert store.find(entry().key) is None
    assert store.epoch == EMPTY


def test_the_epoch_changes_exactly_with_what_is_visible(store: Store, tmp_path: Path) -> None:
    seen = [store.epoch]
    for one in (entry(seed=0), entry("rmsnorm"), entry(seed=1)):
        store.keep(one)
        seen.append(store.epoch)
    assert len(set(seen)) == 4
    # The same code, which was modelled before and is measured now, may be used by others.
    store.keep(replace(entry(seed=1), measurement=MODELLED))
    assert store.epoch not in seen
    store.remove(entry("rmsnorm").key)
    store.keep(entry(seed=0))
    assert store.epoch == seen[1]
    # Another store that came to the same in another way.
    other = Store(tmp_path / "other")
    other.keep(entry("rmsnorm"))
    other.keep(entry(seed=1))
    assert other.epoch == seen[3]


def test_the_epoch_is_one_small_file_and_can_be_worked_out_without_it(store: Store) -> None:
    store.keep(entry())
    store.keep(entry("rmsnorm"))
    epoch, file = store.epoch, store.root / "epoch"
    assert file.stat().st_size < 64
    file.unlink()
    assert store.epoch == epoch
    assert file.exists(), "who asks may write it down again"


def test_the_epoch_is_of_results_by_the_rules_of_today(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    store.keep(entry())
    for module in ("shelf", "change", "contract"):
        monkeypatch.setattr(f"cuasmrl.deploy.store.{module}.VERSION", "later")
    assert store.epoch == EMPTY


def test_an_unsafe_schedule_is_refused(store: Store) -> None:
    cubin = Cubin.parse(compiled())
    checker = Checker(cubin)
    for i in range(len(cubin.kernel().words) - 1):
        swapped = _swapped(cubin, i)
        try:
            checker.check(swapped)
        except Refusal:
            break
    with pytest.raises(CuasmrlError, match="is refused by the checker"):
        store.put(entry_of(cubin.data, swapped.data))
    assert store.keys() == []


def _swapped(cubin: Cubin, i: int) -> Cubin:
    kernel = cubin.kernel()
    words = list(kernel.words)
    words[i], words[i + 1] = words[i + 1], words[i]
    return cubin.with_words(kernel, tuple(words), {16 * i: 16 * i + 16, 16 * i + 16: 16 * i})


def test_a_certificate_that_is_given_must_be_the_checkers(store: Store) -> None:
    assert store.put(entry()) == entry()
    forged = {**entry().certificates["softmax"], "distances": "0" * 64}
    with pytest.raises(CuasmrlError, match="not the one the checker gives"):
        store.put(replace(entry(), certificates={"softmax": forged}))
    with pytest.raises(CuasmrlError, match="needs the one certificate"):
        store.keep(unproved(entry()))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"key": "0" * 64}, "key, chip or kernels differ"),
        ({"arch": 86}, "key, chip or kernels differ"),
        ({"kernels": ("other",)}, "key, chip or kernels differ"),
        ({"optimised": b"nonsense"}, "not an ELF file"),
        ({"measurement": {"device": "x"}}, "lacks unit, original, optimised, gain, interval"),
        ({"measurement": {**MEASUREMENT, "optimised": 0}}, "above zero"),
        ({"measurement": {**MEASUREMENT, "interval": 1.0}}, "low, high"),
        ({"measurement": {**MEASUREMENT, "gain": "5 %"}}, "must be a share"),
        ({"provenance": {"path": Path()}}, "must be JSON"),
        ({"provenance": {"number": float("nan")}}, "must be JSON"),
    ],
)
def test_bad_entries_are_one_sentence(store: Store, change: dict[str, object], sentence: str) -> None:
    with pytest.raises(CuasmrlError, match=sentence):
        store.put(replace(entry(), **change))  # type: ignore[arg-type]
    assert store.keys() == []


def test_keys_by_their_first_digits(store: Store) -> None:
    store.keep(entry())
    store.keep(entry("rmsnorm"))
    key = entry().key
    assert store.resolve(key[:10]) == key
    with pytest.raises(CuasmrlError, match="has no entry zzz"):
        store.resolve("zzz")
    with pytest.raises(CuasmrlError, match="has no entry"):
        store.resolve("")


def test_a_newer_store_is_left_alone(store: Store) -> None:
    store.keep(entry())
    (store.root / "schema").write_text("2\n")
    deployment = deploy(compiled(), store)
    assert deployment.cubin is compiled()
    assert deployment.doubt
    assert "has schema 2" in deployment.reason
    for refused in (lambda: store.find(entry().key), lambda: store.keep(entry()), lambda: store.epoch):
        with pytest.raises(CuasmrlError, match="has schema 2, but this version of cuasmrl knows 1; update"):
            refused()


def test_no_pickle_is_stored(store: Store) -> None:
    store.keep(entry())
    data = (store.root / "objects" / entry().key[:2] / entry().key).read_bytes()
    first, facts, rest = data.split(b"\n", 2)
    assert first.startswith(b"cuasmrl-entry 1 ")
    assert json.loads(facts)["measurement"] == entry().measurement
    assert rest == entry().original + entry().optimised
