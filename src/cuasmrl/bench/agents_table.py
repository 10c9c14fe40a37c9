"""What a contest of agents comes to: gains, how far one is ahead of another, and what a game took."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from math import exp, log
from statistics import fmean, geometric_mean, median, quantiles
from typing import TypeAlias

from rich.table import Table

from cuasmrl.bench.agents import VIRTUAL, Played

Gains: TypeAlias = Callable[[Played], float]
_RESAMPLED = 2000
_LEAST = 3
"""Games that both have played, without which nothing is said of a difference."""


def agents_table(games: Sequence[Played]) -> Table:
    """Over the seeds and devices their median, least and largest; below, geometric means of the medians.

    Medians over the ensemble; of hidden devices first the gain on the device itself. Players that have played
    the same games are compared by them.
    """
    is_hidden = any(game.device != VIRTUAL for game in games)
    views: dict[str, Gains] = {"chips around it": lambda game: game.median}
    if is_hidden:
        views = {"the device itself": lambda game: game.confirmed, **views}
    columns = list(dict.fromkeys(game.player for game in games))
    table = Table(box=None, pad_edge=False)
    for heading in ("workload", "config", "gain on")[: 3 if is_hidden else 2]:
        table.add_column(heading)
    for column in columns:
        table.add_column(column, justify="right")
    rows = dict.fromkeys((game.workload, game.config) for game in games)
    for place, gain in views.items():
        found = [
            [[gain(g) for g in games if (g.workload, g.player) == (workload, column)] for workload, _ in rows]
            for column in columns
        ]
        where = [place] if is_hidden else []
        for n, (workload, config) in enumerate(rows):
            table.add_row(workload, config, *where, *(_cell(gains[n]) for gains in found))
        means = [geometric_mean([1 + median(gains) for gains in of_all]) - 1 for of_all in found]
        table.add_row("geometric mean", "", *where, *(f"{mean:+.1%}" for mean in means))
        for rival in columns if len(columns) > 1 else ():
            cells = [_difference(games, gain, column, rival) for column in columns]
            if any(cells):
                table.add_row(f"ahead of {' '.join(rival.split())}", "", *where, *map(str, cells))
    seconds = [fmean(g.seconds for g in games if g.player == column) for column in columns]
    table.add_row("seconds a game", "", *([""] if is_hidden else []), *(f"{s:,.0f}" for s in seconds))
    return table


def _cell(gains: Sequence[float]) -> str:
    if len(gains) == 1:
        return f"{gains[0]:+.1%}"
    return f"{median(gains):+.1%} [{100 * min(gains):.1f}, {100 * max(gains):.1f}]"


def _difference(games: Sequence[Played], gain: Gains, player: str, rival: str) -> str:
    """How far a player is ahead of another one in the same games, in points, and the middle 95 % over
    resampled games; nothing for itself."""
    found = {
        name: {(g.device, g.workload, g.seed): log(1 + gain(g)) for g in games if g.player == name}
        for name in (player, rival)
    }
    cells = [cell for cell in found[player] if cell in found[rival]]
    if player == rival or len(cells) < _LEAST:
        return ""
    pairs = [(found[player][cell], found[rival][cell]) for cell in cells]
    rng = random.Random(0)
    drawn = [_points(rng.choices(pairs, k=len(pairs))) for _ in range(_RESAMPLED)]
    cuts = quantiles(drawn, n=40)
    return f"{_points(pairs):+.2f} [{cuts[0]:+.2f}, {cuts[-1]:+.2f}]"


def _points(pairs: Sequence[tuple[float, float]]) -> float:
    """Between the geometric means of both."""
    mine, other = (exp(fmean(pair[k] for pair in pairs)) for k in (0, 1))
    return 100 * (mine - other)
