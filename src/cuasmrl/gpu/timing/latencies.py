"""When results of fixed latency can be read and overwritten, by numbers of the chips.

The model is that of a pipeline. A result stands in its register some cycles after its producer issued; a
reader takes its operands some cycles after it issued; some pipes pass results on before they stand in the
register. The numbers are in `latencies.csv`, by classes of instructions, each with range, certainty and
source. Published measurements and compiler output mined by class are sources; the table of distances
(`cuasmrl.binary.sass.distances`), which the board relies on, is not, so that its errors can be seen here.

Lower ends count: a latency that is claimed is one that no compiler goes below. Where a class has no number,
nothing is claimed.
"""

from __future__ import annotations

import csv
import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from enum import StrEnum
from functools import cache
from importlib import resources
from itertools import product

from cuasmrl.binary.sass import DATA, GUARD, OPCODES
from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.timing.parameters import Certainty, Number

COLUMNS = (
    "chips", "kind", "file", "first", "second", "value", "unit", "low", "high", "certainty", "source",
)  # fmt: skip
EVERYBODY = "*"


class Kind(StrEnum):
    """What a number says; cycles are counted from issue."""

    RESULT = "result"
    """The result of the first stands in the register."""
    READ = "read"
    """The second takes its operands."""
    FORWARD = "forward"
    """From first to second where the result is passed on, whatever the other two say."""
    HELD = "held"
    """From first to second, which overwrites a source of the first."""
    OVERWRITE = "overwrite"
    """From first to second, which overwrites the result of the first; without one, result times decide."""


@dataclass(frozen=True, slots=True)
class Latency:
    """One line of the file."""

    chips: frozenset[int]
    kind: Kind
    file: str
    first: tuple[str, ...]
    """Instructions that it holds for: opcode with modifiers, opcode, pipe or `*`; behind a colon the role."""
    second: tuple[str, ...]
    number: Number

    def as_dict(self) -> dict[str, object]:
        return {
            "chips": sorted(self.chips), "kind": str(self.kind), "file": self.file, "first": self.first,
            "second": self.second, **asdict(self.number),
        }  # fmt: skip

    @property
    def least(self) -> int:
        return math.floor(self.number.low)

    @property
    def most(self) -> int:
        return math.ceil(self.number.high)


class Latencies:
    """Answers for one chip, in cycles from issue to issue; None where nothing is claimed."""

    def __init__(self, arch: int, rows: Iterable[Latency]) -> None:
        self.arch = arch
        self._rows: dict[tuple[Kind, str, str, str], Latency] = {}
        self._known: dict[tuple[Kind, str], tuple[set[str], set[str]]] = defaultdict(lambda: (set(), set()))
        for row in rows:
            if arch in row.chips:
                firsts, seconds = self._known[row.kind, row.file]
                firsts.update(row.first)
                seconds.update(row.second)
                for first, second in product(row.first, row.second):
                    self._rows[row.kind, row.file, first, second] = row
        self._chains: dict[tuple[Kind, str, int, str, str], tuple[str, ...]] = {}

    def __bool__(self) -> bool:
        return bool(self._rows)

    def read_after(self, file: str, producer: str, role: str, reader: str, reader_role: str) -> int | None:
        """From a producer to who reads its result."""
        match self.behind_a_read(file, producer, role, reader, reader_role):
            case (passed_on,):
                return passed_on.least
            case (result, read):
                return max(1, result.least - read.most)
        return None

    def behind_a_read(
        self, file: str, producer: str, role: str, reader: str, reader_role: str
    ) -> tuple[Latency, ...]:
        """The numbers that decide: one where the result is passed on, else result and read, or none."""
        passed_on = self._pair(Kind.FORWARD, file, producer, role, reader, reader_role)
        if passed_on is not None:
            return (passed_on,)
        result = self._result(file, producer, role)
        read = self._find(Kind.READ, file, 1, reader, reader_role)
        return () if result is None or read is None else (result, read)

    def overwrite_after(
        self, file: str, producer: str, role: str, writer: str, writer_role: str
    ) -> int | None:
        """From a producer to who overwrites its result: the newer one must be the last to arrive."""
        pair = self._pair(Kind.OVERWRITE, file, producer, role, writer, writer_role)
        if pair is not None:
            return pair.least
        older, newer = self._result(file, producer, role), self._result(file, writer, writer_role)
        if older is None or newer is None:
            return None
        return max(1, older.least - newer.most + 1)

    def free_after(self, file: str, reader: str, role: str, writer: str) -> int | None:
        """From a reader to who overwrites its source."""
        pair = self._pair(Kind.HELD, file, reader, role, writer, DATA)
        return None if pair is None else pair.least

    def _result(self, file: str, key: str, role: str) -> Latency | None:
        return self._find(Kind.RESULT, file, 0, key, role)

    def _find(self, kind: Kind, file: str, side: int, key: str, role: str) -> Latency | None:
        for name in self._chain(kind, file, side, key, role):
            return self._rows[kind, file, *((name, "") if side == 0 else ("", name))]
        return None

    def _pair(self, kind: Kind, file: str, first: str, role: str, second: str, other: str) -> Latency | None:
        """The row for the two that is closest to the first, and then to the second."""
        for one in self._chain(kind, file, 0, first, role):
            for two in self._chain(kind, file, 1, second, other):
                row = self._rows.get((kind, file, one, two))
                if row is not None:
                    return row
        return None

    def _chain(self, kind: Kind, file: str, side: int, key: str, role: str) -> tuple[str, ...]:
        """Names of an instruction in some role that the file has numbers for, the closest first."""
        place = (kind, file, side, key, role)
        if place not in self._chains:
            known = self._known[kind, file][side]
            self._chains[place] = tuple(name for name in _names(key, role) if name in known)
        return self._chains[place]


