"""A run that is watched: what the page shows is what the run knows, and it costs little."""

import time
from pathlib import Path
from typing import Any

import pytest

from cuasmrl.explain.play.app import application
from cuasmrl.explain.play.serving import Server
from cuasmrl.explain.play.watching import Watched
from cuasmrl.optimize import Watch, optimize, optimizer, together
from cuasmrl.optimize.runs import RunDirectory
from tests.explain.report.browser import chromium
from tests.optimize.playing import Device, asking, device, prepare_quickly

__all__ = ["device"]


class Look:
    """A page that is looked at after every evaluation."""

    def __init__(self, watched: Watched) -> None:
        self.watched = watched
        self.seen: list[dict[str, Any]] = []

    def take(self, *what: object) -> None:
        self.watched._last = self.watched._paid = -100.0
        _ = self.watched.pulse
        self.seen.append(self.watched.state())


@pytest.fixture
def run(device: Device, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> tuple[Look, Any]:
    monkeypatch.setattr(optimizer, "prepare", prepare_quickly)
    watched = Watched()
    look = Look(watched)
    hooks = together(watched.hooks, Watch(played=look.take))
    found = optimize(asking(), tmp_path / "run", watch=hooks)
    watched.finished(found, tmp_path / "run" / "report.html")
    watched.close()
    return look, found


def test_what_is_shown_is_what_the_run_knows(run: tuple[Look, Any]) -> None:
    look, found = run
    best = RunDirectory.open(found.run).evaluations()
    assert [state["agent"]["done"] for state in look.seen] == list(range(1, 61))
    tried = dict(look.seen[-1]["agent"]["curve"]["tried"])
    start = best[0].time
    assert tried == {each.number: round(start / each.time - 1, 6) for each in best[1:]}
    last = look.seen[-1]["agent"]["curve"]["best"][-1][1]
    assert last == round(found.search_gain, 6)
    assert look.seen[-1]["history"][0]["words"] == "as compiled"
    assert len(look.seen[-1]["history"]) == 1 + sum(each.is_best for each in best[1:])
    assert look.seen[-1]["cycles"] == look.watched.watch.time(look.watched._best)


def test_the_end_is_told(run: tuple[Look, Any]) -> None:
    look, found = run
    _ = look.watched.pulse
    state = look.watched.state()
    assert state["over"]
    assert state["saving"]["sentence"] == found.verdict.sentence
    assert not state["agent"]["running"]


def test_nothing_is_worked_out_twice_or_too_often(run: tuple[Look, Any]) -> None:
    watched = run[0].watched
    _ = watched.pulse
    state, pulse = watched.state(), watched.pulse
    assert watched.state() is state
    watched._at("more")
    watched._over = None
    assert watched.pulse == pulse
    assert watched._paid > time.process_time()


def test_in_a_browser(run: tuple[Look, Any]) -> None:
    watched = run[0].watched
    server = Server(lambda token, over: application(token, watched, watched.pages, {}, over), 0)
    with chromium() as browser:
        server.start()
        page = browser.new_page(viewport={"width": 1280, "height": 900}, color_scheme="dark")
        page.goto(server.address)
        state = watched.state()
        assert page.locator("#cycles data").get_attribute("value") == str(state["cycles"])
        page.locator("#search-says", has_text="60 of 60 evaluations").wait_for()
        page.locator("#saving", has_text=run[1].verdict.sentence).wait_for()
        assert not page.locator("#undo").is_visible()
        folder = Path(__file__).parents[3] / "build" / "screenshots"
        folder.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=folder / "watch.png")
        server.stop()
        page.wait_for_timeout(300)
        assert not page.locator("#lost").is_visible()
