"""`cuasmrl store`, as a user meets it."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from cuasmrl.deploy.store import Store
from tests.command import run, sentence
from tests.deploy.store.results import MODELLED, compiled, entry, with_byte


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setenv("CUASMRL_STORE", str(tmp_path / "store"))
    store = Store()
    store.keep(replace(entry(), measurement=MODELLED))
    store.record(compiled("rmsnorm"), [], {"kernel": "rmsnorm"})
    return store


def test_a_round_through_all_commands(store: Store, tmp_path: Path) -> None:
    key = entry().key
    listed = run("store", "ls")
    assert (
        f"{key[:12]}  sm_80  softmax  +5.00 % (+1.00 to +9.00 %) in modelled cycles on virtual:a100\n"
        in listed
    )
    assert f"1 entry, 0.1 MB, epoch {store.epoch}" in listed
    assert "1 recorded kernel waits for `cuasmrl optimize --recorded`" in listed
    data = json.loads(run("store", "ls", "--json"))
    assert [one["key"] for one in data["entries"]] == [key]
    assert (data["entries"][0]["gain"], data["entries"][0]["modelled"]) == (0.05, True)
    (waiting,) = data["recorded"]
    assert waiting == {
        "key": waiting["key"], "kernels": ["rmsnorm"], "launches": 0, "origin": {"kernel": "rmsnorm"},
    }  # fmt: skip

    shown = run("store", "show", key[:8], "-o", tmp_path / "out")
    assert f"key          {key}" in shown
    assert (tmp_path / "out" / "optimised.cubin").read_bytes() == entry().optimised
    assert json.loads(run("store", "show", key, "--json"))["certificate"]["certified"] is True
    assert "certified" in run(
        "check", tmp_path / "out" / "original.cubin", tmp_path / "out" / "optimised.cubin"
    )

    assert "1 entry in" in run("store", "export", tmp_path / "one.tar", key[:8])
    other = ("--store", tmp_path / "other")
    assert "1 added, 0 replaced, 0 kept" in run("store", "import", tmp_path / "one.tar", *other)
    assert json.loads(run("store", "import", tmp_path / "one.tar", *other, "--json"))["kept"] == [key]
    assert "1 of 1 entry of" in run("store", "verify", *other)
    assert json.loads(run("store", "rm", "--all", *other, "--json")) == {"removed": [key], "epoch": "empty"}
    assert "1 removed" in run("store", "rm", "--recorded", "--all")
    assert store.recorded() == []


def test_the_confirmed_gain_is_shown_and_the_nominal_chip_named(store: Store) -> None:
    shown = run("store", "show", entry().key)
    assert "measurement  gain: +5.00 % (+1.00 to +9.00 %), the median over the ensemble\n" in shown
    assert "measurement  on the nominal chip: 1,000.00 modelled cycles before, 900.00 after\n" in shown
    assert "11.1" not in shown
    store.keep(entry())
    shown = run("store", "show", entry().key)
    assert "measurement  device: cuda:0, NVIDIA A100-SXM4-80GB (8.0)\n" in shown
    assert "measurement  gain: +5.00 % (+1.00 to +9.00 %), the median over the rounds\n" in shown
    assert "measurement  times: 1,000.00 microseconds before, 900.00 after\n" in shown
    assert "(+1.00 to +9.00 %) in microseconds on cuda:0, NVIDIA A100-SXM4-80GB (8.0)\n" in run("store", "ls")


def test_a_damaged_entry(store: Store) -> None:
    place = store.root / "objects" / entry().key[:2] / entry().key
    place.write_bytes(with_byte(place.read_bytes(), 3000))
    report = run("store", "verify", status=1)
    assert "damaged: its content does not have the digest" in report
    assert "it is now in" in report
    assert "0 entries" in run("store", "ls")


def test_bad_input_is_one_sentence(store: Store, tmp_path: Path) -> None:
    assert "has no entry zz" in sentence("store", "show", "zz")
    for arguments, words in (
        (("rm",), "name the keys to remove, or say --all"),
        (("rm", "--recorded", "zz"), "no recorded kernels begin with zz"),
        (("import", tmp_path / "nothing.tar"), "cannot read"),
    ):
        assert words in sentence("store", *arguments)
    (store.root / "schema").write_text("9\n")
    assert "has schema 9, but this version of cuasmrl knows 1; update cuasmrl" in sentence("store", "ls")
