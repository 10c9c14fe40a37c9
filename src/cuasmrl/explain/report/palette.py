"""Colours and type of the pictures, for light and dark pages.

The colours of reasons began as those of Okabe and Ito (jfly.uni-koeln.de/color) and were moved until any two
differ clearly, also for people who do not see red, green or blue as others do; a test holds them to it. A
picture in a page follows the reader's system, so it carries both looks, and a card of its own to stand on.
"""

from __future__ import annotations

from collections.abc import Iterable

from cuasmrl.gpu.timing import REASON_NAMES, Reason

REASON_COLOURS = {
    Reason.ISSUED: ("#d9dee3", "#3a424d"),
    Reason.STALL: ("#aca594", "#8d7d88"),
    Reason.BRANCH: ("#4a1d1f", "#dab3ba"),
    Reason.FETCH: ("#c39d50", "#763e28"),
    Reason.SHORT_SCOREBOARD: ("#e69f00", "#f0a81c"),
    Reason.LONG_SCOREBOARD: ("#c54c00", "#e23c14"),
    Reason.COPY: ("#ffe100", "#f1f986"),
    Reason.TMA: ("#6cfc6c", "#30006c"),
    Reason.L2_SHARE: ("#7e03fb", "#6c12cd"),
    Reason.DRAM: ("#110a2b", "#3f09fa"),
    Reason.BARRIER: ("#1f45b5", "#4a80fa"),
    Reason.MBARRIER: ("#000084", "#000018"),
    Reason.TENSOR_RESULT: ("#c65bbb", "#ee6fd0"),
    Reason.TENSOR_ENGINE: ("#787efc", "#361800"),
    Reason.CONSTANT: ("#483f0a", "#769f41"),
    Reason.TENSOR_BUSY: ("#801073", "#8f1aae"),
    Reason.UNIT_BUSY: ("#56b4f5", "#78e8f5"),
    Reason.MEMORY_QUEUE: ("#237e4b", "#29b271"),
    Reason.REGISTER_PORT: ("#a8f59f", "#c4fac1"),
    Reason.NOT_SELECTED: ("#6b7b80", "#552a6b"),
}
"""On light and on dark; `no warp` is a reason of sub-cores only."""
NO_WARP = ("#eef1f4", "#161b22")
"""Of a sub-core that has nothing left to do: hardly there."""
SERIES = (
    ("#1f5fbf", "#6cb0ff"),
    ("#c2410c", "#ff9a5c"),
    ("#0f766e", "#4fd1c0"),
    ("#9333a8", "#d98cf0"),
    ("#8a6d00", "#e3c04a"),
    ("#5c6670", "#a7b1bb"),
)
"""Of runs that are drawn on one chart; where there are more they come again."""
_LOOKS = {
    # class: (property, light, dark)
    "card": ("fill", "#ffffff", "#0d1117"),
    "edge": ("stroke", "#d0d7de", "#30363d"),
    "ink": ("fill", "#1f2328", "#e6edf3"),
    "dim": ("fill", "#656d76", "#8d96a0"),
    "faint": ("fill", "#a9b1ba", "#545d68"),
    "stripe": ("fill", "#f3f5f7", "#161b22"),
    "shown": ("fill", "#e4e8ed", "#262d36"),
    "link": ("stroke", "#9aa4af", "#6b7682"),
    "strong": ("stroke", "#1f2328", "#e6edf3"),
    "halo": ("stroke", "#ffffff", "#0d1117"),
    "rule": ("stroke", "#8c959f", "#6e7681"),
}
MONOSPACE = "ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono','Liberation Mono',monospace"
SANS = "-apple-system,'Segoe UI',Helvetica,Arial,'Liberation Sans',sans-serif"
_TYPE = (
    ("text", f"font-family:{SANS};font-size:12px;white-space:pre"),
    (".code", f"font-family:{MONOSPACE};font-size:10.5px"),
    (".small", "font-size:11px"),
    (".name", "font-size:15px"),
    (".big", "font-size:22px;font-weight:600"),
    (".bold", "font-weight:600"),
    (".mid", "text-anchor:middle"),
    (".end", "text-anchor:end"),
    (".link", "fill:none;stroke-width:.8;opacity:.5"),
    (".moved", "stroke-width:1;opacity:.9"),
    (".strong", "fill:none;stroke-width:1.8"),
    (".fill", "fill:currentColor"),
    (".lane", "fill:none;stroke:currentColor;stroke-width:20"),
    (".halo", "paint-order:stroke;stroke-width:3px"),
)

