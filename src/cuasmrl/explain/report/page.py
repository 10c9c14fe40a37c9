"""The report of a run as one file: what the parts have drawn, put together by a template.

Templates escape whatever they are given, so that a kernel called `<script>` is shown and not run; only what
the parts of this room have drawn, which escape by themselves, goes in as it is. The policy in the head lets
a browser run the scripts of this page and nothing else.
"""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from cuasmrl import __version__
from cuasmrl.explain.report.axes import percent
from cuasmrl.explain.report.commands import command_of, settings_of
from cuasmrl.explain.report.facts import Facts
from cuasmrl.explain.report.figures import Figures, pointer
from cuasmrl.explain.report.headline import headline
from cuasmrl.explain.report.legend import tenths_table
from cuasmrl.explain.report.listing import listing_of
from cuasmrl.explain.report.loop import HotLoop, telling
from cuasmrl.explain.report.palette import page_style, reason_class
from cuasmrl.explain.report.pictures import (
    Chart,
    gain_of,
    gains_chart,
    search_chart,
    search_of,
    stacks_chart,
    stacks_of,
)
from cuasmrl.explain.report.search import floor_of
from cuasmrl.explain.report.strips import HEIGHT as STRIPS_HEIGHT
from cuasmrl.explain.report.strips import strips
from cuasmrl.explain.report.svg import draw as draw_loop

WIDE, NARROW = 1120, 350
"""Charts are drawn twice, for screens and for telephones: text keeps its size."""
_PACKAGE = "cuasmrl.explain.report"
_MOVES_TOLD = 12
_BOUNDS = 8
_BESIDE = 890
"""Width of a chart that has figures beside it."""


def page_of(facts: Facts) -> str:
    """The report of one run."""
    data = facts.as_dict()
    return render("run.html", f"{_title(facts)}: report", data, **_parts(facts, data))


def render(
    template: str,
    title: str,
    data: Mapping[str, Any],
    scripts: Sequence[str] | None = None,
    package: str = _PACKAGE,
    looks: str = "",
    connects: bool = False,
    **more: Any,
) -> str:
    """A page with its data, its looks and its scripts in it.

    Other packages bring templates, scripts and looks of their own. A page that `connects` may ask the server
    that it came from; others fetch nothing.
    """
    texts = [_asset("theme.js"), *([_asset("listing.js")] if scripts is None else scripts)]
    hashes = " ".join(f"'sha256-{b64encode(hashlib.sha256(s.encode()).digest()).decode()}'" for s in texts)
    own = "; connect-src 'self'; form-action 'none'; base-uri 'none'" if connects else ""
    return (
        _environment(package)
        .get_template(template)
        .render(
            title=title,
            data=data,
            num=Figures(data),
            policy=f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src {hashes}{own}",
            style=Markup(page_style() + _asset("report.css") + looks),
            scripts=[Markup(text) for text in texts],
            version=__version__,
            **more,
        )
    )


def both(chart: Callable[[float], Chart], wide: float = WIDE) -> Markup:
    """A chart for screens and one for telephones; `chart` draws it in a width."""
    drawn = (chart(width).inline(looks) for width, looks in ((wide, "wide"), (NARROW, "narrow")))
    return Markup("".join(drawn))


@cache
def _asset(name: str) -> str:
    return resources.files(_PACKAGE).joinpath("assets", name).read_text(encoding="utf-8")


@cache
def _environment(package: str) -> Environment:
    folders = [PackageLoader(name, "assets") for name in dict.fromkeys((package, _PACKAGE))]
    made = Environment(
        loader=ChoiceLoader(folders),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals.update(pointer=pointer, percent=percent, reason_class=reason_class)
    made.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "sort_keys": False}
    return made


def _title(facts: Facts) -> str:
    if facts.analysis is not None:
        return f"{facts.analysis.subject.name} {facts.analysis.subject.config}"
    return facts.config.kernel if facts.config is not None else facts.name


def _parts(facts: Facts, data: Mapping[str, Any]) -> dict[str, Any]:
    gain, search, stacks = gain_of(facts, "gain"), search_of(facts, "search"), stacks_of(facts)
    found: dict[str, Any] = {
        "facts": facts,
        "heading": _title(facts),
        "headline": headline(facts),
        "gains": both(lambda w: gains_chart([gain], w), _BESIDE) if gain else None,
        "search": both(lambda w: search_chart([search], w, 300 if w == WIDE else 260)) if search else None,
        "search_floor": floor_of([search]) if search else None,
        "stacks": both(lambda w: stacks_chart(stacks, w)) if stacks else None,
        "command": command_of(facts.config) if facts.config else None,
        "settings": settings_of(facts.config) if facts.config else "",
        "analysis": facts.analysis,
    }
    if facts.analysis is not None:
        cycles, loop = facts.analysis.cycles, facts.analysis.loop
        found |= {
            "kernel_table": tenths_table(cycles.before.reasons, cycles.after.reasons, cycles.divisor),
            "loop_table": tenths_table(loop.before.reasons, loop.after.reasons, loop.iterations),
            "bounds": data["headroom"]["bounds"][:_BOUNDS],
            **loop_parts(facts),
        }
    if facts.explanation is not None:
        found |= moves_parts(facts)
    return found


def loop_parts(facts: Facts) -> dict[str, Any]:
    """The hot loop: its strips, its listing, and the picture that stands for both on paper."""
    assert facts.analysis is not None
    loop = facts.analysis.loop
    return {
        "listing": listing_of(loop, facts.analysis.timeline),
        "strips": both(lambda w: strips_chart(loop, w)) if facts.analysis.is_changed else None,
        "printed": Markup(_without_style(draw_loop(loop))) if facts.analysis.is_changed else None,
    }


def strips_chart(loop: HotLoop, width: float) -> Chart:
    whole = range(len(loop.before.rows))
    drawn = strips(loop, whole, telling(loop, whole, 8), 0, width, 6)
    return Chart(tuple(drawn), width, STRIPS_HEIGHT + 8, "The loop in time, before above after")


def _without_style(picture: str) -> str:
    """The page has the looks of all pictures, for both themes."""
    head, _, rest = picture.partition("<style>")
    return head + rest.partition("</style>")[2]


def moves_parts(facts: Facts) -> dict[str, Any]:
    """The moves that mattered most, each with its number in the story, and where it stands in the listing."""
    assert facts.explanation is not None
    moves: Sequence[Mapping[str, Any]] = facts.explanation["moves"]
    order = sorted(range(len(moves)), key=lambda k: (-moves[k]["share"], k))
    told = [k for k in order if moves[k]["share"] > 0][:_MOVES_TOLD]
    return {
        "moves": [(k, moves[k], _places(facts, moves[k])) for k in told],
        "untold": len(moves) - len(told),
    }


def _places(facts: Facts, move: Mapping[str, Any]) -> tuple[tuple[str, str, int], ...]:
    """Links into the listing: the first of its instructions that is there, before and after."""
    assert facts.analysis is not None
    loop = facts.analysis.loop
    inside = [i for i in move["instructions"] if i in loop.before.place]
    if not inside:
        return ()
    i = inside[0]
    return (
        ("before", f"{loop.before[i].address:04x}", i),
        ("after", f"{loop.after[i].address:04x}", i),
    )
