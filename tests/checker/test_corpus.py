"""Every workload, config and chip: nothing changes unasked, checker and lint raise no false alarm."""

import os
from collections import Counter
from pathlib import Path

import pytest

from cuasmrl import workloads
from cuasmrl.binary.cubin import Cubin
from cuasmrl.binary.sass import disassemble
from cuasmrl.checker import Checker
from cuasmrl.schedule import Schedule
from cuasmrl.schedule.lint import lint


def inspect(cubin: Cubin) -> Counter[str]:
    """Load, write unchanged, check against itself, lint."""
    listings = disassemble(cubin)
    again = cubin
    for listing in listings.values():
        again = Schedule.original(listing).apply(again)
    assert again.data == cubin.data
    Checker(cubin, listings).check(again)
    hazards = [f.sentence for listing in listings.values() for f in lint(listing) if f.is_hazard]
    assert hazards == []
    return Counter(
        cubins=1,
        instructions=sum(len(listing.instructions) for listing in listings.values()),
        unknown=sum(len(listing.unknown) for listing in listings.values()),
    )


@pytest.mark.parametrize("arch", workloads.ARCHS)
def test_a_sample_of_compiler_output(arch: int) -> None:
    workload = workloads.get("warp_scan")
    inspect(Cubin.parse(workload.build(workload.configs[0], arch).cubin))


@pytest.mark.slow
def test_all_compiler_output(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Prints the table by chip. $CUASMRL_CORPUS names a ready corpus."""
    corpus = Path(os.environ.get("CUASMRL_CORPUS", tmp_path))
    workloads.build_corpus(corpus)
    table: dict[str, Counter[str]] = {}
    for path in sorted(corpus.rglob("*.cubin")):
        table.setdefault(path.parent.name, Counter()).update(inspect(Cubin.load(path)))
    with capsys.disabled():
        for chip, counts in table.items():
            print(f"\n{chip}: " + ", ".join(f"{n} {what}" for what, n in counts.items()), end="")
