"""The numbers of a chip: one file each, every number with unit, range, certainty and source."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache
from importlib import resources
from importlib.resources.abc import Traversable
from io import StringIO

from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.chips import CHIPS

SWITCH = "switch"
CHOICE = "choice"
"""The unit of a number that says which of several mechanisms or sizes it is: `choice 0 1 2`."""
COLUMNS = ("parameter", "value", "unit", "low", "high", "certainty", "source")


class Certainty(StrEnum):
    MEASURED = "measured"
    """On this chip, and published."""
    MINED = "mined"
    """Read off what ptxas emits for it."""
    INFERRED = "inferred"
    """From measurements of another kind, or of a sister chip."""
    ASSUMED = "assumed"
    """Nothing is known; the range is wide."""


@dataclass(frozen=True)
class Number:
    value: float
    unit: str
    low: float
    high: float
    certainty: Certainty
    source: str

    @property
    def choices(self) -> tuple[float, ...]:
        """The only values it may have; none if it may have any in its range."""
        kind, *values = self.unit.split()
        if kind == SWITCH:
            return (0.0, 1.0)
        return tuple(float(value) for value in values) if kind == CHOICE else ()

    def allows(self, value: float) -> bool:
        return not self.choices or value in self.choices


class Parameters(Mapping[str, float]):
    """Values by name; an unknown name is an error that says what is missing."""

    def __init__(self, chip: str, numbers: Mapping[str, Number]) -> None:
        self.chip = chip
        self.numbers = dict(numbers)

    def __getitem__(self, name: str) -> float:
        try:
            return self.numbers[name].value
        except KeyError:
            raise CuasmrlError(
                f"The timing data of {self.chip} has no {name!r}; "
                "add a line with its source to the chip's file."
            ) from None

    def __contains__(self, name: object) -> bool:
        return name in self.numbers

    def __iter__(self) -> Iterator[str]:
        return iter(self.numbers)

    def __len__(self) -> int:
        return len(self.numbers)

    def cycles(self, name: str) -> int:
        """A whole number of cycles."""
        return round(self[name])

    def with_values(self, changes: Mapping[str, float]) -> Parameters:
        """The same chip with some numbers changed; the names must exist."""
        numbers = dict(self.numbers)
        for name, value in changes.items():
            old = numbers.get(name)
            if old is None:
                self[name]  # raises
                raise AssertionError
            if not old.allows(value):
                raise CuasmrlError(
                    f"{name} of {self.chip} cannot be {value:g}: it is one of "
                    f"{', '.join(f'{choice:g}' for choice in old.choices)}."
                )
            numbers[name] = replace(old, value=value)
        return Parameters(self.chip, numbers)

    def overridden(self, chip: str, own: Parameters) -> Parameters:
        """The numbers of a chip that has these but for some of its own; the names must exist."""
        for name in own:
            self[name]
        numbers = {**self.numbers, **own.numbers}
        _check_wholes(chip, numbers)
        return Parameters(self.chip, numbers)


@lru_cache
def chips_with_data() -> tuple[str, ...]:
    """Short names of the chips that have a file of all numbers."""
    stems = (file.name.removesuffix(".csv") for file in _folder().iterdir())
    return tuple(sorted(stem for stem in stems if _silicon(stem) == stem))


@lru_cache
def load_parameters(chip: str) -> Parameters:
    """The numbers of a chip, by its short name.

    A chip of another's silicon has its numbers, but for those that stand in a file of its own.
    """
    silicon = _silicon(chip)
    file = _folder() / f"{silicon}.csv"
    if not file.is_file():
        raise CuasmrlError(
            f"there is no timing data for {silicon}, so nothing can be timed on it; choose one of "
            f"{', '.join(chips_with_data())}"
        )
    shared = parse_parameters(silicon, file.read_text("utf-8"))
    own = _folder() / f"{chip}.csv"
    if chip == silicon or not own.is_file():
        return shared
    return shared.overridden(chip, parse_parameters(chip, own.read_text("utf-8")))


def _folder() -> Traversable:
    return resources.files("cuasmrl.gpu.timing") / "chips"


def _silicon(chip: str) -> str:
    return (CHIPS[chip].silicon if chip in CHIPS else None) or chip


def parse_parameters(chip: str, text: str) -> Parameters:
    reader = csv.DictReader(StringIO(text))
    if tuple(reader.fieldnames or ()) != COLUMNS:
        raise CuasmrlError(f"The timing data of {chip} must have the columns {', '.join(COLUMNS)}.")
    numbers: dict[str, Number] = {}
    for line, row in enumerate(reader, 2):
        name = row["parameter"]
        where = f"Line {line} of the timing data of {chip} ({name})"
        try:
            value, low, high = (float(row[column]) for column in ("value", "low", "high"))
            certainty = Certainty(row["certainty"])
        except (TypeError, ValueError) as error:
            raise CuasmrlError(f"{where} is not understood: {error}.") from error
        if not (math.isfinite(value) and 0 <= low <= value <= high):
            raise CuasmrlError(f"{where}: {value} does not lie in {low} to {high}, or is negative.")
        if name in numbers or not row["source"] or not row["unit"]:
            raise CuasmrlError(f"{where} stands twice, or lacks its unit or source.")
        number = Number(value, row["unit"], low, high, certainty, row["source"])
        _check_choices(number, where)
        numbers[name] = number
    _check_wholes(chip, numbers)
    return Parameters(chip, numbers)


# A part and what it is part of; and what is near, and what lies behind it.
_AT_MOST = (
    ("l2_bytes", "l2_chip_bytes"),
    ("l2_written_bytes", "l2_chip_bytes"),
    ("dram_mixed_efficiency", "dram_efficiency"),
    ("copy_bytes", "shared_bytes"),
    ("l2_latency", "l2_far_latency"),
    ("l2_latency", "dram_latency"),
)


def _check_wholes(chip: str, numbers: Mapping[str, Number]) -> None:
    """Refuse a file that contradicts itself."""
    for name, number in numbers.items():
        if number.unit == "share" and number.high > 1:
            raise CuasmrlError(
                f"The timing data of {chip} contradicts itself: {name} is a share, and {number.high:g} "
                "is more than the whole; correct the chip's file."
            )
    for part, whole in _AT_MOST:
        if part in numbers and whole in numbers and numbers[part].value > numbers[whole].value:
            raise CuasmrlError(
                f"The timing data of {chip} contradicts itself: {part} is {numbers[part].value:g} "
                f"{numbers[part].unit.split()[0]}, more than {whole} with {numbers[whole].value:g}; "
                "correct the chip's file."
            )


def _check_choices(number: Number, where: str) -> None:
    """One of several values has to be one of them, and the range to go from the least to the largest."""
    try:
        choices = number.choices
    except ValueError as error:
        raise CuasmrlError(f"{where} is not understood: {error}.") from error
    if number.unit.split()[0] == CHOICE and len(choices) < 2:
        raise CuasmrlError(f"{where} is a choice, but its unit does not name two values or more.")
    if not number.allows(number.value):
        raise CuasmrlError(f"{where}: {number.value:g} is none of {', '.join(f'{c:g}' for c in choices)}.")
    if number.unit.split()[0] == CHOICE and (number.low, number.high) != (min(choices), max(choices)):
        raise CuasmrlError(f"{where}: its range must go from the least of its values to the largest.")
