"""The game in Chromium: dragged, hinted, undone, watched, judged. Screenshots stay in build/screenshots."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cuasmrl.explain.play.game import SharedGame
from cuasmrl.explain.play.page import play_page
from cuasmrl.explain.play.reach import reach_of
from cuasmrl.explain.play.recording import recorded_page
from cuasmrl.explain.play.state import game_data, kernel_data
from tests.climbing import kernel
from tests.explain.play.conftest import Serve, Table, refused
from tests.explain.report.browser import chromium

SCREENSHOTS = Path(__file__).parents[3] / "build" / "screenshots"
EVIL = "<script>document.title='run'</script>"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as found:
        yield found


class Tab:
    """A page with everything that went wrong in it."""

    def __init__(self, browser: Any, address: str, **options: Any) -> None:
        self.context = browser.new_context(
            **{"viewport": {"width": 1280, "height": 900}, "reduced_motion": "reduce", **options}
        )
        self.page = self.context.new_page()
        self.wrong: list[str] = []
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.goto(address)

    def keep(self, name: str) -> None:
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=SCREENSHOTS / f"{name}.png")

    def card(self, i: int) -> Any:
        return self.page.locator(f"#i{i}")

    def drag(self, i: int, to: int, drop: bool = True) -> None:
        """Take the card of an instruction to where a position is shown."""
        card = self.card(i)
        card.scroll_into_view_if_needed()
        box = card.bounding_box()
        here = int(card.locator("> i").inner_text(), 16) // 16
        x, y = box["x"] + 120, box["y"] + box["height"] / 2
        self.page.mouse.move(x, y)
        self.page.mouse.down()
        self.page.mouse.move(x, y + (to - here) * box["height"], steps=6)
        self.page.wait_for_selector(".free")
        if drop:
            self.page.mouse.up()

    def order(self) -> list[int]:
        """Of the hot loop, as it is shown."""
        found: list[int] = self.page.locator("#cards li").evaluate_all(
            "(all) => all.map((li) => Number(li.id.slice(1)))"
        )
        return found

    def figure(self, part: str) -> float:
        return float(self.page.locator(f"#{part} data").first.get_attribute("value"))

    def close(self) -> None:
        self.context.close()
        assert self.wrong == []


def until(true: Callable[[], bool], seconds: float = 20) -> None:
    """Wait in the browser's own time, so that it can go on."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "nothing has happened"
        time.sleep(0.02)


def loads(game: SharedGame) -> list[int]:
    """Shared-memory loads of the hot loop, which can move."""
    return [i for i in range(193, 265) if game.board.code[i].opcode == "LDSM"]


def region(game: SharedGame) -> list[int]:
    return list(game.board.order[193:265])


@pytest.fixture
def table(serve: Serve, game: SharedGame) -> Table:
    return serve(game)


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_both_themes_at_both_widths(browser: Any, table: Table, theme: str, width: int) -> None:
    tab = Tab(browser, table.address, color_scheme=theme, viewport={"width": width, "height": 900})
    colour = tab.page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert colour == {"light": "rgb(255, 255, 255)", "dark": "rgb(13, 17, 23)"}[theme]
    assert tab.page.evaluate("document.documentElement.scrollWidth") <= width
    assert tab.order() == region(table.game)
    tab.keep(f"play-{theme}-{width}")
    tab.close()


def test_a_drag_is_timed_at_once_and_can_be_undone(browser: Any, table: Table) -> None:
    game, tab = table.game, Tab(browser, table.address)
    i = loads(game)[0]
    reach = reach_of(game.board, i)
    to = reach.alone[-1]
    before = game.watch.original.cycles
    assert tab.figure("cycles") == before
    tab.drag(i, to, drop=False)
    assert tab.page.locator(".free").count() == len(reach.alone)
    assert "by itself" in tab.page.locator("#said").inner_text()
    tab.keep("play-drag")
    tab.page.mouse.up()
    until(lambda: game.version == 1)
    tab.page.wait_for_selector(f"#i{i}.touched")
    assert tab.order() == region(game)
    assert tab.order() != list(range(193, 265))
    assert tab.figure("cycles") == game.here.reading.cycles
    assert tab.figure("gain") == game.gain(game.here.reading)
    shown = tab.page.locator("#reasons data").evaluate_all("(all) => all.map((one) => Number(one.value))")
    assert sum(shown) == pytest.approx(game.here.reading.cycles)
    tab.page.locator("#undo").click()
    until(lambda: game.cursor == 0)
    tab.page.wait_for_selector("#undo:disabled")
    assert tab.order() == list(range(193, 265))
    tab.page.keyboard.press("Control+y")
    until(lambda: game.cursor == 1)
    tab.close()


