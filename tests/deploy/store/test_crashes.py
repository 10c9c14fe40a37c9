"""Several processes on one store, killed at random points."""

from collections.abc import Callable
from pathlib import Path

import pytest

from cuasmrl.deploy.store.change import Change
from cuasmrl.deploy.store.packing import DamagedError
from tests.deploy.store.crashes import Campaign
from tests.deploy.store.results import entry

KERNELS = (("softmax", 80), ("rmsnorm", 80), ("softmax", 90), ("rmsnorm", 90), ("softmax", 86))


def test_a_few_processes_are_killed_at_random_points(tmp_path: Path) -> None:
    kernels = [[entry(seed=0), entry(seed=1)], [entry("rmsnorm")], [entry(arch=90)]]
    campaign = Campaign(tmp_path, kernels, seed=0)
    campaign.run(kills=20)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_processes_are_killed_at_a_thousand_random_points(tmp_path: Path, seed: int) -> None:
    """No entry is lost, none is there by half, none is wrong, and no epoch is out of date."""
    kernels = [[entry(name, arch, variant) for variant in range(3)] for name, arch in KERNELS]
    campaign = Campaign(tmp_path, kernels, seed)
    campaign.run(kills=1000)
    tally = campaign.tally
    print(tally)
    assert tally.interrupted["put"] > 100
    assert tally.interrupted["remove"] > 10
    assert tally.interrupted["get"] > 100
    assert 0 < tally.took_effect["put"] < tally.interrupted["put"]
    assert tally.without_epoch > 10
    assert tally.with_leftovers > 10


def without_a_gap_in_the_epoch(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Change, "unsettle", lambda change: None)


def written_in_place(patch: pytest.MonkeyPatch) -> None:
    def put(change: Change, key: str, data: bytes) -> None:
        place = Path(change._shelf.place(key))
        place.parent.mkdir(parents=True, exist_ok=True)
        change.unsettle()
        with place.open("wb") as file:
            for start in range(0, len(data), 4096):
                file.write(data[start : start + 4096])
                file.flush()

    patch.setattr(Change, "put", put)


def removed_before_replaced(patch: pytest.MonkeyPatch) -> None:
    real = Change.put

    def put(change: Change, key: str, data: bytes) -> None:
        if change._shelf.read(key) != data:
            change.remove(key)
        real(change, key, data)

    patch.setattr(Change, "put", put)


@pytest.mark.slow
@pytest.mark.parametrize("mistake", [without_a_gap_in_the_epoch, written_in_place, removed_before_replaced])
def test_the_campaign_finds_what_a_store_could_do_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mistake: Callable[[pytest.MonkeyPatch], None]
) -> None:
    kernels = [[entry(name, arch, variant) for variant in range(2)] for name, arch in KERNELS[:4]]
    campaign = Campaign(tmp_path, kernels, seed=0)
    mistake(monkeypatch)
    with pytest.raises((AssertionError, DamagedError)):
        campaign.run(kills=400)
