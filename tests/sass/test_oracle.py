"""Definitions and uses against nvdisasm's own life ranges."""

import os
from collections import defaultdict
from pathlib import Path

import pytest

from cuasmrl.cubin import Cubin
from cuasmrl.sass import disassemble
from tests.sass.conftest import Sample
from tests.sass.liveness_oracle import readings
from tests.sass.quirks import QUIRKS, Comparison
from tests.sass.scatter import scattered


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


@pytest.mark.slow
def test_whole_corpus(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every cubin of every workload; takes $CUASMRL_CORPUS (a folder with sm_*/*.cubin) where it is set."""
    found: dict[int, Comparison] = defaultdict(Comparison)
    for path in sorted(corpus(tmp_path).glob("sm_*/*.cubin")):
        cubin = Cubin.load(path)
        found[cubin.arch].add(readings(cubin, disassemble(cubin)))
    with capsys.disabled():
        print("\n" + table(found))
    for comparison in found.values():
        assert comparison.exact >= 0.9999 * comparison.compared, comparison.differences[:20]
        assert comparison.unknown == 0


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