def _names(key: str, role: str) -> Iterable[str]:
    """`HMMA.16816.F32`, `HMMA.16816`, `HMMA`, its pipe, everybody; each with its role before without.

    A guard is read at another time than operands are, so what is said of operands says nothing of it.
    """
    parts = key.split(".")
    opcode = OPCODES.get(parts[0])
    names = [".".join(parts[:n]) for n in range(len(parts), 0, -1)]
    for name in [*names, *([str(opcode.pipe)] if opcode else []), EVERYBODY]:
        if role != DATA:
            yield f"{name}:{role}"
        if role != GUARD:
            yield name


def parse_latencies(text: str, source: str) -> tuple[Latency, ...]:
    reader = csv.DictReader(text.splitlines())
    if tuple(reader.fieldnames or ()) != COLUMNS:
        raise CuasmrlError(f"{source} must have the columns {', '.join(COLUMNS)}.")
    rows: list[Latency] = []
    taken: set[tuple[int, Kind, str, str, str]] = set()
    for line, row in enumerate(reader, 2):
        where = f"Line {line} of {source}"
        try:
            latency = _latency(row)
        except (KeyError, TypeError, ValueError) as error:
            raise CuasmrlError(f"{where} is not understood: {error}.") from error
        number = latency.number
        if not 0 <= number.low <= number.value <= number.high:
            raise CuasmrlError(f"{where}: {number.value} does not lie in {number.low} to {number.high}.")
        if not number.unit or not number.source or not latency.chips:
            raise CuasmrlError(f"{where} lacks its unit, source or chips.")
        places = set(product(latency.chips, [latency.kind], [latency.file], latency.first, latency.second))
        if places & taken:
            raise CuasmrlError(f"{where} stands twice.")
        taken |= places
        rows.append(latency)
    return tuple(rows)


def _latency(row: dict[str, str]) -> Latency:
    value, low, high = (float(row[column]) for column in ("value", "low", "high"))
    number = Number(value, row["unit"], low, high, Certainty(row["certainty"]), row["source"])
    chips = frozenset(int(arch) for arch in row["chips"].split())
    first, second = (tuple(row[column].split()) or ("",) for column in ("first", "second"))
    return Latency(chips, Kind(row["kind"]), row["file"], first, second, number)


@cache
def shipped_latencies() -> tuple[Latency, ...]:
    file = resources.files("cuasmrl.gpu.timing") / "latencies.csv"
    return parse_latencies(file.read_text(encoding="utf-8"), "latencies.csv")


@cache
def latencies(arch: int) -> Latencies:
    """The numbers of one chip; of a chip without any, nothing is claimed."""
    return Latencies(arch, shipped_latencies())
