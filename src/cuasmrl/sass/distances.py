"""Minimum issue distances between instructions, as mined from compiler output.

A distance is the sum of stall counts from a producer up to, not including, its consumer. The smallest
one ptxas emits for a pair of opcodes in given roles is an upper bound of what the hardware needs, hence
safe to rely on. Each row of the table carries its evidence; `cuasmrl mine` makes it.

Where nothing was seen, the answer is None: then nothing may come closer than ptxas left it.
"""

import csv
from collections.abc import Iterable
from dataclasses import dataclass, fields
from enum import StrEnum
from functools import lru_cache
from importlib import resources

from cuasmrl.errors import CuasmrlError
from cuasmrl.sass.accesses import DATA
from cuasmrl.sass.instruction import Instruction
from cuasmrl.sass.opcodes import OPCODES
from cuasmrl.sass.registers import file_of


class Hazard(StrEnum):
    RAW = "raw"
    """A result is read."""
    WAW = "waw"
    """A result is overwritten."""
    WAR = "war"
    """A source is overwritten."""
    SPACING = "spacing"
    """Two independent instructions follow each other in one pipe."""
    STALL = "stall"
    """The smallest stall count an opcode carries."""
    RELEASE = "release"
    """A scoreboard is raised by one instruction and waited for by the next that does so."""


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table: the smallest distance seen, and how often and where."""

    arch: int
    hazard: Hazard
    file: str
    producer: str
    producer_role: str
    consumer: str
    consumer_role: str
    distance: int
    pairs: int
    at_minimum: int
    witness: str


COLUMNS = tuple(field.name for field in fields(Row))
_FEWEST_PAIRS = 3
"""A group answer needs at least this many witnesses; a rarer pair speaks only for itself."""

_Key = tuple[str, ...]


class Distances:
    """Answers for one chip: first the exact pair, then the most careful member of its group."""

    def __init__(self, arch: int, rows: Iterable[Row]):
        self.arch = arch
        self._exact: dict[_Key, int] = {}
        self._group: dict[_Key, int] = {}
        for row in rows:
            if row.arch != arch:
                continue
            key = (row.hazard, row.file, row.producer, row.producer_role, row.consumer, row.consumer_role)
            self._exact[key] = row.distance
            if row.pairs >= _FEWEST_PAIRS:
                group = (row.hazard, row.file, row.producer, row.producer_role, _pipe(row.consumer), row.consumer_role)
                self._group[group] = max(self._group.get(group, 0), row.distance)

    def required(
        self,
        hazard: Hazard,
        producer: Instruction,
        consumer: Instruction,
        register: int,
        producer_role: str = DATA,
        consumer_role: str = DATA,
    ) -> int | None:
        """Cycles that `consumer` must issue after `producer`, or None where ptxas gave no evidence."""
        return self._look_up(
            hazard, file_of(register), producer.timing_key, producer_role, consumer.timing_key, consumer_role
        )

    def spacing(self, first: Instruction, second: Instruction) -> int | None:
        """Cycles between two instructions of one pipe, dependent or not."""
        return self._look_up(Hazard.SPACING, "", first.timing_key, "", second.timing_key, "")

    def minimum_stall(self, instruction: Instruction) -> int | None:
        """The smallest stall count ptxas gives this opcode."""
        return self._exact.get((Hazard.STALL, "", instruction.timing_key, "", "", ""))

    def release(self, setter: Instruction, waiter: Instruction) -> int | None:
        """Cycles from raising a scoreboard to the first instruction that waits for it."""
        return self._look_up(Hazard.RELEASE, "", setter.timing_key, "", waiter.timing_key, "")

    def _look_up(self, hazard: str, file: str, producer: str, p_role: str, consumer: str, c_role: str) -> int | None:
        exact = self._exact.get((hazard, file, producer, p_role, consumer, c_role))
        if exact is not None:
            return exact
        return self._group.get((hazard, file, producer, p_role, _pipe(consumer), c_role))


def _pipe(timing_key: str) -> str:
    opcode = OPCODES.get(timing_key.split(".", 1)[0])
    return opcode.pipe if opcode else ""


def read_rows(lines: Iterable[str], source: str) -> list[Row]:
    rows = []
    reader = csv.DictReader(lines)
    if tuple(reader.fieldnames or ()) != COLUMNS:
        raise CuasmrlError(f"{source} is no distance table: its columns must be {', '.join(COLUMNS)}")
    for number, line in enumerate(reader, 2):
        try:
            rows.append(
                Row(
                    int(line["arch"]), Hazard(line["hazard"]), line["file"], line["producer"], line["producer_role"],
                    line["consumer"], line["consumer_role"], int(line["distance"]), int(line["pairs"]),
                    int(line["at_minimum"]), line["witness"],
                )
            )  # fmt: skip
        except (ValueError, TypeError) as error:
            raise CuasmrlError(f"{source}, line {number}: {error}; regenerate it with cuasmrl mine") from error
    return rows


@lru_cache
def _shipped() -> tuple[Row, ...]:
    table = resources.files("cuasmrl.sass") / "data" / "distances.csv"
    return tuple(read_rows(table.read_text(encoding="utf-8").splitlines(), "the shipped distance table"))




@lru_cache
def distances(arch: int) -> Distances:
    """The shipped table for one chip. Siblings of a mined chip have no rows: nothing gets tighter there."""
    return Distances(arch, _shipped())
