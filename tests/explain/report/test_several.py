"""Runs side by side: agents, seeds, compilers, and runs that are not whole."""

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from cuasmrl.errors import CuasmrlError
from cuasmrl.explain.report.codes import code_difference
from cuasmrl.explain.report.facts import Facts, facts_of
from cuasmrl.explain.report.figures import Figures
from cuasmrl.explain.report.several import comparison_page, differences, rules_by_run
from cuasmrl.optimize.runs import RunConfig, RunDirectory
from cuasmrl.schedule import Schedule
from tests.explain.report.conftest import Changed
from tests.explain.report.reading import Page
from tests.gpu.test_traced import record_of
from tests.traced_kernels import rescheduled, traced

NAME = "gemm_leaky_relu"


@pytest.fixture(scope="module")
def facts(run: Path) -> Facts:
    return facts_of(run, limit=0)


def other_seed(facts: Facts) -> Facts:
    assert facts.config is not None
    return replace(facts, name="other", config=replace(facts.config, seed=7, agent="greedy"))


def test_two_seeds_of_one_kernel(facts: Facts) -> None:
    page = Page(comparison_page([facts, other_seed(facts)]))
    assert "2 runs compared" in page.one("verdict")
    assert dict(differences([facts, other_seed(facts)])) == {
        "agent": ["climber", "greedy"],
        "seed": ["0", "7"],
    }
    assert "What differs" in page.one("differences")
    # The original is common to both, so it is drawn once.
    drawn = page.one("cycles")
    assert (drawn.count("as compiled"), drawn.count(" cycles, ")) == (2, drawn.count(" cycles, "))
    legend = page.one("search")
    assert "run: +" in legend
    assert "other: +" in legend
    assert page.data["codes"] == []


def test_figures_are_those_of_the_data(facts: Facts) -> None:
    page = Page(comparison_page([facts, other_seed(facts)]))
    figures = Figures(page.data)
    shown = page.all("data")
    assert len(shown) > 10
    for attributes, _ in shown:
        assert float(attributes["value"]) == figures.at(attributes["data-at"])
    assert [run["verdict"] for run in page.data["runs"]] == [page.data["runs"][0]["verdict"]] * 2
    assert "text" not in page.data["runs"][0]["loop"]


def test_rules_stand_side_by_side(facts: Facts) -> None:
    assert facts.explanation is not None
    alone = replace(other_seed(facts), explanation=None)
    rules = rules_by_run([facts, alone])
    assert len(rules) == len(facts.explanation["rules"])
    assert all(places[0] is not None and places[1] is None for _, places in rules)


def test_equal_names_are_told_apart(facts: Facts) -> None:
    assert [run["name"] for run in Page(comparison_page([facts, facts])).data["runs"]] == [
        "run (1)",
        "run (2)",
    ]


def test_runs_that_are_not_whole(facts: Facts, changed: Changed) -> None:
    gone = facts_of(changed("gone", without=("config.json",)), limit=0)
    unfinished = facts_of(changed("open", without=("verdict.json", "best.json")), limit=0)
    page = Page(comparison_page([facts, gone, unfinished]))
    said = page.one("verdict")
    assert "3 runs compared" in said
    assert "This run cannot be read" in said
    assert "Not finished" in said
    assert "gone: what could not be shown" in said
    assert len(page.data["runs"]) == 3


def test_names_are_escaped(facts: Facts) -> None:
    evil = replace(facts, name="<script>alert(1)</script>")
    page = Page(comparison_page([facts, evil]))
    assert len(page.all("script")) == 3
    assert "<script>alert(1)</script>" in page.one("verdict")


def test_one_run_is_no_comparison(facts: Facts) -> None:
    with pytest.raises(CuasmrlError, match="two runs at least"):
        comparison_page([facts])


def compiled(path: Path, schedule: Schedule) -> Facts:
    """A run on a cubin that holds this schedule, as if a compiler had chosen it."""
    kernel = traced(NAME)
    cubin = schedule.apply(kernel.cubin)
    name = kernel.listing.kernel.name
    source = {"cubin": "k.cubin", "launch": "k.launch.json"}
    config = RunConfig(source, name, schedule.digest, "", "virtual:a100", "nobody", {}, 7, 3, {})
    RunDirectory.create(path, config).keep_original(cubin, record_of(NAME))
    (path / "log.jsonl").write_text(
        json.dumps({"number": 0, "key": "00", "time": 9.0, "is_best": True}) + "\n"
    )
    return facts_of(path, limit=0)


def test_the_same_instructions_from_two_compilers(tmp_path: Path) -> None:
    """What one compiler's order is worth against the other's is what the model says of the two schedules."""
    one, other = (
        compiled(tmp_path / n, s) for n, s in (("a", traced(NAME).original), ("b", rescheduled(NAME)))
    )
    found = code_difference(one, other)
    assert found is not None
    assert found.instructions[0] == found.instructions[1] == len(traced(NAME).listing.instructions)
    assert found.opcodes == {}
    assert found.in_order < found.loop[0] == found.loop[1]
    assert found.comparison is not None
    assert found.comparison.moved > 0
    assert found.comparison.before.mean_cycles == found.cycles[0]
    # A trace remembers which access of its own order came first to a sector, and jitter goes by its numbers.
    assert found.comparison.after.mean_cycles == pytest.approx(found.cycles[1], rel=1e-2)
    assert found.worth == found.cycles[0] / found.cycles[1] - 1
    page = Page(comparison_page([one, other]))
    assert f"{found.comparison.moved} stand elsewhere" in page.one("code")
    assert page.data["codes"][0]["worth"] == found.worth


def test_different_instructions_from_two_compilers(tmp_path: Path, facts: Facts) -> None:
    one = compiled(tmp_path / "a", traced(NAME).original)
    assert facts.config is not None
    assert one.config is not None
    assert facts.analysis is not None
    assert one.analysis is not None
    subject = replace(facts.analysis.subject, sizes=one.analysis.subject.sizes)
    other = replace(facts, analysis=replace(facts.analysis, subject=subject),
                    config=replace(facts.config, l2=one.config.l2))  # fmt: skip
    found = code_difference(one, other)
    assert found is not None
    assert found.comparison is None
    assert found.instructions[0] != found.instructions[1]
    assert "HMMA" in found.opcodes
    page = Page(comparison_page([one, other]))
    assert "no schedule of the other" in page.one("code")


def test_one_kernel_on_two_chips_is_not_two_codes(facts: Facts) -> None:
    assert facts.config is not None
    other = replace(facts, config=replace(facts.config, device="virtual:h100", cubin="0"))
    assert code_difference(facts, other) is None
    assert not re.search("id=.code", comparison_page([facts, other]))


def test_a_copy_of_a_run_is_compared_with_itself(facts: Facts, run: Path, tmp_path: Path) -> None:
    copy = facts_of(Path(shutil.copytree(run, tmp_path / "copy")), limit=0)
    assert differences([facts, copy]) == []
