"""A game as a page that needs no server: every position, to be stepped through."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cuasmrl.explain.play.game import SharedGame, Step
from cuasmrl.explain.play.page import play_page
from cuasmrl.explain.play.state import game_data, history_data, kernel_data, schedule_data

MOST_POSITIONS = 60


def recorded_page(game: SharedGame) -> str:
    """Of a longer game the first and the last position, and as many between as fit, evenly."""
    kernel = kernel_data(game.kernel, game.board, game.watch)
    hot = [position for n in kernel["region"] for position in range(*kernel["blocks"][n])]
    with game.lock:
        steps = _thinned(game.steps)
        state = game_data(game)
    positions = [_position(game, step, hot) for step in steps]
    history = history_data(game, steps)
    best = max(history, key=lambda step: float(step["gain"]))
    first = {**state, **positions[0], "first": 0, "cursor": 0, "history": history, "best": best}
    for name in ("agent", "saving"):
        first.pop(name, None)
    return play_page("recorded", kernel, first, positions)


def _thinned(steps: Sequence[Step]) -> list[Step]:
    last = len(steps) - 1
    if last < MOST_POSITIONS:
        return list(steps)
    chosen = {round(k * last / (MOST_POSITIONS - 1)) for k in range(MOST_POSITIONS)}
    return [steps[k] for k in sorted(chosen)]


def _position(game: SharedGame, step: Step, hot: Sequence[int]) -> dict[str, Any]:
    """Only the hot part is shown, so only that has its control codes and waits."""
    whole = schedule_data(step.schedule) | step.reading.as_dict()
    shown = set(hot)
    for name in ("control", "waits"):
        whole[name] = [value if p in shown else "" for p, value in enumerate(whole[name])]
    return {**whole, "gain": game.gain(step.reading), "touched": step.instruction}
