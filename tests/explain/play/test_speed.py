"""How soon a drag is shown in a browser, at 1,424 instructions, all of them on the page.

pytest -q -m slow -s tests/explain/play/test_speed.py
"""

import random
from statistics import median, quantiles

import pytest

from cuasmrl.bench.play import traced
from cuasmrl.explain.play.game import SharedGame
from cuasmrl.explain.play.reach import reach_of
from tests.explain.play.conftest import Serve
from tests.explain.report.browser import chromium

DRAGS = 60
TIMED = """() => {
  window.took = [];
  let let_go = 0;
  addEventListener("pointerup", () => { let_go = performance.now(); }, { capture: true });
  new MutationObserver(() => {
    const from = let_go;
    let_go = 0;
    if (from) requestAnimationFrame(() => took.push(performance.now() - from));
  }).observe(document.getElementById("cycles"), { childList: true });
}"""
"""From the moment that the card is let go until the browser paints the new figure, cards included."""


@pytest.mark.slow
def test_a_drag_is_shown_within_a_tenth_of_a_second(serve: Serve) -> None:
    game, rng = SharedGame(traced()), random.Random(0)
    table = serve(game)
    hot = [i for block in game.board.blocks for i in range(block.start, block.end) if not game.board.fixed[i]]
    with chromium() as browser:
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.goto(table.address)
        page.locator("#everything").check()
        page.evaluate(TIMED)
        while len(took := page.evaluate("window.took")) < DRAGS:
            i, version = rng.choice(hot), game.version
            reach = reach_of(game.board, i)
            to = max(reach.first, min(reach.last, game.board.position[i] + rng.choice((-8, -4, -2, 2, 4, 8))))
            if to == game.board.position[i]:
                continue
            card = page.locator(f"#i{i}")
            card.scroll_into_view_if_needed()
            box = card.bounding_box()
            page.mouse.move(box["x"] + 200, box["y"] + 10)
            page.mouse.down()
            page.mouse.move(
                box["x"] + 200, box["y"] + 10 + (to - game.board.position[i]) * box["height"], steps=3
            )
            page.wait_for_selector(".free")
            page.mouse.up()
            page.wait_for_timeout(150)
            assert game.version <= version + 1
    worst = quantiles(took, n=20)[-1]
    told = f"{median(took):.0f} ms median, {worst:.0f} ms 95th percentile"
    print(f"\n{len(game.board.code):,} instructions, {len(took)} drags: {told}")
    assert worst < 100
