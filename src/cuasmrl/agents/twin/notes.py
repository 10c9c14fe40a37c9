"""What an agent with a twin leaves behind: a line for each batch and fit, and what it believes in the end."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cuasmrl.files import write_text
from cuasmrl.game import Clock

if TYPE_CHECKING:
    from cuasmrl.agents.twin.beliefs import Beliefs, Fit
    from cuasmrl.agents.twin.trust import Trust

ROUNDS, BELIEFS = "twin.jsonl", "beliefs.json"


class Notes:
    def __init__(self, place: Path | None) -> None:
        self.place = place

    def say(self, sentence: str) -> None:
        warnings.warn(f"cuasmrl: {sentence}", RuntimeWarning, stacklevel=3)
        self._line({"note": sentence})

    def round(self, clock: Clock, trust: Trust) -> None:
        self._line({"spent": clock.spent, "gain": clock.gain, "length": trust.length, "trust": trust.value})

    def fit(self, fit: Fit) -> None:
        self._line({"noise": fit.noise, "moved": fit.moved})

    def keep_beliefs(self, beliefs: Beliefs) -> None:
        pass

    def _line(self, data: dict[str, Any]) -> None:
        if self.place is None:
            return
        self.place.mkdir(parents=True, exist_ok=True)
        with (self.place / ROUNDS).open("a", encoding="utf-8") as file:
            file.write(json.dumps(data) + "\n")
