"""Every fault planted in a real cubin is refused, and the refusal names it."""

from collections.abc import Callable
from itertools import chain
from pathlib import Path

import pytest

from cuasmrl.binary.cubin import Cubin
from tests.checker.campaign import Tally, run_campaign, table
from tests.checker.conftest import CHIPS
from tests.checker.plants import KINDS


def _judge(tallies: dict[str, Tally]) -> None:
    print(table(tallies))
    complaints = [f"{kind}: {text}" for kind, tally in tallies.items() for text in tally.complaints]
    assert not complaints, "\n".join(complaints[:20])


def test_there_are_many_kinds() -> None:
    assert len(KINDS) >= 12


def test_a_sample_of_faults_is_refused(compiled: Callable[[str], Cubin]) -> None:
    tallies = run_campaign((compiled(chip) for chip in CHIPS), per_cubin=80)
    assert sum(tally.planted > 0 for tally in tallies.values()) >= 40
    assert sum(tally.planted for tally in tallies.values()) >= 500
    _judge(tallies)


@pytest.mark.slow
def test_ten_thousand_faults_are_refused(
    corpus: Path, compiled: Callable[[str], Cubin], capsys: pytest.CaptureFixture[str]
) -> None:
    # Kernels of ten thousand instructions (spills on sm_75) would take hours and show nothing new.
    paths = [path for path in sorted(corpus.rglob("*.cubin")) if path.stat().st_size < 150_000]
    cubins = chain((compiled(chip) for chip in CHIPS), (Cubin.load(path) for path in paths))
    tallies = run_campaign(cubins, per_cubin=max(40, 12_000 // len(paths)))
    with capsys.disabled():
        print("\n" + table(tallies))
    assert sum(tally.planted for tally in tallies.values()) >= 10_000
    assert all(tally.planted for tally in tallies.values())
    _judge(tallies)
