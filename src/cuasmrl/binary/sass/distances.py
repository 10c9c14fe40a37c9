"""Minimum issue distances between instructions, as mined from compiler output.

A distance is the sum of stall counts from a producer up to, not including, its consumer. The smallest
one ptxas emits for a pair of opcodes in given roles is an upper bound of what the hardware needs, hence
safe to rely on. Each row of the table carries its evidence; `cuasmrl mine` makes it.

Where nothing was seen, the answer is None: then nothing may come closer than ptxas left it.
"""

import csv
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, fields
from enum import StrEnum
from functools import lru_cache
from importlib import resources

from cuasmrl.binary.sass.accesses import DATA, GUARD
from cuasmrl.binary.sass.instruction import Instruction
from cuasmrl.binary.sass.opcodes import OPCODES, Pipe
from cuasmrl.binary.sass.registers import File, file_of
from cuasmrl.errors import CuasmrlError


class Hazard(StrEnum):
    RAW = "raw"
    """A result is read."""
    WAW = "waw"
    """A result is overwritten."""
    WAR = "war"
    """A source is overwritten, by whatever instruction."""
    SPACING = "spacing"
    """Another instruction follows in the same pipe, dependent or not."""
    STALL = "stall"
    """The smallest stall count an opcode carries."""
    RELEASE = "release"
    """A scoreboard is raised, and an instruction waits for it."""


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table: a distance that compiler output supports, how well, and where it was seen."""

    arch: int
    hazard: Hazard
    file: str
    producer: str
    producer_role: str
    consumer: str
    consumer_role: str
    distance: int
    """The smallest distance with at least three pairs at or below it."""
    smallest: int
    """The smallest of all, supported or not."""
    pairs: int
    supporting: int
    """Pairs at or below `distance`."""
    witness: str
    """One pair at `distance`."""


COLUMNS = tuple(field.name for field in fields(Row))
ANY = "*"
"""Consumer of a row that holds whoever comes next: the cause lies in the producer alone."""
_ENOUGH_PAIRS = 20
"""With fewer witnesses a pair's own minimum is mostly accident, and its group is asked as well."""

_CEILING = {File.R: 8, File.UR: 13, File.P: 14, File.UP: 14, File.B: 14}
"""A consumer never seen with a producer is given what the producer's slowest known consumer needs, and at
least this. Inferred: one cycle above the slowest class of consumer that compilers show on any chip."""

_Key = tuple[str, ...]


