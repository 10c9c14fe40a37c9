"""Every fault planted in a real cubin is refused, and the refusal names it."""

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from cuasmrl.binary.cubin import Cubin
from tests.checker.campaign import Campaign
from tests.checker.conftest import CHIPS, UNSAFE
from tests.checker.plants import KINDS


def _judge(campaign: Campaign) -> None:
    print(campaign.table())
    assert not campaign.complaints, "\n".join(campaign.complaints[:20])


def test_there_are_many_kinds() -> None:
    assert len(KINDS) >= 150


def test_a_sample_of_faults_is_refused(built: Callable[[str, str], Cubin]) -> None:
    """One fault of each kind in each of a few cubins: every source and every chip takes part."""
    campaign = Campaign()
    for turn, name in enumerate(("kernels", *UNSAFE)):
        campaign.plant((built(name, chip) for chip in (CHIPS[turn], CHIPS[-1 - turn])), per_cubin=90)
    assert sum(tally.planted > 0 for tally in campaign.tallies.values()) >= 130
    assert campaign.planted >= 900
    _judge(campaign)


@pytest.mark.slow
def test_thirty_thousand_faults_are_refused(
    corpus: Path, built: Callable[[str, str], Cubin], capsys: pytest.CaptureFixture[str]
) -> None:
    """In our own kernels, and in a sample of the corpus; prints the table."""
    own = [built(name, chip) for name in ("kernels", *UNSAFE) for chip in CHIPS]
    # Kernels of ten thousand instructions (spills on sm_75) would take hours and show nothing new.
    paths = [path for path in sorted(corpus.rglob("*.cubin")) if path.stat().st_size < 150_000]
    chosen = random.Random(2026).sample(paths, min(160, len(paths)))
    campaign = Campaign().plant(own, per_cubin=400)
    campaign.plant(map(Cubin.load, chosen), per_cubin=max(100, (31_000 - campaign.planted) // len(chosen)))
    with capsys.disabled():
        print("\n" + campaign.table())
    assert campaign.planted >= 30_000
    assert all(tally.planted for tally in campaign.tallies.values())
    _judge(campaign)
