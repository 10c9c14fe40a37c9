"""Measured results are deployed on GPUs of their kind, modelled ones only where that is asked for."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cuasmrl.deploy.store import Allowed, Store, deploy
from cuasmrl.deploy.store.allowed import MODELLED as VARIABLE
from cuasmrl.deploy.store.allowed import VIRTUAL, asked_for, asking_for
from cuasmrl.deploy.triton.bootstrap import CHIP
from tests.deploy.store.results import MEASUREMENT, MODELLED, compiled, entry, repacked

A100, A10 = "NVIDIA A100-SXM4-80GB (8.0)", "NVIDIA A10 (8.6)"
UNNAMED = {name: value for name, value in MEASUREMENT.items() if name != "gpu"}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def keep(store: Store, measurement: Mapping[str, Any]) -> None:
    store.keep(replace(entry(), measurement=measurement))


@pytest.mark.parametrize("allowed", [Allowed(), Allowed(gpus=(A100,))])
def test_a_modelled_result_is_left_out(store: Store, allowed: Allowed) -> None:
    keep(store, MODELLED)
    found = deploy(compiled(), store, allowed)
    assert found.cubin is compiled()
    assert (found.used, found.modelled, found.doubt) == (False, True, False)
    assert found.reason == f"entry {entry().key[:12]} of {store.root} is modelled, and no GPU has measured it"


@pytest.mark.parametrize("allowed", [Allowed(modelled=True), Allowed(modelled=True, gpus=(A100,))])
def test_a_modelled_result_is_used_where_that_is_allowed(store: Store, allowed: Allowed) -> None:
    keep(store, MODELLED)
    found = deploy(compiled(), store, allowed)
    assert found.cubin == entry().optimised
    assert (found.used, found.modelled) == (True, True)


def test_without_a_word_only_measured_results_are_used(store: Store) -> None:
    keep(store, MODELLED)
    assert not deploy(compiled(), store).used
    keep(store, MEASUREMENT)
    found = deploy(compiled(), store)
    assert (found.used, found.modelled) == (True, False)


@pytest.mark.parametrize(
    ("measurement", "gpus", "words"),
    [
        (MEASUREMENT, (), None),
        (MEASUREMENT, (A100,), None),
        (MEASUREMENT, (A10, A100), None),
        (MEASUREMENT, (A10,), f"was measured on {A100}, and here is {A10}"),
        (UNNAMED, (), None),
        (UNNAMED, (A100,), f"was measured on a GPU without a name, and here is {A100}"),
    ],
)
def test_a_measured_result_is_for_gpus_of_its_kind(
    store: Store, measurement: dict[str, Any], gpus: tuple[str, ...], words: str | None
) -> None:
    """Also where modelled ones are allowed: a GPU has spoken, but another one."""
    keep(store, measurement)
    for modelled in (False, True):
        found = deploy(compiled(), store, Allowed(modelled, gpus))
        assert found.used == (words is None)
        assert found.doubt == (words is not None)
        assert not found.modelled
        assert words is None or words in found.reason


@pytest.mark.parametrize(
    "measurement",
    [{}, "none", {**MEASUREMENT, "device": 3}, {**MEASUREMENT, "gpu": "A100"}, {**MEASUREMENT, "gpu": {}}],
)
def test_a_measurement_that_cannot_be_read(store: Store, measurement: Any) -> None:
    keep(store, MEASUREMENT)
    place = store.root / "objects" / entry().key[:2] / entry().key
    place.write_bytes(repacked(entry(), measurement=measurement))
    found = deploy(compiled(), store, Allowed(modelled=True))
    assert found.cubin is compiled()
    assert found.doubt
    assert "is damaged: its measurement does not" in found.reason


def test_what_is_allowed_is_part_of_the_keys_of_caches() -> None:
    assert Allowed().tag == "", "as it was before there was a choice"
    assert Allowed(modelled=True).tag == "modelled"
    tags = {Allowed(modelled, gpus).tag for modelled in (False, True) for gpus in ((), (A10,), (A100,))}
    assert len(tags) == 6
    assert Allowed(gpus=(A10, A100)).tag == Allowed(gpus=(A100, A10)).tag


def test_the_epoch_follows_what_may_be_used(store: Store) -> None:
    """A cache must not go on serving the original once a GPU has measured the same code."""
    keep(store, MODELLED)
    before = store.epoch
    keep(store, MEASUREMENT)
    assert store.epoch != before


@pytest.mark.parametrize(
    ("environment", "expected"),
    [({}, False), ({VARIABLE: "1"}, True), ({VARIABLE: "0"}, False), ({VARIABLE: ""}, False),
     ({VIRTUAL: "a100"}, True), ({VIRTUAL: "a100", VARIABLE: "0"}, True)],
)  # fmt: skip
def test_how_it_is_asked_for(environment: dict[str, str], expected: bool) -> None:
    assert asked_for(environment) == expected


def test_how_children_are_told() -> None:
    assert asking_for(True, {}) == {VARIABLE: "1"}
    assert asking_for(False, {}) == {}
    assert asking_for(True, {VARIABLE: "1"}) == {}
    assert asking_for(False, {VARIABLE: "1"}) == {VARIABLE: "0"}
    assert VIRTUAL == CHIP
