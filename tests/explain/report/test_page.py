"""The report: what it says is what the run says, in every state a run can be in."""

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from cuasmrl.explain.report.facts import Facts, facts_of
from cuasmrl.explain.report.figures import FORMATS, Figures, pointer
from cuasmrl.explain.report.loop import Row
from cuasmrl.explain.report.page import page_of
from cuasmrl.optimize import Optimized
from tests.explain.report.conftest import Changed
from tests.explain.report.reading import Page

MOST_BYTES = 2_000_000
EVIL = "</script><script>document.title='run'</script><img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def facts(run: Path) -> Facts:
    return facts_of(run, limit=0)


@pytest.fixture(scope="module")
def page(facts: Facts) -> Page:
    return Page(page_of(facts))


def number(said: str) -> float:
    return float(re.sub(r"[^\d.\-]", "", said.replace("\N{MINUS SIGN}", "-")))


def test_the_data_is_that_of_the_run(page: Page, run: Path) -> None:
    data = page.data
    for part in ("config", "verdict", "explanation"):
        assert data[part] == json.loads((run / f"{part}.json").read_text())
    log = [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]
    assert data["curve"]["start"] == log[0]["time"]
    assert data["curve"]["tried"] == [[e["number"], e["time"]] for e in log[1:] if e["time"] is not None]
    assert [n for n, _ in data["curve"]["best"]] == [e["number"] for e in log if e["is_best"]]
    assert data["problems"] == []


def test_every_figure_is_one_of_the_data(page: Page) -> None:
    figures, shown = Figures(page.data), page.all("data")
    assert len(shown) > 60
    for attributes, said in shown:
        value = figures.at(attributes["data-at"])
        assert float(attributes["value"]) == value, attributes
        forms = {form(value) for form in FORMATS.values()}
        if "/reasons/" in attributes["data-at"]:
            # Tenths of a share of a count, rounded so that they sum.
            of = (
                page.data["loop"]["iterations"]
                if "/loop/" in attributes["data-at"]
                else page.data["cycles"]["divisor"]
            )
            assert abs(number(said) - value / of) < 0.1
        else:
            assert said in forms, attributes


def test_cycles_sum_exactly(page: Page) -> None:
    cycles, loop = page.data["cycles"], page.data["loop"]
    shown = [(attributes["data-at"], number(said)) for attributes, said in page.all("data")]
    for side in ("before", "after"):
        total = sum(cycles[side]["cycles"]) / len(cycles["seeds"])
        assert (
            sum(cycles[side]["reasons"].values()) / cycles["divisor"] == total == cycles[side]["mean_cycles"]
        )
        printed = sum(value for at, value in shown if at.startswith(f"/cycles/{side}/reasons/"))
        assert printed == pytest.approx(round(total, 1), abs=0.01)
        rows = zip(loop[side]["executions"], loop[side]["waits"], strict=True)
        assert sum(n + sum(waits[1::2]) for n, waits in rows) == sum(loop[side]["reasons"].values())
        printed = sum(value for at, value in shown if at.startswith(f"/loop/{side}/reasons/"))
        assert printed == pytest.approx(round(loop[side]["cycles_per_iteration"], 1), abs=0.01)


def test_it_says_what_the_gate_said(page: Page) -> None:
    verdict = page.data["verdict"]
    said = page.one("verdict")
    assert f"{100 * verdict['gain']['median']:+.2f} % faster, confirmed" in said
    for check in verdict["checks"]:
        assert f"{check['name']} {check['outcome']} {check['sentence']}" in said
    gain = page.one("gain")
    assert f"confirmed median{100 * verdict['gain']['median']:+.2f} %" in gain
    assert f"nominal chip{100 * verdict['gain']['nominal']:+.2f} %" in gain


def test_every_member_is_a_dot(page: Page) -> None:
    members = page.data["verdict"]["gain"]["members"]
    dots = [(a, said) for a, said in page.all("circle") if "dot" in a["class"]]
    # Drawn for screens and for telephones.
    assert len(dots) == 2 * len(members)
    wide = dots[: len(members)]
    assert sorted(said.split(": ")[1].replace("\N{MINUS SIGN}", "-") for _, said in wide) == sorted(
        f"{100 * member:+.2f} %" for member in members
    )
    places = {said: float(a["cx"]) for a, said in wide}
    assert sorted(places, key=lambda s: places[s]) == sorted(places, key=lambda s: number(s.split(": ")[1]))
    assert sum("nominal" in a["class"] for a, _ in wide) == 1


