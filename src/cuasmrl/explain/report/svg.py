"""The picture of a hot loop before and after: the whole loop as strips of time, and a window with its SASS.

Pure SVG without scripts or fonts of its own: GitHub shows it in a README as it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import mean
from xml.sax.saxutils import escape

from cuasmrl.explain.report.columns import HEADING, PITCH, columns
from cuasmrl.explain.report.legend import Table, legend, legend_height, tenths_table
from cuasmrl.explain.report.loop import HotLoop, telling, window
from cuasmrl.explain.report.palette import style
from cuasmrl.explain.report.shapes import number, signed, spans, text
from cuasmrl.explain.report.strips import HEIGHT as STRIPS_HEIGHT
from cuasmrl.explain.report.strips import strips

WIDTH = 1000
HEIGHT = 720
_THICK = 8
_THICK_MEANS = "Thick: the largest changes, and whose results were waited for"
_LEFT = 18
_RIGHT = WIDTH - _LEFT
_STRIPS = 104
_LEGEND = _STRIPS + STRIPS_HEIGHT + 6
_LEGEND_COLUMNS = 6
_BELOW = 26
"""Room for the caption."""


def draw(loop: HotLoop, height: float = HEIGHT) -> str:
    """The SVG; the same loop gives the same bytes. The window has as many rows as the height allows."""
    table = tenths_table(loop.before.reasons, loop.after.reasons, loop.iterations)
    top = _LEGEND + legend_height(table, _LEGEND_COLUMNS) + 4
    seen = window(loop, max(1, int((height - _BELOW - HEADING - top) / PITCH)))
    thick = telling(loop, seen, _THICK)
    bottom = top + HEADING + PITCH * len(seen)
    parts = [
        *_head(loop, table, bottom + _BELOW),
        *_figures(loop),
        *strips(loop, seen, thick, _LEFT, _RIGHT, _STRIPS),
        *legend(table, _LEFT, _RIGHT, _LEGEND_COLUMNS, _LEGEND),
        *columns(loop, seen, thick, _LEFT, _RIGHT, top),
        text(_LEFT, bottom + 15, _caption(loop, seen), "dim small"),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _head(loop: HotLoop, table: Table, height: float) -> Iterator[str]:
    sizes = " ".join(f"{name}={size}" for name, size in loop.sizes.items())
    title = f"{loop.kernel} {loop.config}: the {_what(loop)} before and after, modelled"
    reasons = ", ".join(f"{name} {old / 10:.1f} to {new / 10:.1f}" for name, old, new in table)
    old, new = sum(row[1] for row in table) / 10, sum(row[2] for row in table) / 10
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="hotloop" width="{WIDTH}" height="{number(height)}" '
        f'viewBox="0 0 {WIDTH} {number(height)}" role="img" aria-labelledby="hotloop-title hotloop-desc">'
    )
    yield f'<title id="hotloop-title">{escape(title)}</title>'
    yield (
        f'<desc id="hotloop-desc">Modelled cycles of one warp for one {_round(loop)}: {old:.1f} before, '
        f"{new:.1f} after ({reasons}). {escape('; '.join(_claim(loop)))}.</desc>"
    )
    yield f"<style>{style(row[0] for row in table)}</style>"
    yield f'<rect class="card edge" x=".5" y=".5" width="{WIDTH - 1}" height="{number(height - 1)}" rx="8"/>'
    name = [(f"{loop.kernel} {loop.config}", "ink bold"), (f"  {sizes}", "dim")]
    yield spans(_LEFT, 27, name, "name")
    yield text(_RIGHT, 27, f"modelled on {loop.chip}", "dim end")


def _what(loop: HotLoop) -> str:
    return "hot loop" if loop.is_loop else "hot block"


def _round(loop: HotLoop) -> str:
    return "iteration" if loop.is_loop else "execution"


def _figures(loop: HotLoop) -> Iterator[str]:
    old, new = (loop.per_iteration(side.cycles) for side in (loop.before, loop.after))
    claim, detail = _claim(loop)
    yield text(_LEFT, 62, f"{old:,.1f} → {new:,.1f} cycles", "ink big")
    yield text(_LEFT, 81, f"modelled: one warp, one {_round(loop)} of the {_what(loop)}", "dim")
    yield text(_RIGHT, 62, claim, "ink big end")
    yield text(_RIGHT, 81, detail, "dim end")


def _claim(loop: HotLoop) -> tuple[str, str]:
    """What may be said of the whole kernel, and how it is known."""
    gain = loop.gain
    old, new = (mean(side.kernel_cycles) for side in (loop.before, loop.after))
    nominal = f"nominal chip {old:,.0f} → {new:,.0f} cycles"
    if gain is None:
        return "not confirmed", f"whole kernel: {nominal}"
    claim = f"{_percent(gain.median)} % confirmed"
    between = f"{_percent(gain.low)} to {_percent(gain.high)} %"
    if not gain.is_modelled:
        return claim, f"whole kernel on {gain.device}: median of {gain.members} rounds, {between}"
    return claim, (
        f"whole kernel: median over {gain.members} chips, middle 90 % {between}; "
        f"{nominal}, {_percent(gain.nominal)} %"
    )


def _percent(share: float) -> str:
    return signed(100 * share)


def _caption(loop: HotLoop, seen: range) -> str:
    rows = loop.before.rows
    if len(seen) == len(rows):
        return f"All {len(rows)} instructions. {_THICK_MEANS}."
    both = [row.index for row in rows[seen.start : seen.stop] if loop.after.place[row.index] in seen]
    saved = sum(map(loop.saved, both))
    return (
        f"{len(seen)} of {len(rows)} instructions (shaded above). The {len(both)} in both columns wait "
        f"{abs(saved):.1f} cycles {'less' if saved >= 0 else 'more'}. {_THICK_MEANS}. ▲▼: so many positions "
        "away."
    )
