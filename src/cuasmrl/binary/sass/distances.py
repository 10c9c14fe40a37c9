"""Minimum issue distances between instructions, as mined from compiler output.

A distance is the sum of stall counts from a producer up to, not including, its consumer. The smallest
one ptxas emits for a pair of opcodes in given roles is an upper bound of what the hardware needs, hence
safe to rely on. Each row of the table carries its evidence; `cuasmrl mine` makes it.

Where nothing was seen, the answer is None: then nothing may come closer than ptxas left it.
"""

import csv
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from functools import lru_cache
from importlib import resources

from cuasmrl.binary.sass.accesses import DATA, GUARD
from cuasmrl.binary.sass.instruction import Instruction
from cuasmrl.binary.sass.opcodes import OPCODES, Opcode, Order, Pipe
from cuasmrl.binary.sass.registers import File, file_of
from cuasmrl.errors import CuasmrlError


class Hazard(StrEnum):
    RAW = "raw"
    """A result is read."""
    WAW = "waw"
    """A result is overwritten."""
    WAR = "war"
    """A source is overwritten."""
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
    """The smallest distance with several pairs at or below it."""
    smallest: int
    """The smallest of all, supported or not."""
    pairs: int
    supporting: int
    """Pairs at or below `distance`."""
    witness: str
    """One pair at `distance`; of libraries, their names and versions."""

    @property
    def key(self) -> tuple[int, str, str, str, str, str, str]:
        return (
            self.arch, self.hazard, self.file, self.producer, self.producer_role, self.consumer,
            self.consumer_role,
        )  # fmt: skip


_DATA = resources.files("cuasmrl.binary.sass") / "data"
COLUMNS = tuple(field.name for field in fields(Row))
ANY = "*"
"""Consumer of a row that holds whoever comes next: the cause lies in the producer alone."""
LATE = "late"
"""Role of a result that is written when a scoreboard says so, long after its instruction has issued."""
_ENOUGH_PAIRS = 20
"""With fewer witnesses a pair's own minimum is mostly accident, and its relatives are asked as well."""

_CEILING = {File.R: 8, File.UR: 13, File.P: 14, File.UP: 14, File.B: 14}
"""A consumer never seen with a producer is given what the producer's slowest known consumer needs, and at
least this. Inferred: one cycle above the slowest class of consumer that compilers show on any chip."""
_DOUBLE_CEILING = 11
"""The same for results of double precision in R."""

_LEAST_BEFORE_OVERWRITE = {File.UR: 3}
"""Cycles that a source gets at least where few witnesses tell. Inferred: the most that compilers leave before
any overwriter of the file whose result comes at a fixed time."""

_Key = tuple[str, ...]


def overwriting_role(instruction: Instruction, role: str) -> str:
    """The role that a result has for those whose source it overwrites."""
    return LATE if instruction.declaration is None or instruction.is_variable else role