def test_the_listing_has_every_instruction_on_both_sides(page: Page) -> None:
    loop = page.data["loop"]
    texts = dict(zip(loop["before"]["order"], loop["text"], strict=True))
    for side in ("before", "after"):
        rows = [
            (a["id"], said) for a, said in page.all("li") if re.fullmatch(rf"{side[0]}\d+", a.get("id", ""))
        ]
        assert [int(name[1:]) for name, _ in rows] == loop[side]["order"]
        columns = loop[side]["position"], loop[side]["control"]
        for (name, said), position, control in zip(rows, *columns, strict=True):
            assert said.startswith(f"{16 * position:04x}{control}{texts[int(name[1:])]}")
    links = [int(a["data-i"]) for a, _ in page.all("path") if "data-i" in a]
    assert sorted(links) == loop["moved"]


def test_moves_lead_to_their_lines(page: Page, facts: Facts) -> None:
    assert facts.explanation is not None
    ids = [a["id"] for _, a, _ in page.found if "id" in a]
    assert len(ids) == len(set(ids))
    targets = [a["href"][1:] for a, _ in page.all("a")]
    assert set(targets) <= set(ids)
    moves = facts.explanation["moves"]
    assert [target for target in targets if re.fullmatch(r"[ab]\d+", target)]
    for k, move in enumerate(moves):
        if move["share"] > 0:
            assert move["deed"] in page.one(f"move{k}")
    assert [rule["text"] in page.one("rules") for rule in facts.explanation["rules"]]


def test_it_can_be_repeated(page: Page) -> None:
    said = page.one("provenance")
    config = page.data["config"]
    assert f"cuasmrl optimize {config['kernel']} --config {config['source']['config']}" in said
    assert "--agent climber --budget 60 --seed 0 --objective " in said
    assert f"{config['objective']} --l2 {config['l2']} --min-gain 0 --min-faster 0.5" in said
    for name, version in config["versions"].items():
        assert f"{name} {version}" in said


