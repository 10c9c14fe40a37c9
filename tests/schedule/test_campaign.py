"""Random legal moves on real cubins: the permuted listing, the records, the checker's word for each."""

import itertools
import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from cuasmrl import workloads
from cuasmrl.binary.cubin import Cubin
from cuasmrl.schedule import Scoreboards
from tests.schedule.campaign import Tally, play

SAMPLE = [
    ("gemm_leaky_relu", "m64n64k32_w4_s3", 80),
    ("softmax", "w4", 75),
    ("bmm", "m32n64k32_w2_s2", 86),
    ("rmsnorm", "n32_w4", 89),
    ("softmax", "w4", 90),
    ("transpose", "t32x8", 100),
    ("vector_add", "b1024_w4", 120),
]
WANTED = 100_000


@pytest.mark.parametrize("scoreboards", Scoreboards)
@pytest.mark.parametrize(("name", "config", "arch"), SAMPLE)
def test_random_moves(
    built: Callable[[str, str, int], Cubin], name: str, config: str, arch: int, scoreboards: Scoreboards
) -> None:
    tally = play(built(name, config, arch), 2, 120, random.Random(arch), scoreboards)
    assert tally.certified == 2
    assert tally.moves.total() > 20


@pytest.mark.slow
def test_a_hundred_thousand_moves(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Over the workloads of all chips; prints the tally by chip. $CUASMRL_CORPUS names a ready corpus."""
    corpus = Path(os.environ.get("CUASMRL_CORPUS", tmp_path))
    workloads.build_corpus(corpus)
    tallies: dict[str, Tally] = {}
    rng = random.Random(2026)
    paths = sorted(corpus.rglob("*.cubin"))
    rng.shuffle(paths)
    for path in itertools.cycle(paths):
        if sum(t.moves.total() for t in tallies.values()) >= WANTED:
            break
        cubin = Cubin.load(path)
        # The spilling kernels of sm_75 would take most of the time and add nothing.
        if max(len(k.words) for k in cubin.kernels) <= 4000:
            tallies.setdefault(path.parent.name, Tally())
            tallies[path.parent.name] += play(cubin, 1, 500, rng, rng.choice(list(Scoreboards)))
    assert len(tallies) == len(workloads.ARCHS)
    with capsys.disabled():
        for chip, tally in tallies.items():
            kinds = ", ".join(f"{n} {kind}" for kind, n in tally.moves.most_common())
            print(
                f"\n{chip}: {tally.moves.total()} moves ({kinds}), {tally.certified} cubins certified", end=""
            )