class Distances:
    """Answers for one chip: the exact pair, or, with few witnesses, the largest of all that is known of it.

    What compilers emit is an upper bound of what hardware needs. So where two pieces of evidence disagree,
    the larger one is the safe answer.
    """

    def __init__(self, arch: int, rows: Iterable[Row]):
        self.arch = arch
        self._exact: dict[_Key, Row] = {}
        self._group: dict[_Key, int] = {}
        self._floor: dict[_Key, int] = {}
        self._seen: dict[_Key, int] = defaultdict(int)
        self._widest: dict[_Key, int] = {}
        self._slowest: dict[_Key, int] = {}
        witnesses: dict[_Key, int] = defaultdict(int)
        for row in rows:
            if row.arch != arch:
                continue
            self._exact[
                row.hazard, row.file, row.producer, row.producer_role, row.consumer, row.consumer_role
            ] = row
            if row.hazard is Hazard.RAW:
                witnesses[row.file, row.producer] += row.pairs
                self._note_reader(row)
            if row.pairs >= _ENOUGH_PAIRS:
                self._note_group(row)
        self._slowest = {k: d for k, d in self._slowest.items() if witnesses[k] >= _ENOUGH_PAIRS}

    def _note_reader(self, row: Row) -> None:
        kind, producer = _kind(row.consumer_role), (row.file, row.producer)
        of_pipe = (row.file, _pipe(row.producer), kind)
        self._floor[of_pipe] = min(self._floor.get(of_pipe, row.smallest), row.smallest)
        self._seen[row.file, row.producer, _class(row.consumer), kind] += row.pairs
        known = row.distance if row.pairs >= _ENOUGH_PAIRS else row.smallest
        self._slowest[producer] = max(self._slowest.get(producer, _ceiling(row)), known)

    def _note_group(self, row: Row) -> None:
        """What relatives of a row may be given: the most careful of those with many witnesses."""
        hazard, file = row.hazard, row.file
        groups: list[_Key]
        by: _Key
        if hazard in (Hazard.RAW, Hazard.WAW):
            consumer = _class(row.consumer)
            groups = [
                (hazard, file, row.producer, row.producer_role, consumer, row.consumer_role),
                (hazard, file, _pipe(row.producer), row.consumer, row.consumer_role),
            ]
        elif hazard is Hazard.WAR:
            writer = _writer_class(row.consumer, row.consumer_role)
            by = (hazard, file, _pipe(row.producer), row.consumer, row.consumer_role)
            groups = [(hazard, file, row.producer, row.producer_role, writer), by, (hazard, file, writer)]
            if writer != LATE:
                groups.append((hazard, file, row.producer, row.producer_role))
        else:
            groups = [(hazard, _pipe(row.producer), row.consumer) if hazard is Hazard.SPACING else (hazard,)]
        for group in groups:
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
        role = overwriting_role(consumer, consumer_role) if hazard is Hazard.WAR else consumer_role
        file = file_of(register)
        return self.answer(hazard, file, producer.timing_key, producer_role, consumer.timing_key, role)

    def answer(
        self, hazard: Hazard, file: str, producer: str, producer_role: str, consumer: str, consumer_role: str
    ) -> int | None:
        """The same by the names that a row has."""
        key = (hazard, file, producer, producer_role, consumer, consumer_role)
        match hazard:
            case Hazard.RAW | Hazard.WAW:
                relatives = self._relatives(*key)
            case Hazard.WAR:
                relatives = self._overwriters(file, producer, producer_role, consumer, consumer_role)
            case Hazard.SPACING:
                if self.is_no_queue(producer):
                    return 1
                relatives = [self._group.get((hazard, _pipe(producer), consumer))]
            case Hazard.RELEASE:
                relatives = [self._group.get((hazard,))]
            case _:
                relatives = []
        return self._careful(key, relatives)

    @staticmethod
    def is_no_queue(timing_key: str) -> bool:
        """Branches, and engines beside the warp, are no pipes that instructions queue up in.

        The products of a warpgroup are: so they, ARRIVE and DEPBAR keep the spacing that compilers give them.
        """
        opcode = _opcode(timing_key)
        if opcode is not None and opcode.order is Order.PRODUCT:
            return False
        return _pipe(timing_key) in (Pipe.BRANCH, Pipe.ASYNC)

    def _relatives(
        self, hazard: str, file: str, producer: str, producer_role: str, consumer: str, consumer_role: str
    ) -> list[int | None]:
        """What consumers of the same class need from this producer, and this one from others of its pipe.

        Without any of the first, what the slowest reader of the producer needs; a producer whose readers are
        not known either has no relatives.
        """
        known = self._group.get((hazard, file, producer, producer_role, _class(consumer), consumer_role))
        if known is None:
            # What every reader can read may also be overwritten.
            known = self._slowest.get((file, producer), _CEILING[File.B] if file == File.B else None)
        if known is None:
            return []
        return [known, self._group.get((hazard, file, _pipe(producer), consumer, consumer_role))]

    def _overwriters(
        self, file: str, producer: str, producer_role: str, consumer: str, consumer_role: str
    ) -> list[int | None]:
        """What overwriters of the same class keep from this producer, and this one from others of its pipe.

        Without any, what this class and this producer keep at all. A result announced by a scoreboard comes
        long after its instruction, whoever reads the old value.
        """
        writer = _writer_class(consumer, consumer_role)
        known = self._group.get((Hazard.WAR, file, producer, producer_role, writer))
        by = self._group.get((Hazard.WAR, file, _pipe(producer), consumer, consumer_role))
        least = None if writer == LATE else _LEAST_BEFORE_OVERWRITE.get(File(file))
        if known is not None:
            return [known, by, least]
        relatives = [by, self._group.get((Hazard.WAR, file, writer))]
        if writer != LATE:
            relatives.append(self._group.get((Hazard.WAR, file, producer, producer_role)))
        return relatives if relatives.count(None) == len(relatives) else [*relatives, least]

    def _careful(self, key: _Key, relatives: Iterable[int | None]) -> int | None:
        """An exact row with many witnesses, else the largest of it and its relatives, if there are any."""
        exact = self._exact.get(key)
        if exact is not None and exact.pairs >= _ENOUGH_PAIRS:
            return exact.distance
        known = [distance for distance in relatives if distance is not None]
        if not known:
            return None
        return max(known if exact is None else [exact.distance, *known])

    def floor(self, producer: Instruction, consumer: Instruction, register: int, role: str) -> int:
        """Sooner than this no compiler was seen to read a result of the producer's pipe (as guard, or not).

        0 where producer and consumer are too rarely seen together to tell.
        """
        file, kind, reader = file_of(register), _kind(role), _class(consumer.timing_key)
        seen = self._seen.get((file, producer.timing_key, reader, kind), 0)
        if seen < _ENOUGH_PAIRS:
            return 0
        return self._floor[file, _pipe(producer.timing_key), kind]

    def spacing(self, first: Instruction, pipe: Pipe | None = None) -> int | None:
        """Cycles from an instruction to the next one in its pipe, or in another that it shares."""
        return self._of(Hazard.SPACING, first, ANY if pipe is None else ANY + pipe)

    def minimum_stall(self, instruction: Instruction) -> int | None:
        """The smallest stall count ptxas gives this opcode; None where that was rarely seen.

        None for control flow, fences and fillers too: the same opcode stalls longer in one place than in
        another (a `CALL` with and without a guard, a `NOP` that lanes meet at and one that is padding).
        """
        if instruction.declaration is None or instruction.declaration.pipe is Pipe.BRANCH:
            return None
        return self._of(Hazard.STALL, instruction)

    def release(self, setter: Instruction) -> int | None:
        """Cycles from raising a scoreboard to the first instruction that waits for it."""
        return self._of(Hazard.RELEASE, setter)

    def _of(self, hazard: Hazard, instruction: Instruction, consumer: str = ANY) -> int | None:
        return self.answer(hazard, "", instruction.timing_key, "", consumer, "")