def test_it_needs_nothing_from_elsewhere(page: Page) -> None:
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", page.text)
    assert not re.search(r"@import|url\(|\ssrc=", page.text)
    (policy,) = (
        a["content"] for a, _ in page.all("meta") if a.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy.startswith("default-src 'none'; ")


def test_it_is_the_same_every_time_and_names_no_place(facts: Facts, run: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(run, tmp_path / run.name)
    text = page_of(facts_of(Path(copy), limit=0))
    assert text == page_of(facts)
    assert str(run) not in text
    assert str(tmp_path) not in text


def test_a_kernel_that_was_traced_is_not_traced_again(played: Optimized, facts: Facts, run: Path) -> None:
    assert page_of(facts_of(run, played.subject.traced, limit=0)) == page_of(facts)


def test_names_are_shown_and_not_run(facts: Facts) -> None:
    assert facts.analysis is not None
    assert facts.config is not None
    loop = facts.analysis.loop
    rows = tuple(replace(row, text=EVIL) for row in loop.before.rows)
    evil = replace(
        facts,
        name=EVIL,
        problems=(EVIL,),
        config=replace(facts.config, kernel=EVIL, problem=EVIL, versions={EVIL: EVIL}, settings={EVIL: EVIL}),
        analysis=replace(
            facts.analysis,
            subject=replace(facts.analysis.subject, name=EVIL, config=EVIL, chip=EVIL),
            loop=replace(loop, kernel=EVIL, before=replace(loop.before, rows=rows)),
        ),
    )
    page = Page(page_of(evil))
    scripts = page.all("script")
    assert len(scripts) == len(Page(page_of(facts)).all("script")) == 3
    assert not page.all("img")
    assert EVIL in page.one("verdict")
    assert page.data["name"] == page.data["config"]["kernel"] == EVIL
    assert EVIL not in page.text


def test_a_long_kernel_stays_small(facts: Facts) -> None:
    """2,000 instructions, all in the loop and all with something to say."""
    assert facts.analysis is not None
    analysis, loop = facts.analysis, facts.analysis.loop
    assert analysis.timeline is not None
    count, half = 2000, 1000
    like = loop.before.rows
    waits = {"short scoreboard": 12345, "stall": 2345, "not selected": 345}

    def side(order: list[int]) -> tuple[Row, ...]:
        return tuple(
            replace(
                like[i % len(like)],
                index=i,
                position=k,
                waits=waits if i % 2 else {},
                awaited=None,
                text=f"HMMA.16816.F32 R{i % 250}, R{i % 240}.reuse, R{i % 230}, R{i % 250}",
            )
            for k, i in enumerate(order)
        )

    orders = list(range(count)), [*range(half, count), *range(half)]
    before, after = (replace(loop.before, rows=side(order)) for order in orders)
    issue = analysis.timeline.before.issues[0]
    sides = [
        replace(
            analysis.timeline.before,
            cycles=9 * count,
            issues=tuple(
                replace(issue, index=i, cycle=9 * k, complete=9 * k + 30, reason=1) for k, i in enumerate(o)
            ),
        )
        for o in orders
    ]
    edges = tuple(
        replace(d, first=k, second=(k + 40) % count) for k in range(count) for d in analysis.dependences[:3]
    )
    slack = dict.fromkeys(range(count), (3, 12.5))
    long = replace(
        analysis,
        loop=replace(loop, before=before, after=after, moved=frozenset(range(half))),
        timeline=replace(analysis.timeline, before=sides[0], after=sides[1]),
        dependences=edges,
        slack=(slack, slack),
    )
    page = page_of(replace(facts, analysis=long))
    assert len(page.encode()) < MOST_BYTES
    assert len(Page(page).data["loop"]["text"]) == count


def test_a_run_that_goes_on(changed: Changed) -> None:
    path = changed(without=("verdict.json", "certificate.json", "result.cubin", "explanation.json"))
    page = Page(page_of(facts_of(path, limit=0)))
    said = page.one("verdict")
    assert "Not finished: 60 of 60 evaluations" in said
    assert "Nothing is confirmed." in said
    assert page.data["verdict"] is None
    assert "confirmed median" not in page.text
    assert "takes moves away one by one" in page.one("moves")
    assert page.one("loop")


def test_a_run_that_was_refused(changed: Changed, run: Path) -> None:
    verdict = json.loads((run / "verdict.json").read_text())
    checks = [
        *verdict["checks"][:3],
        {"name": "gain", "outcome": "failed", "sentence": "too <b>little</b>"},
    ]
    path = changed(verdict={"accepted": False, "sentence": "no gain: the original is kept", "checks": checks})
    page = Page(page_of(facts_of(path, limit=0)))
    said = page.one("verdict")
    assert "No gain: the original is kept" in said
    assert "Gain: too <b>little</b>." in said
    assert "other sizes left out there was nothing to examine" in said
    assert "was refused and is not delivered" in said
    assert "median, not confirmed" in page.one("gain")
    assert "faster, confirmed" not in page.text


def test_a_run_that_found_nothing(changed: Changed) -> None:
    check = {"name": "gain", "outcome": "failed", "sentence": "no schedule was faster than the original"}
    verdict = {
        "accepted": False,
        "sentence": "no gain: the original is kept",
        "checks": [check],
        "gain": None,
    }
    path = changed(without=("best.json", "result.cubin", "certificate.json"), verdict=verdict)
    page = Page(page_of(facts_of(path, limit=0)))
    assert "Gain: no schedule was faster than the original." in page.one("verdict")
    assert not [a for a, _ in page.all("li") if re.fullmatch(r"a\d+", a.get("id", ""))]
    assert page.data["is_changed"] is False
    assert page.data["cycles"]["before"] == page.data["cycles"]["after"]


@pytest.mark.parametrize(
    ("file", "content", "said"),
    [
        ("verdict.json", "{}", "verdict.json is not a verdict: KeyError('checks')"),
        ("verdict.json", "[", "verdict.json is not JSON"),
        ("verdict.json", '{"checks": [], "gain": {"median": "much"}}', "is not a verdict"),
        ("best.json", "{}", "best.json"),
        ("log.jsonl", "nonsense\n{}\n", "log.jsonl, line 1 is damaged"),
        ("original.cubin", "no cubin", "original.cubin"),
    ],
)
def test_a_run_that_is_damaged(changed: Changed, file: str, content: str, said: str) -> None:
    """What is left is shown, and what is not is named."""
    path = changed()
    (path / file).write_text(content)
    page = Page(page_of(facts_of(path, limit=0)))
    assert said in page.one("verdict")
    assert "What could not be shown" in page.one("verdict")
    assert page.one("provenance")


@pytest.mark.parametrize("gone", ["log.jsonl", "original.cubin", "config.json"])
def test_a_run_of_which_something_is_missing(changed: Changed, gone: str) -> None:
    page = Page(page_of(facts_of(changed(without=(gone,)), limit=0)))
    assert gone in page.one("verdict")
    assert page.data["problems"]


def test_a_limit_is_stated(changed: Changed) -> None:
    path = changed(without=("explanation.json",))
    facts = facts_of(path, limit=1e-9)
    assert facts.explanation is None
    assert "the moves that mattered were not found within 1e-09 s" in Page(page_of(facts)).one("moves")
    assert facts_of(path, limit=None).explanation == json.loads((path / "explanation.json").read_text())


def test_an_explanation_of_another_schedule_is_not_shown(changed: Changed) -> None:
    assert facts_of(changed(explanation={"best": "00"}), limit=0).explanation is None


def test_pointers() -> None:
    figures = Figures({"a/b": [{"~": 7}]})
    assert figures.at(pointer("a/b", 0, "~")) == 7
    assert figures(pointer("a/b", 0, "~")) == '<data value="7" data-at="/a~1b/0/~0">7</data>'
