"""What the doctor says: a fact, and where something should be done, what."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any


class Level(StrEnum):
    OK = "ok"
    NOTE = "note"
    """Good to know; nothing is wrong."""
    ACTION = "action"
    """Somebody should do something."""


@dataclass(frozen=True)
class Finding:
    topic: str
    subject: str
    level: Level
    text: str
    advice: str = ""

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Surroundings:
    """What is examined: the environment of the process, as a program started from it would get it."""

    environment: Mapping[str, str]

    def get(self, name: str) -> str:
        return self.environment.get(name, "")