class Distances:
    """Answers for one chip, from the exact pair or, with few witnesses, the most careful of its relatives."""

    def __init__(self, arch: int, rows: Iterable[Row]):
        self.arch = arch
        self._exact: dict[_Key, Row] = {}
        self._group: dict[_Key, int] = {}
        self._floor: dict[_Key, int] = {}
        self._seen: dict[_Key, int] = defaultdict(int)
        self._widest: dict[_Key, int] = {}
        slowest: dict[_Key, int] = defaultdict(int)
        witnesses: dict[_Key, int] = defaultdict(int)
        for row in rows:
            if row.arch != arch:
                continue
            self._exact[
                row.hazard, row.file, row.producer, row.producer_role, row.consumer, row.consumer_role
            ] = row
            group = (
                row.hazard,
                row.file,
                row.producer,
                row.producer_role,
                _pipe(row.consumer),
                row.consumer_role,
            )
            if row.pairs >= _ENOUGH_PAIRS:
                self._group[group] = max(self._group.get(group, 0), row.distance)
            if row.hazard is Hazard.RAW:
                kind = (row.file, _pipe(row.producer), _kind(row.consumer_role))
                self._floor[kind] = min(self._floor.get(kind, row.smallest), row.smallest)
                self._seen[row.file, row.producer, _pipe(row.consumer), _kind(row.consumer_role)] += row.pairs
                producer = (row.file, row.producer)
                witnesses[producer] += row.pairs
                slowest[producer] = max(slowest[producer], row.distance, _CEILING[File(row.file)])
            if row.consumer == ANY and row.pairs >= _ENOUGH_PAIRS:
                alike = _pipe(row.producer) if row.hazard is Hazard.SPACING else row.file
                self._widest[row.hazard, alike] = max(self._widest.get((row.hazard, alike), 1), row.distance)
        self._slowest = {key: slowest[key] for key, pairs in witnesses.items() if pairs >= _ENOUGH_PAIRS}

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
        file = file_of(register)
        if hazard is Hazard.WAR:
            known = self._pooled(hazard, file, producer, producer_role)
            return self._widest.get((hazard, file)) if known is None else known
        consumer_key = consumer.timing_key
        exact = self._exact.get(
            (hazard, file, producer.timing_key, producer_role, consumer_key, consumer_role)
        )
        if exact is not None and exact.pairs >= _ENOUGH_PAIRS:
            return exact.distance
        group = self._group.get(
            (hazard, file, producer.timing_key, producer_role, _pipe(consumer_key), consumer_role)
        )
        if group is None:
            # What every reader can read may also be overwritten.
            group = self._slowest.get((file, producer.timing_key), _CEILING[file] if file is File.B else None)
        if exact is None or group is None:
            return group if exact is None else exact.distance
        return min(exact.distance, group)

    def floor(self, producer: Instruction, consumer: Instruction, register: int, role: str) -> int:
        """Sooner than this no compiler was seen to read a result of the producer's pipe (as guard, or not).

        0 where producer and consumer are too rarely seen together to tell.
        """
        file, kind = file_of(register), _kind(role)
        seen = self._seen.get((file, producer.timing_key, _pipe(consumer.timing_key), kind), 0)
        return self._floor[file, _pipe(producer.timing_key), kind] if seen >= _ENOUGH_PAIRS else 0

    def spacing(self, first: Instruction) -> int | None:
        """Cycles from an instruction to the next one in its pipe, dependent or not.

        Branches, and engines beside the warp, are no pipes that instructions queue up in.
        """
        if _pipe(first.timing_key) in (Pipe.BRANCH, Pipe.ASYNC):
            return 1
        known = self._pooled(Hazard.SPACING, "", first)
        return self._widest.get((Hazard.SPACING, _pipe(first.timing_key))) if known is None else known

    def minimum_stall(self, instruction: Instruction) -> int | None:
        """The smallest stall count ptxas gives this opcode."""
        return self._pooled(Hazard.STALL, "", instruction)

    def release(self, setter: Instruction) -> int | None:
        """Cycles from raising a scoreboard to the first instruction that waits for it."""
        known, widest = self._pooled(Hazard.RELEASE, "", setter), self._widest.get((Hazard.RELEASE, ""))
        return widest if known is None else known if widest is None else min(known, widest)

    def _pooled(self, hazard: Hazard, file: str, producer: Instruction, role: str = "") -> int | None:
        row = self._exact.get((hazard, file, producer.timing_key, role, ANY, ""))
        return None if row is None else row.distance


def _kind(role: str) -> str:
    return GUARD if role == GUARD else DATA


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
                    arch=int(line["arch"]),
                    hazard=Hazard(line["hazard"]),
                    file=line["file"],
                    producer=line["producer"],
                    producer_role=line["producer_role"],
                    consumer=line["consumer"],
                    consumer_role=line["consumer_role"],
                    distance=int(line["distance"]),
                    smallest=int(line["smallest"]),
                    pairs=int(line["pairs"]),
                    supporting=int(line["supporting"]),
                    witness=line["witness"],
                )
            )
        except (ValueError, TypeError) as error:
            raise CuasmrlError(
                f"{source}, line {number}: {error}; regenerate it with cuasmrl mine"
            ) from error
    return rows


@lru_cache
def _shipped() -> tuple[Row, ...]:
    table = resources.files("cuasmrl.binary.sass") / "data" / "distances.csv"
    return tuple(read_rows(table.read_text(encoding="utf-8").splitlines(), "the shipped distance table"))


@lru_cache
def distances(arch: int) -> Distances:
    """The shipped table for one chip. Siblings of a mined chip have no rows: nothing gets tighter there."""
    return Distances(arch, _shipped())
