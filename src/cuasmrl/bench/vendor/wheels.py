"""The public wheels of the campaign, by name and version."""

import csv
import re
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from io import StringIO
from pathlib import Path

WHEELS = "wheels"
"""Where they lie below the directory of the campaign."""


@dataclass(frozen=True)
class Wheel:
    name: str
    version: str
    python: str
    """Version of Python that the wheel is for."""
    platform: str
    """Tag of the platform that the wheel is for."""
    licence: str
    """Open ones only: others often forbid to disassemble."""
    note: str

    def file_in(self, directory: Path) -> Path | None:
        """The wheel in a directory of wheels, if it is there."""
        # The spelling of names in files is that of the packaging standard: runs of -, _ and . are one _.
        name = re.sub(r"[-_.]+", "_", self.name).lower()
        return next(iter(sorted(directory.glob(f"{name}-{self.version}-*.whl"))), None)


@lru_cache
def wheels() -> tuple[Wheel, ...]:
    text = (resources.files("cuasmrl.bench.vendor") / "wheels.csv").read_text("utf-8")
    return tuple(Wheel(**row) for row in csv.DictReader(StringIO(text)))


def title(path: Path) -> str:
    """Name and version of a wheel, from the name of its file."""
    return "-".join(path.name.split("-")[:2])
