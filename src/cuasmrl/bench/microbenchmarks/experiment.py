"""The table of experiments."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from io import StringIO
from typing import NamedTuple


class Launched(NamedTuple):
    """What is executed: experiments that differ only in their reading share it."""

    source: str
    kernel: str
    blocks: int
    threads: int
    inputs: str
    patch: str


@dataclass(frozen=True)
class Experiment:
    """How a published number is made again."""

    row: str
    """Its id in `timing/published.csv`."""
    source: str
    """The file of CUDA C++, without its ending."""
    kernel: str
    blocks: int
    """Of the grid: one, or one for every SM."""
    threads: int
    """Of a block."""
    inputs: str
    """What it is given: a line of `inputs.py`."""
    patch: str
    """What is changed in its words: a line of `patches.py`; empty if nothing is."""
    reading: str
    """How the figure is read: a line of `readings.py`."""
    per: float
    """Rounds, instructions or loads that the time is divided by."""
    unmet: str
    """Why the model cannot meet it, for what it does not have; empty if it can be compared."""

    @property
    def launched(self) -> Launched:
        return Launched(self.source, self.kernel, self.blocks, self.threads, self.inputs, self.patch)


@lru_cache
def experiments() -> dict[str, Experiment]:
    """Experiments by the row that they make."""
    text = (resources.files(__package__) / "experiments.csv").read_text()
    found = {}
    for line in csv.DictReader(StringIO(text)):
        # `1024` is one block, `128 x 1024` are 128.
        *blocks, threads = (int(number) for number in line["threads"].split(" x "))
        for row in line["rows"].split():
            found[row] = Experiment(
                row,
                line["source"],
                line["kernel"],
                blocks[0] if blocks else 1,
                threads,
                line["inputs"],
                line["patch"],
                line["reading"],
                float(line["per"]),
                line["unmet"],
            )
    return found
