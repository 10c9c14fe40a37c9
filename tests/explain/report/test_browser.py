"""The report in a browser, opened from disk. Screenshots stay in build/screenshots."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cuasmrl.explain.report.facts import Facts, facts_of
from cuasmrl.explain.report.page import page_of
from cuasmrl.explain.report.several import comparison_page
from tests.explain.report.browser import chromium

SCREENSHOTS = Path(__file__).parents[3] / "build" / "screenshots"
EVIL = "<script>document.title='run'</script>"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def facts(run: Path) -> Facts:
    return facts_of(run, limit=0)


@pytest.fixture(scope="module")
def report(facts: Facts, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pages") / "report.html"
    path.write_text(page_of(facts), encoding="utf-8")
    return path


class Tab:
    """A page with everything that went wrong in it."""

    def __init__(self, browser: Any, path: Path, **options: Any) -> None:
        self.page = browser.new_page(**{"viewport": {"width": 1280, "height": 900}, **options})
        self.wrong: list[str] = []
        self.fetched: list[str] = []
        self.page.on("console", lambda message: self.wrong.append(message.text))
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.on("request", lambda request: self.fetched.append(request.url))
        self.page.goto(path.as_uri())

    def keep(self, name: str, whole: bool = True) -> None:
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=SCREENSHOTS / f"{name}.png", full_page=whole)

    def close(self) -> None:
        self.page.close()
        assert self.wrong == []
        # The icon is an empty data address.
        assert [url for url in self.fetched if not url.startswith(("file:", "data:"))] == []
        assert sum(url.startswith("file:") for url in self.fetched) == 1


def background(page: Any) -> str:
    return str(page.evaluate("getComputedStyle(document.body).backgroundColor"))


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_both_themes_at_both_widths(browser: Any, report: Path, theme: str, width: int) -> None:
    tab = Tab(browser, report, color_scheme=theme, viewport={"width": width, "height": 900})
    assert background(tab.page) == {"light": "rgb(255, 255, 255)", "dark": "rgb(13, 17, 23)"}[theme]
    assert tab.page.evaluate("document.documentElement.scrollWidth") <= width
    shown = "wide" if width > 640 else "narrow"
    assert tab.page.locator(f"#gain svg.{shown}").is_visible()
    tab.keep(f"report-{theme}-{width}")
    tab.close()


def test_the_button_overrules_the_system(browser: Any, report: Path) -> None:
    tab = Tab(browser, report, color_scheme="dark")
    button = tab.page.locator("#theme")
    seen = []
    for _ in range(3):
        button.click()
        seen.append((button.inner_text(), background(tab.page)))
    dark, light = "rgb(13, 17, 23)", "rgb(255, 255, 255)"
    assert seen == [("Theme: light", light), ("Theme: dark", dark), ("Theme: auto", dark)]
    tab.close()


def test_paper_is_white_and_shows_the_picture_of_the_loop(browser: Any, report: Path, tmp_path: Path) -> None:
    tab = Tab(browser, report, color_scheme="dark", viewport={"width": 700, "height": 900})
    tab.page.emulate_media(media="print")
    assert background(tab.page) == "rgb(255, 255, 255)"
    assert tab.page.locator("#loop .paper svg").is_visible()
    assert not tab.page.locator("#loop .listing").is_visible()
    tab.keep("report-print")
    paper = tab.page.pdf(path=tmp_path / "report.pdf", format="A4")
    assert paper.startswith(b"%PDF")
    tab.close()


def with_dependences(facts: Facts) -> tuple[int, int, int, str]:
    """An instruction with one before it and one behind it."""
    assert facts.analysis is not None
    edges = facts.analysis.dependences
    firsts = {d.first: d for d in edges}
    edge = next(d for d in edges if d.second in firsts and d.what.startswith("RAW"))
    return edge.first, edge.second, firsts[edge.second].second, edge.what


def looks(page: Any, name: str) -> list[str]:
    return str(page.locator(f"#{name}").get_attribute("class") or "").split()


def test_pointing_at_an_instruction_shows_its_dependences(browser: Any, report: Path, facts: Facts) -> None:
    before, here, behind, what = with_dependences(facts)
    tab = Tab(browser, report)
    page = tab.page
    assert not page.locator(".inspector").is_visible()
    page.locator(f"#b{here}").hover()
    said = page.locator(".inspector").inner_text()
    assert facts.analysis is not None
    row = facts.analysis.loop.before[here]
    assert row.text in said
    assert f"{row.address:04x} {row.control}" in said
    least, mean = facts.analysis.slack[0][here]
    assert f"slack: {mean:.1f} cycles in the mean, {least} at least" in said
    assert what in said
    assert facts.analysis.loop.before[before].text in said
    assert "depends on" in said
    assert "needed by" in said
    assert "in" in looks(page, f"b{before}")
    assert "out" in looks(page, f"b{behind}")
    assert {"here"} <= set(looks(page, f"b{here}"))
    assert "twin" in looks(page, f"a{here}")
    tab.keep("report-hover", whole=False)
    page.locator("h1").hover()
    assert not page.locator(".inspector").is_visible()
    assert "in" not in looks(page, f"b{before}")
    tab.close()


def test_the_keyboard_gets_there_too(browser: Any, report: Path, facts: Facts) -> None:
    assert facts.analysis is not None
    order = [row.index for row in facts.analysis.loop.before.rows]
    tab = Tab(browser, report)
    page = tab.page
    stops = page.locator("[data-side=before] .code [tabindex='0']")
    assert stops.count() == 1
    start = int(stops.get_attribute("id")[1:])
    stops.focus()
    assert facts.analysis.loop.before[start].text in page.locator(".inspector").inner_text()
    page.keyboard.press("ArrowDown")
    following = order[order.index(start) + 1]
    assert page.evaluate("document.activeElement.id") == f"b{following}"
    assert facts.analysis.loop.before[following].text in page.locator(".inspector").inner_text()
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.id") == f"a{following}"
    page.keyboard.press("Escape")
    assert not page.locator(".inspector").is_visible()
    tab.close()


@pytest.mark.parametrize("width", [1280, 390])
def test_links_of_moves_lead_to_the_listing(browser: Any, report: Path, width: int) -> None:
    tab = Tab(browser, report, viewport={"width": width, "height": 900})
    page = tab.page
    for side in ("before", "after"):
        link = page.locator(f"#moves a.place[href^='#{side[0]}']").first
        target = link.get_attribute("href")[1:]
        link.click()
        row = page.locator(f"#{target}")
        row.wait_for(state="visible")
        box = row.bounding_box()
        assert 0 <= box["y"] <= 900
        assert page.evaluate("document.activeElement.id") == target
    tab.close()


def test_figures_on_screen_are_those_of_the_data(browser: Any, report: Path, run: Path) -> None:
    tab = Tab(browser, report)
    embedded = tab.page.evaluate("JSON.parse(document.getElementById('data').textContent)")
    assert embedded["verdict"] == json.loads((run / "verdict.json").read_text())
    shown = tab.page.locator("data").evaluate_all(
        """(all) => all.map((one) => [one.dataset.at, Number(one.value),
             one.dataset.at.split('/').slice(1).reduce((at, step) => at[step],
               JSON.parse(document.getElementById('data').textContent))])"""
    )
    assert len(shown) > 60
    assert [at for at, value, held in shown if value != held] == []
    tab.close()


def test_a_name_that_is_a_script_is_inert(browser: Any, facts: Facts, tmp_path: Path) -> None:
    assert facts.analysis is not None
    assert facts.config is not None
    subject = replace(facts.analysis.subject, name=EVIL)
    rows = tuple(replace(row, text=f"{EVIL} R{k}") for k, row in enumerate(facts.analysis.loop.before.rows))
    loop = replace(facts.analysis.loop, before=replace(facts.analysis.loop.before, rows=rows))
    evil = replace(
        facts,
        config=replace(facts.config, kernel=EVIL),
        analysis=replace(facts.analysis, subject=subject, loop=loop),
    )
    path = tmp_path / "evil.html"
    path.write_text(page_of(evil), encoding="utf-8")
    tab = Tab(browser, path)
    assert tab.page.title().startswith(EVIL)
    assert EVIL in tab.page.locator(".kicker").inner_text()
    tab.page.locator("[data-side=before] .code li").first.hover()
    assert EVIL in tab.page.locator(".inspector").inner_text()
    tab.close()


def test_the_policy_stops_what_escaping_would_miss(browser: Any, report: Path, tmp_path: Path) -> None:
    path = tmp_path / "broken.html"
    path.write_text(report.read_text().replace("<main>", f"<main>{EVIL}"), encoding="utf-8")
    tab = Tab(browser, path)
    assert tab.page.title() != "run"
    assert any("Content Security Policy" in message for message in tab.wrong)
    tab.page.close()


def test_it_opens_within_a_second(browser: Any, report: Path) -> None:
    """By the browser's own clock, scripts included; the best of three, as others use this machine too."""
    times = []
    for _ in range(3):
        tab = Tab(browser, report)
        times.append(tab.page.evaluate("performance.getEntriesByType('navigation')[0].loadEventEnd"))
        tab.close()
    assert 0 < min(times) < 1000


def test_a_comparison(browser: Any, facts: Facts, tmp_path: Path) -> None:
    assert facts.config is not None
    other = replace(facts, name="another", config=replace(facts.config, seed=1))
    path = tmp_path / "comparison.html"
    path.write_text(comparison_page([facts, other]), encoding="utf-8")
    for theme, width in (("light", 1280), ("dark", 390)):
        tab = Tab(browser, path, color_scheme=theme, viewport={"width": width, "height": 900})
        assert tab.page.evaluate("document.documentElement.scrollWidth") <= width
        tab.keep(f"comparison-{theme}-{width}")
        tab.close()
