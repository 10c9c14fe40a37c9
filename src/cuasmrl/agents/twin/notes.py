"""What an agent with a twin leaves behind: a line for each batch and fit, and what it believes in the end."""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from cuasmrl.agents.twin.beliefs import Belief, Fit
from cuasmrl.agents.twin.trust import Trust
from cuasmrl.files import write_text
from cuasmrl.game import Clock

ROUNDS, BELIEFS = "twin.jsonl", "beliefs.json"


class Notes:
    def __init__(self, place: Path | None) -> None:
        """A game that is continued is played from its start, so notes from before would be there twice."""
        self.place = place
        if place is not None:
            place.mkdir(parents=True, exist_ok=True)
            (place / ROUNDS).unlink(missing_ok=True)

    def say(self, sentence: str) -> None:
        warnings.warn(f"cuasmrl: {sentence}", RuntimeWarning, stacklevel=3)
        self.remark(sentence)

    def remark(self, sentence: str) -> None:
        self._line({"note": sentence})

    def round(self, clock: Clock, trust: Trust) -> None:
        self._line(
            {
                "spent": clock.spent,
                "gain": clock.gain,
                "length": trust.length,
                "replays": trust.replays,
                "trust": trust.value,
            }
        )

    def fit(self, fit: Fit) -> None:
        self._line(asdict(fit))

    def keep_beliefs(self, beliefs: Sequence[Belief]) -> None:
        if self.place is not None and beliefs:
            rows = [asdict(belief) | {"left": belief.left} for belief in beliefs]
            write_text(self.place / BELIEFS, json.dumps(rows, indent=1) + "\n")

    def _line(self, data: dict[str, Any]) -> None:
        if self.place is not None:
            with (self.place / ROUNDS).open("a", encoding="utf-8") as file:
                file.write(json.dumps(data) + "\n")
