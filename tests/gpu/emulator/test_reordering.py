"""A certified schedule computes the same bits as the original."""

import pytest

from cuasmrl import workloads
from tests.gpu.emulator.reordering import Tally, play

PUBLISHED = [w.name for w in workloads.all() if w.published]
VARIANTS = 1000


@pytest.mark.parametrize("name", PUBLISHED)
def test_rescheduled_variants_give_the_same_bits(name: str) -> None:
    workload = workloads.get(name)
    tally = play(workload, workload.configs[0], 80, workload.shapes[-1], variants=4, seed=1)
    assert tally.displaced


@pytest.mark.slow
@pytest.mark.parametrize("name", PUBLISHED)
def test_a_thousand_variants_of_each_published_workload(name: str) -> None:
    workload = workloads.get(name)
    total = Tally()
    archs = (80, 86, 89)
    configs = [c for c in workload.configs if all(workload.supports(c, arch) is None for arch in archs)]
    cases = [(config, arch) for arch in archs for config in configs]
    for number, (config, arch) in enumerate(cases):
        share = VARIANTS // len(cases) + 1
        sizes = workload.shapes[number % len(workload.shapes)]
        tally = play(workload, config, arch, sizes, share, seed=number)
        total.variants += tally.variants
        total.displaced += tally.displaced
        total.moves += tally.moves
    assert total.variants >= VARIANTS
    print(f"\n{name}: {total.variants} variants, {total.displaced} instructions displaced, {total.moves}")