def test_dragging_farther_takes_along_and_refuses_in_words(browser: Any, table: Table) -> None:
    game, tab = table.game, Tab(browser, table.address)
    i = next(i for i in loads(game) if reach_of(game.board, i).down)
    reach = reach_of(game.board, i)
    beyond = next(p for p in range(game.board.position[i], reach.last) if p not in reach.alone)
    tab.drag(i, beyond, drop=False)
    assert "takes along" in tab.page.locator("#said").inner_text()
    assert tab.page.locator(".tied").count() >= 1
    tab.keep("play-tied")
    tab.page.keyboard.down("Alt")
    tab.page.mouse.up()
    tab.page.keyboard.up("Alt")
    tab.page.wait_for_selector("#refused:not(:empty)")
    said = refused(lambda: game.play(0, {"kind": "shift", "instruction": i, "position": beyond}))
    assert tab.page.locator("#refused").inner_text() == said
    assert said.startswith("kernel gemm_leaky_relu: ")
    assert game.version == 0
    tab.keep("play-refused")
    tab.close()


def test_the_keyboard_plays_too(browser: Any, table: Table) -> None:
    game, tab = table.game, Tab(browser, table.address)
    i = loads(game)[0]
    tab.card(i).focus()
    to = next(p for p in reach_of(game.board, i).alone if p > game.board.position[i])
    tab.page.keyboard.press("Space")
    tab.page.wait_for_selector(".free")
    for _ in range(to - game.board.position[i]):
        tab.page.keyboard.press("ArrowDown")
    assert f"to {16 * to:04x}" in tab.page.locator("#said").inner_text()
    tab.page.keyboard.press("Escape")
    assert tab.page.locator("#said").inner_text() == "put back"
    tab.page.keyboard.press("Enter")
    tab.page.wait_for_selector(".free")
    for _ in range(to - game.board.position[i]):
        tab.page.keyboard.press("ArrowDown")
    tab.page.keyboard.press("Enter")
    until(lambda: game.version == 1)
    assert game.board.position[i] == to
    tab.page.wait_for_selector(f"#i{i}.touched")
    assert tab.page.evaluate("document.activeElement.id") == f"i{i}"
    assert "over the compiler" in tab.page.locator("#said").inner_text()
    assert tab.card(i).get_attribute("aria-label").startswith(f"{16 * to:04x}, LDSM")
    tab.page.keyboard.press("y")
    until(lambda: game.version == 2)
    tab.close()


def test_a_hint_is_shown_as_an_arrow_and_played(browser: Any, table: Table) -> None:
    game, tab = table.game, Tab(browser, table.address)
    tab.page.locator("#hint").click()
    tab.page.wait_for_selector("#hints li")
    assert "random moves were replayed" in tab.page.locator("#hints-say").inner_text()
    assert tab.page.locator(".arrows path").count() >= 1
    tab.keep("play-hint")
    promised = float(tab.page.locator("#hints data").first.get_attribute("value"))
    tab.page.locator("#hints button").first.click()
    until(lambda: game.version == 1)
    assert game.gain(game.here.reading) == pytest.approx(promised)
    tab.page.wait_for_selector("#hints-box", state="hidden")
    tab.close()


def test_the_agent_is_watched_and_stopped(browser: Any, table: Table) -> None:
    game, tab = table.game, Tab(browser, table.address)
    tab.page.locator("#agent").click()
    tab.page.wait_for_selector("#search:not([hidden])")
    until(lambda: game.version >= 2)
    tab.page.wait_for_selector("#history li:nth-child(2)")
    tab.keep("play-agent")
    if game.is_busy:
        tab.page.locator("#agent").click()
    table.desk.player.wait()
    tab.page.wait_for_selector("#agent:has-text('Let greedy play')")
    until(lambda: tab.figure("cycles") == game.here.reading.cycles)
    assert tab.order() == region(game)
    tab.close()


