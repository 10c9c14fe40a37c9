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
    Reason.L2_SHARE: ("#7e03fb", "#6c12cd"),
    Reason.DRAM: ("#110a2b", "#3f09fa"),
    Reason.BARRIER: ("#1f45b5", "#4a80fa"),
    Reason.TENSOR_RESULT: ("#c65bbb", "#ee6fd0"),
    Reason.CONSTANT: ("#483f0a", "#769f41"),
    Reason.TENSOR_BUSY: ("#801073", "#8f1aae"),
    Reason.UNIT_BUSY: ("#56b4f5", "#78e8f5"),
    Reason.MEMORY_QUEUE: ("#237e4b", "#29b271"),
    Reason.REGISTER_PORT: ("#a8f59f", "#c4fac1"),
    Reason.NOT_SELECTED: ("#6b7b80", "#552a6b"),
}
"""On light and on dark; `no warp` is a reason of sub-cores only."""
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

_NUMBERS = {name: int(reason) for reason, name in REASON_NAMES.items()}


def reason_class(name: str) -> str:
    return f"r{_NUMBERS[name]}"


def style(reasons: Iterable[str]) -> str:
    """The style sheet with the colours of these reasons; it touches nothing outside the picture."""
    used = sorted(_NUMBERS[name] for name in reasons)
    light, dark = (
        [
            *((f".{name}", f"{what}:{looks[k]}") for name, (what, *looks) in _LOOKS.items()),
            *((f".r{reason}", f"color:{REASON_COLOURS[Reason(reason)][k]}") for reason in used),
        ]
        for k in (0, 1)
    )
    return f"{_rules(_TYPE)}{_rules(light)}@media (prefers-color-scheme:dark){{{_rules(dark)}}}"


def _rules(rules: Iterable[tuple[str, str]]) -> str:
    return "".join(f".hotloop {selector}{{{looks}}}" for selector, looks in rules)
