"""The page of a game: the same for one that is played, watched or recorded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any

from cuasmrl.explain.report.page import render

_PACKAGE = "cuasmrl.explain.play"
_SCRIPTS = ("types.js", "line.js", "column.js", "hand.js", "side.js", "play.js")
_WHAT = {"play": "play", "watch": "watch", "recorded": "recorded game"}


def play_page(
    mode: str,
    kernel: Mapping[str, Any],
    state: Mapping[str, Any],
    recording: Sequence[Mapping[str, Any]] = (),
) -> str:
    """`kernel` and `state` as `state.py` makes them; a recorded page has all states and needs no server."""
    data: dict[str, Any] = {"mode": mode, "kernel": kernel, "state": state}
    if mode == "recorded":
        data["recording"] = list(recording)
    return render(
        "play.html",
        f"{kernel['name']} {kernel['config']}: {_WHAT[mode]}",
        data,
        scripts=["\n".join(map(_asset, _SCRIPTS))],
        looks=_asset("play.css"),
        package=_PACKAGE,
        connects=mode != "recorded",
        what=_WHAT[mode],
        mode=mode,
        kernel=kernel,
    )


@cache
def _asset(name: str) -> str:
    return resources.files(_PACKAGE).joinpath("assets", name).read_text(encoding="utf-8")