def test_two_browsers_on_one_game(browser: Any, table: Table) -> None:
    game = table.game
    one, other = Tab(browser, table.address), Tab(browser, table.address)
    i = loads(game)[0]
    to = reach_of(game.board, i).alone[-1]
    one.drag(i, to)
    until(lambda: game.version == 1)
    other.page.wait_for_selector(f"#i{i}.touched")
    assert other.order() == one.order() == region(game)
    stale = other.page.evaluate(
        """async () => (await fetch('move', {method: 'POST', headers: {'Content-Type': 'application/json'},
           body: JSON.stringify({version: 0, move: {kind: 'yield', instruction: 200}})})).status"""
    )
    assert (stale, game.version) == (409, 1)
    one.close()
    other.close()


def test_a_lost_connection_shows_and_comes_back(browser: Any, table: Table) -> None:
    game, tab = table.game, Tab(browser, table.address)
    assert not tab.page.locator("#lost").is_visible()
    tab.context.set_offline(True)
    tab.page.locator("#hint").click()
    tab.page.wait_for_selector("#lost:not([hidden])")
    tab.keep("play-lost")
    i = loads(game)[0]
    game.play(0, {"kind": "drag", "instruction": i, "position": reach_of(game.board, i).alone[-1]})
    tab.context.set_offline(False)
    tab.page.wait_for_selector("#lost", state="hidden")
    tab.page.wait_for_selector(f"#i{i}.touched")
    assert tab.order() == region(game)
    tab.close()


def test_a_game_is_judged_like_any_run(browser: Any, table: Table) -> None:
    game, tab = table.game, Tab(browser, table.address)
    tab.page.locator("#save").click()
    tab.page.wait_for_selector("#refused:not(:empty)")
    assert "make a move first" in tab.page.locator("#refused").inner_text()
    i = loads(game)[0]
    tab.drag(i, reach_of(game.board, i).alone[-1])
    until(lambda: game.version == 1)
    tab.page.locator("#save").click()
    tab.page.wait_for_selector("#saving .check, #saving p:has-text('gain')", timeout=60_000)
    table.desk.saving.wait()
    assert (
        "original" in tab.page.locator("#saving").inner_text()
        or "faster" in tab.page.locator("#saving").inner_text()
    )
    tab.keep("play-judged")
    assert tab.page.locator("#saving a").get_attribute("href") == "report"
    tab.page.goto(f"{table.address}report")
    assert "Played by hand" in tab.page.locator("#provenance").inner_text()
    tab.close()


def test_a_name_that_is_a_script_is_inert(browser: Any, game: SharedGame, tmp_path: Path) -> None:
    data = kernel_data(game.kernel, game.board, game.watch)
    data = {**data, "name": EVIL, "text": [f"{EVIL} {text}" for text in data["text"]]}
    state = game_data(game)
    state["history"] = [{**step, "words": EVIL} for step in state["history"]]
    path = tmp_path / "evil.html"
    path.write_text(play_page("recorded", data, state, [state]), encoding="utf-8")
    tab = Tab(browser, path.as_uri())
    assert tab.page.title().startswith(EVIL)
    assert EVIL in tab.page.locator("#cards li code").first.inner_text()
    assert EVIL in tab.page.locator("#history").inner_text()
    tab.close()


def test_a_recorded_game_needs_no_server(browser: Any, game: SharedGame, tmp_path: Path) -> None:
    for i in loads(game)[:3]:
        game.play(
            game.version, {"kind": "drag", "instruction": i, "position": reach_of(game.board, i).alone[-1]}
        )
    path = tmp_path / "recorded.html"
    path.write_text(recorded_page(game), encoding="utf-8")
    tab = Tab(browser, path.as_uri())
    assert tab.order() == list(range(193, 265))
    for place, step in enumerate(game.steps):
        tab.page.locator("#place").fill(str(place))
        assert tab.figure("cycles") == step.reading.cycles
        assert tab.order() == list(step.schedule.order[193:265])
    tab.keep("play-recorded")
    tab.close()
    assert kernel().name in path.read_text()