def _ceiling(row: Row) -> int:
    least = _CEILING[File(row.file)]
    return max(least, _DOUBLE_CEILING) if _pipe(row.producer) == Pipe.FP64 else least


def _kind(role: str) -> str:
    return GUARD if role == GUARD else DATA


def _opcode(timing_key: str) -> Opcode | None:
    return OPCODES.get(timing_key.split(".", 1)[0])


def _pipe(timing_key: str) -> str:
    opcode = _opcode(timing_key)
    return opcode.pipe if opcode else ""


def _writer_class(timing_key: str, role: str) -> str:
    """Instructions that write about equally long after they issue."""
    return LATE if role == LATE else _pipe(timing_key)


def _class(timing_key: str) -> str:
    opcode = _opcode(timing_key)
    return opcode.reader_class if opcode else ""


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


def joined(own: Iterable[Row], vendors: Iterable[Row]) -> list[Row]:
    """Two tables in one. Of two rows for the same pair the larger distance counts, never less than vendors'.

    Where we have few witnesses and vendors many, ours are mostly accident, and theirs count alone.
    """
    found = {row.key: row for row in own}
    for theirs in vendors:
        ours = found.setdefault(theirs.key, theirs)
        if ours is not theirs:
            few = ours.pairs < _ENOUGH_PAIRS <= theirs.pairs
            chosen = theirs if few or theirs.distance >= ours.distance else ours
            smallest = min(ours.smallest, theirs.smallest)
            found[theirs.key] = replace(chosen, smallest=smallest, pairs=ours.pairs + theirs.pairs)
    return [found[key] for key in sorted(found)]


@lru_cache
def vendor_rows(arch: int) -> tuple[Row, ...]:
    """What libraries that users run show on a chip, as far as five pairs stand at one distance."""
    return _shipped("vendor.csv", arch)


def _shipped(name: str, arch: int) -> tuple[Row, ...]:
    """The rows of one chip: most of the time goes into reading rows, and few processes need several chips."""
    header, *lines = (_DATA / name).read_text(encoding="utf-8").splitlines()
    return tuple(
        read_rows([header, *(line for line in lines if line.startswith(f"{arch},"))], f"the shipped {name}")
    )


@lru_cache
def distances(arch: int) -> Distances:
    """The shipped table for one chip, from our own kernels and from libraries that users run.

    Siblings of a mined chip have no rows: nothing gets tighter there.
    """
    return Distances(arch, joined(_shipped("distances.csv", arch), vendor_rows(arch)))
