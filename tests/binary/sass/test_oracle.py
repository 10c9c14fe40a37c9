"""Definitions and uses against nvdisasm's own life ranges."""

import multiprocessing
import os
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from cuasmrl.binary.cubin import Cubin
from cuasmrl.binary.sass import disassemble
from tests.binary.sass.conftest import Sample
from tests.binary.sass.fidelity import CHECKS
from tests.binary.sass.liveness_oracle import readings
from tests.binary.sass.quirks import QUIRKS, Comparison
from tests.binary.sass.scatter import scattered


def test_accesses_are_those_that_nvdisasm_draws(sample: Sample) -> None:
    comparison = Comparison().add(readings(*sample))
    assert not comparison.differences
    # It draws everything but padding.
    assert comparison.compared + comparison.unknown >= sum(i.opcode != "NOP" for i in sample.instructions)


def test_accesses_are_right_also_when_operands_stand_apart(one_of_each: Sample) -> None:
    apart = scattered(*one_of_each)
    listings = disassemble(apart)
    comparison = Comparison().add(readings(apart, listings))
    assert not comparison.differences
    before = one_of_each.instructions
    after = [i for listing in listings.values() for i in listing.instructions]
    assert sum(a.text != b.text for a, b in zip(before, after, strict=True)) > 0.25 * len(before)


def test_the_container_of_cuda_12_is_drawn_too(old_container: Sample) -> None:
    assert old_container.cubin.osabi == 0x33
    comparison = Comparison().add(readings(*old_container))
    assert comparison.compared > 100
    assert not comparison.differences


@dataclass
class Survey:
    """What was found in the cubins of one chip."""

    drawn: Comparison = field(default_factory=Comparison)
    apart: Comparison = field(default_factory=Comparison)
    complaints: list[str] = field(default_factory=list)

    def merge(self, other: "Survey") -> None:
        self.drawn.merge(other.drawn)
        self.apart.merge(other.apart)
        self.complaints += other.complaints


def survey(path: Path) -> tuple[int, Survey]:
    cubin = Cubin.load(path)
    listings = disassemble(cubin)
    found = Survey(Comparison().add(readings(cubin, listings)))
    apart = scattered(cubin, listings)
    found.apart.add(readings(apart, disassemble(apart)))
    for listing in listings.values():
        for i in listing.instructions:
            complaints = [complaint for check in CHECKS if (complaint := check(i, listing.kernel))]
            found.complaints += [f"{path.name}: {i}: {complaint}" for complaint in complaints]
    return cubin.arch, found


@pytest.mark.slow
def test_whole_corpus(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every cubin of every workload; takes $CUASMRL_CORPUS (a folder with sm_*/*.cubin) where it is set."""
    found: dict[int, Survey] = defaultdict(Survey)
    with multiprocessing.Pool(2) as pool:
        for arch, one in pool.imap_unordered(survey, sorted(corpus(tmp_path).glob("sm_*/*.cubin"))):
            found[arch].merge(one)
    with capsys.disabled():
        print("\n" + table({arch: survey.drawn for arch, survey in found.items()}))
        print("\nwith operands set apart\n" + table({arch: survey.apart for arch, survey in found.items()}))
    assert found
    for one in found.values():
        assert not one.complaints, one.complaints[:20]
        assert one.drawn.unknown == 0
        for comparison in (one.drawn, one.apart):
            assert comparison.exact >= 0.9999 * comparison.compared, comparison.differences[:20]


def corpus(scratch: Path) -> Path:
    if folder := os.environ.get("CUASMRL_CORPUS"):
        return Path(folder)
    from cuasmrl.workloads.corpus import build_corpus

    build_corpus(scratch)
    return scratch


def table(found: dict[int, Comparison]) -> str:
    rows = ["| chip | compared | exact, raw | exact after quirks | differences |", "|---|---|---|---|---|"]
    for arch, c in sorted(found.items()):
        raw, exact = 100 * c.raw / c.compared, 100 * c.exact / c.compared
        rows.append(f"| sm_{arch} | {c.compared:,} | {raw:.2f} % | {exact:.4f} % | {c.compared - c.exact} |")
    rows.append("")
    for quirk in QUIRKS:
        counts = ", ".join(f"sm_{arch} {c.explained[quirk.__name__]}" for arch, c in sorted(found.items()))
        rows.append(f"{quirk.__name__}: {counts}")
    return "\n".join(rows)
