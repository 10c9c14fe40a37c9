"""Numbers of a page: each is looked up in the page's own data, so that the two cannot differ."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from cuasmrl.explain.report.axes import percent

FORMATS: Mapping[str, Callable[[Any], str]] = {
    "count": lambda value: f"{value:,}",
    "cycles": lambda value: f"{value:,.0f}",
    "tenths": lambda value: f"{value:,.1f}",
    "percent": percent,
    "percents": lambda value: percent(value / 100),
    "plain": str,
}


@dataclass(frozen=True)
class Figures:
    data: Any
    """What the page embeds."""

    def at(self, pointer: str) -> Any:
        """What a JSON pointer (RFC 6901) leads to."""
        found = self.data
        for step in pointer.split("/")[1:]:
            key = step.replace("~1", "/").replace("~0", "~")
            found = found[int(key)] if isinstance(found, (list, tuple)) else found[key]
        return found

    def __call__(self, pointer: str, form: str = "count") -> Markup:
        """A number in the words of a format, with where it comes from."""
        value = self.at(pointer)
        return self.shown(pointer, FORMATS[form](value))

    def shown(self, pointer: str, text: str) -> Markup:
        """A number in a text made elsewhere."""
        value = self.at(pointer)
        return Markup('<data value="{}" data-at="{}">{}</data>').format(repr(value), pointer, text)


def pointer(*steps: object) -> str:
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in steps)
