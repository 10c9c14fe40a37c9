"""Single pictures of a run, and the charts of its page, by the same parts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape, quoteattr

from cuasmrl.errors import CuasmrlError
from cuasmrl.explain.report.axes import percent
from cuasmrl.explain.report.facts import Facts
from cuasmrl.explain.report.gains import GainOf, draw_gains, height_of
from cuasmrl.explain.report.legend import legend, legend_height, tenths_table
from cuasmrl.explain.report.palette import style
from cuasmrl.explain.report.search import Search, draw_search
from cuasmrl.explain.report.shapes import number, text
from cuasmrl.explain.report.stacks import Stack, draw_stacks, reasons_in, stacks_height
from cuasmrl.explain.report.svg import draw as draw_loop

_WIDTH = 900
_MARGIN = 20
_HEAD = 40
_CURVE = 300
_LEGEND_COLUMNS = 5


@dataclass(frozen=True)
class Chart:
    """Elements of an SVG with their size."""

    parts: tuple[str, ...]
    width: float
    height: float
    title: str

    def inline(self, looks: str = "") -> str:
        """For a page that has the styles."""
        box = f"0 0 {number(self.width)} {number(self.height)}"
        return (
            f'<svg class="hotloop {looks}" viewBox="{box}" role="img" aria-label={quoteattr(self.title)}>'
            f"{''.join(self.parts)}</svg>"
        )


def gains_chart(gains: Sequence[GainOf], width: float) -> Chart:
    said = "; ".join(f"{one.name}: median {percent(one.gain['median'])}" for one in gains)
    return Chart(tuple(draw_gains(gains, width)), width, height_of(gains), f"Gain of every member. {said}")


def search_chart(searches: Sequence[Search], width: float, height: float = _CURVE) -> Chart:
    said = "; ".join(
        f"{one.name}: {percent(one.curve.final)} after {one.curve.evaluations:,} evaluations"
        for one in searches
    )
    return Chart(tuple(draw_search(searches, width, height)), width, height, f"Best so far. {said}")


def stacks_chart(stacks: Sequence[Stack], width: float) -> Chart:
    said = "; ".join(f"{stack.name}: {stack.cycles:,.1f} {stack.unit}" for stack in stacks)
    return Chart(tuple(draw_stacks(stacks, width)), width, stacks_height(stacks), f"Cycles by reason. {said}")


def gain_of(facts: Facts, name: str = "") -> GainOf | None:
    judged = facts.judgement
    if judged is None or judged.gain is None:
        return None
    device = str(judged.data["device"])
    return GainOf(name or facts.name, judged.gain, judged.accepted, device.startswith("virtual:"))


def search_of(facts: Facts, name: str = "") -> Search | None:
    if facts.curve is None:
        return None
    judged = facts.judgement
    is_claimed = judged is not None and judged.accepted and judged.gain is not None
    median = float(judged.gain["median"]) if is_claimed and judged and judged.gain else None
    return Search(name or facts.name, facts.curve, median)


def stacks_of(facts: Facts) -> tuple[Stack, ...]:
    """Of the whole kernel: as compiled, and if there is another schedule, after."""
    if facts.analysis is None:
        return ()
    cycles = facts.analysis.cycles
    before = Stack("before, as compiled", cycles.before.reasons, cycles.divisor)
    after = Stack("after", cycles.after.reasons, cycles.divisor)
    return (before, after) if facts.analysis.is_changed else (before,)


def picture(kind: str, facts: Facts) -> str:
    """One picture of a run as a file: `loop`, `curve` or `cycles`; refused if there is nothing to draw."""
    try:
        drawn = {"loop": _loop, "curve": _curve, "cycles": _cycles}[kind]
    except KeyError:
        raise CuasmrlError(f"there is no picture {kind!r}; choose loop, curve or cycles") from None
    return drawn(facts)


PICTURES = ("loop", "curve", "cycles")


def _loop(facts: Facts) -> str:
    if facts.analysis is None or not facts.analysis.is_changed:
        raise CuasmrlError(_nothing(facts, "has found nothing faster than the original"))
    return draw_loop(facts.analysis.loop)


def _curve(facts: Facts) -> str:
    search = search_of(facts)
    if search is None:
        raise CuasmrlError(_nothing(facts, "has no evaluations"))
    chart = search_chart([search], _WIDTH - 2 * _MARGIN)
    return _framed(chart.parts, chart.height, f"{_name(facts)}: the search", chart.title, ())


def _cycles(facts: Facts) -> str:
    stacks = stacks_of(facts)
    if not stacks:
        raise CuasmrlError(_nothing(facts, "cannot be replayed"))
    chart = stacks_chart(stacks, _WIDTH - 2 * _MARGIN)
    table = tenths_table(stacks[0].reasons, stacks[-1].reasons, stacks[0].divisor)
    top = chart.height + 12
    parts = (*chart.parts, *legend(table, 0, chart.width, _LEGEND_COLUMNS, top))
    height = top + legend_height(table, _LEGEND_COLUMNS)
    title = f"{_name(facts)}: where the cycles of the kernel went, modelled"
    return _framed(parts, height, title, chart.title, reasons_in(stacks))


def _nothing(facts: Facts, why: str) -> str:
    return facts.problems[0] if facts.problems else f"{facts.name} {why}, so there is nothing to draw"


def _name(facts: Facts) -> str:
    if facts.analysis is not None:
        return f"{facts.analysis.subject.name} {facts.analysis.subject.config}"
    return facts.config.kernel if facts.config else facts.name


def _framed(parts: Iterable[str], height: float, title: str, said: str, reasons: Iterable[str]) -> str:
    """A file of its own: a card with a title, in both themes."""
    size = f"{_WIDTH}", number(_HEAD + height + _MARGIN)
    edge = number(float(size[1]) - 1)
    lines = (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="hotloop" width="{size[0]}" height="{size[1]}" '
        f'viewBox="0 0 {size[0]} {size[1]}" role="img" aria-labelledby="picture-title picture-desc">',
        f'<title id="picture-title">{escape(title)}</title>',
        f'<desc id="picture-desc">{escape(said)}</desc>',
        f"<style>{style(reasons, charts=True)}</style>",
        f'<rect class="card edge" x=".5" y=".5" width="{_WIDTH - 1}" height="{edge}" rx="8"/>',
        text(_MARGIN, 26, title, "ink bold"),
        f'<g transform="translate({_MARGIN} {_HEAD})">',
        *parts,
        "</g></svg>\n",
    )
    return "\n".join(lines)