_CHART_LOOKS = {
    "grid": ("stroke", "#e6eaee", "#21262d"),
    "band": ("fill", "#dfe9f7", "#1b2b43"),
    "accent": ("stroke", "#1f5fbf", "#6cb0ff"),
    "dot": ("fill", "#57606a", "#9aa4af"),
    "nominal": ("fill", "#ffffff", "#0d1117"),
    "confirmed": ("stroke", "#1f5fbf", "#6cb0ff"),
}
_CHART_TYPE = (
    (".grid", "fill:none;stroke-width:1"),
    (".rule", "fill:none;stroke-width:1"),
    (".accent", "fill:none;stroke-width:2.5"),
    (".dot", "fill-opacity:.75"),
    (".nominal", "fill-opacity:1;stroke:currentColor;stroke-width:2"),
    (".tried", "fill:none;stroke:currentColor;stroke-width:2.4;stroke-linecap:round;opacity:.45"),
    (".best", "fill:none;stroke:currentColor;stroke-width:2;stroke-linejoin:round"),
    (".confirmed", "fill:none;stroke-width:1;stroke-dasharray:4 3"),
)
_ON_COLOUR = ("#14181d", "#ffffff")
"""Text on a coloured bar: dark or bright, whichever is clearer."""
_NUMBERS = {name: int(reason) for reason, name in REASON_NAMES.items()}


def reason_class(name: str) -> str:
    return f"r{_NUMBERS[name]}"


def text_class(name: str) -> str:
    """Of a text on the colour of a reason."""
    return f"t{_NUMBERS[name]}"


def series_class(k: int) -> str:
    return f"s{k % len(SERIES)}"


def style(reasons: Iterable[str], charts: bool = False) -> str:
    """The style sheet with the colours of these reasons; it touches nothing outside the picture."""
    used = sorted(_NUMBERS[name] for name in reasons)
    light, dark = (_coloured(used, k, charts) for k in (0, 1))
    plain = (*_TYPE, *_CHART_TYPE) if charts else _TYPE
    return f"{_rules(plain)}{_rules(light)}@media (prefers-color-scheme:dark){{{_rules(dark)}}}"


def page_style() -> str:
    """All looks of all pictures for a page that has both themes, by `data-theme` or the reader's system.

    Colours are variables of the page: `--ink`, `--r4` for reason 4, `--t4` for text on it, `--s0` for series.
    """
    names = {**_LOOKS, **_CHART_LOOKS}
    light, dark = (_variables(k) for k in (0, 1))
    uses = [
        *((f".{name}", f"{what}:var(--{name})") for name, (what, *_) in names.items()),
        *((f".t{int(reason)}", f"fill:var(--t{int(reason)})") for reason in Reason),
    ]
    # Swatches and bars of the page itself have the colours too.
    everywhere = [f"r{int(reason)}" for reason in Reason] + [f"s{k}" for k in range(len(SERIES))]
    return (
        f":root{{{light}}}"
        f"@media (prefers-color-scheme:dark){{:root:not([data-theme=light]){{{dark}}}}}"
        f":root[data-theme=dark]{{{dark}}}"
        f"@media print{{:root,:root[data-theme=dark],:root:not([data-theme=light]){{{light}}}}}"
        f"{_rules((*_TYPE, *_CHART_TYPE, *uses))}"
        f"{''.join(f'.{name}{{color:var(--{name})}}' for name in everywhere)}"
    )


def _colours(reason: int) -> tuple[str, str]:
    return NO_WARP if reason == Reason.NO_WARP else REASON_COLOURS[Reason(reason)]


def _coloured(used: Iterable[int], k: int, charts: bool) -> list[tuple[str, str]]:
    names = {**_LOOKS, **_CHART_LOOKS} if charts else _LOOKS
    found = [(f".{name}", f"{what}:{looks[k]}") for name, (what, *looks) in names.items()]
    found += [(f".r{reason}", f"color:{_colours(reason)[k]}") for reason in used]
    if charts:
        found += [(f".t{reason}", f"fill:{_on(_colours(reason)[k])}") for reason in used]
        found += [(f".s{n}", f"color:{colours[k]}") for n, colours in enumerate(SERIES)]
    return found


def _variables(k: int) -> str:
    found = {name: looks[k] for name, (_, *looks) in {**_LOOKS, **_CHART_LOOKS}.items()}
    found |= {f"r{int(reason)}": _colours(reason)[k] for reason in Reason}
    found |= {f"t{int(reason)}": _on(_colours(reason)[k]) for reason in Reason}
    found |= {f"s{n}": colours[k] for n, colours in enumerate(SERIES)}
    scheme = ("light", "dark")[k]
    return f"color-scheme:{scheme};" + ";".join(f"--{name}:{colour}" for name, colour in found.items())


def _on(colour: str) -> str:
    """By the contrast of WCAG."""
    light = _luminance(colour)
    ratios = [(max(light, own) + 0.05) / (min(light, own) + 0.05) for own in map(_luminance, _ON_COLOUR)]
    return _ON_COLOUR[ratios.index(max(ratios))]


def _luminance(colour: str) -> float:
    values = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in values]
    return sum(weight * v for weight, v in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def _rules(rules: Iterable[tuple[str, str]]) -> str:
    return "".join(f".hotloop {selector}{{{looks}}}" for selector, looks in rules)
