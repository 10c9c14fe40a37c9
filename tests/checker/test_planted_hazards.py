"""Every fault planted in a real cubin is refused, and the refusal names it."""

import os
import random
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from cuasmrl.binary.cubin import Cubin
from tests.checker.campaign import Campaign, Turn, run
from tests.checker.conftest import CHIPS, SOURCES
from tests.checker.plants import KINDS, tensors

_OWN = tuple(sorted(path.stem for path in SOURCES.glob("*.cu")))


def _judge(campaign: Campaign) -> None:
    assert not campaign.complaints, "\n".join(campaign.complaints[:20])


def test_there_are_many_kinds() -> None:
    assert len(KINDS) >= 200


def test_a_sample_of_faults_is_refused(built: Callable[[str, str], Cubin]) -> None:
    """Every source, chip and way of scheduling takes part, and most of the kinds."""
    campaign = Campaign()
    for number, name in enumerate(_OWN):
        for chip, is_rescheduled in ((CHIPS[number], False), (CHIPS[-1 - number], True)):
            turn = Turn(f"{name} {chip}", partial(built, name, chip), 42, is_rescheduled)
            campaign.plant(turn)
    assert campaign.planted >= 500
    assert sum(tally.planted > 0 for tally in campaign.tallies.values()) >= 150
    _judge(campaign)


@pytest.mark.slow
def test_thirty_thousand_faults_are_refused(
    corpus: Path, built: Callable[[str, str], Cubin], capsys: pytest.CaptureFixture[str]
) -> None:
    """In our own kernels and in a sample of the corpus, as compiled and rescheduled; prints the table.

    With CUASMRL_PLANTED=FILE it keeps what it has found there, and goes on with it the next time.
    """
    kept = os.environ.get("CUASMRL_PLANTED")

    def progress(done: int, of: int) -> None:
        with capsys.disabled():
            print(f"\r{done} of {of} cubins", end="", flush=True)

    campaign = run(_turns(corpus, built), Path(kept) if kept else None, progress)
    with capsys.disabled():
        print("\n" + campaign.table())
    _judge(campaign)
    assert campaign.planted >= 30_000
    # Which pairs stand close enough to be brought closer is for the table to say.
    # Those around tensor memory have sources of their own (test_asynchronous.py).
    most = len(KINDS) - len(tensors.NAMES)
    assert sum(tally.planted > 0 for tally in campaign.tallies.values()) >= most - 5


def _turns(corpus: Path, built: Callable[[str, str], Cubin]) -> Iterator[Turn]:
    for chip in CHIPS:
        for name in _OWN:
            for is_rescheduled in (False, True):
                manner = "rescheduled" if is_rescheduled else "as compiled"
                yield Turn(f"{name} {chip} {manner}", partial(built, name, chip), 300, is_rescheduled)
    # Kernels of ten thousand instructions (spills on sm_75) would take hours and show nothing new.
    paths = [path for path in sorted(corpus.rglob("*.cubin")) if path.stat().st_size < 150_000]
    chosen = random.Random(2026).sample(paths, min(160, len(paths)))
    for number, path in enumerate(chosen):
        yield Turn(str(path.relative_to(corpus)), partial(Cubin.load, path), 90, number % 2 == 1)
