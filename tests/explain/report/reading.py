"""A page as a program reads it."""

import json
import re
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any


@dataclass
class Page(HTMLParser):
    """Elements as (tag, attributes, text inside), in the order in which they end; and the embedded data."""

    text: str
    found: list[tuple[str, dict[str, str], str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()
        self._open: list[tuple[str, dict[str, str], list[str]]] = []
        self.feed(self.text)

    def __hash__(self) -> int:
        return id(self)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("meta", "link", "rect", "path", "br"):
            self.found.append((tag, {k: v or "" for k, v in attrs}, ""))
        else:
            self._open.append((tag, {k: v or "" for k, v in attrs}, []))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, {k: v or "" for k, v in attrs}, ""))

    def handle_data(self, data: str) -> None:
        for _, _, inside in self._open:
            inside.append(data)

    def handle_endtag(self, tag: str) -> None:
        assert self._open, f"</{tag}> closes nothing"
        opened, attributes, inside = self._open.pop()
        assert opened == tag, f"<{opened}> is closed by </{tag}>"
        self.found.append((tag, attributes, "".join(inside)))

    def all(self, tag: str) -> list[tuple[dict[str, str], str]]:
        return [(attributes, inside) for name, attributes, inside in self.found if name == tag]

    def one(self, name: str) -> str:
        """The text of the element with an id."""
        (inside,) = (inside for _, attributes, inside in self.found if attributes.get("id") == name)
        return re.sub(r"\s+", " ", inside).strip()

    @property
    def data(self) -> Any:
        return json.loads(self.one("data"))
