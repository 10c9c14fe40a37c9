"""The table of distances beside the latencies of the chips: where does it allow less than the model needs?

Board and checker ask the table, the sanitizer asks the latencies. A pair for which the table answers less is
an error in one of the two. Nothing is replayed, so chips without timing data are compared as well.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import NamedTuple

from cuasmrl.binary.sass import ANY, OPCODES, Distances, File, Hazard, Row
from cuasmrl.gpu.timing.latencies import Latencies, latencies

HAZARDS = (Hazard.RAW, Hazard.WAW, Hazard.WAR)
_LATE = "late"
"""Role of a result that is written when a scoreboard says so."""


class Pair(NamedTuple):
    """Two instructions as a row of the table names them."""

    hazard: Hazard
    file: str
    producer: str
    producer_role: str
    consumer: str
    consumer_role: str


@dataclass(frozen=True)
class Disagreement:
    """A pair that one side lets come closer than the model."""

    arch: int
    pair: Pair
    cycles: int
    latency: int
    witness: str
    """Where it was seen; empty for an answer without a row of its own."""

    def __str__(self) -> str:
        hazard, file, *names = self.pair
        first, second = (" ".join(filter(None, names[k : k + 2])) for k in (0, 2))
        seen = f" ({self.witness})" if self.witness else ""
        return f"sm_{self.arch} {hazard} {file} {first} > {second}: {self.cycles} < {self.latency}{seen}"

    def as_dict(self) -> dict[str, int | str]:
        pair = {name: str(value) for name, value in self.pair._asdict().items()}
        return {
            "arch": self.arch, **pair, "cycles": self.cycles, "latency": self.latency,
            "witness": self.witness,
        }  # fmt: skip


@dataclass(frozen=True)
class Comparison:
    """One chip and hazard."""

    arch: int
    hazard: Hazard
    rows: int
    """Rows of the table."""
    pairs: int
    """All pairs of producers and consumers in these rows, seen together or not."""
    claimed: int
    """Pairs that both have an answer for."""
    equal: int
    below: tuple[Disagreement, ...]
    """Pairs for which the table has the smaller one."""

    def as_dict(self) -> dict[str, object]:
        return {
            "arch": self.arch, "hazard": str(self.hazard), "rows": self.rows, "pairs": self.pairs,
            "claimed": self.claimed, "equal": self.equal, "below": [one.as_dict() for one in self.below],
        }  # fmt: skip


def latency_of(times: Latencies, pair: Pair) -> int | None:
    """What the model needs between two instructions; None where it makes no claim.

    Of a class of overwriters it is what the first to write needs: what the table allows it allows to each.
    """
    file, first, second = pair.file, pair[2:4], pair[4:6]
    match pair.hazard:
        case Hazard.RAW:
            return times.read_after(file, *first, *second)
        case Hazard.WAW:
            return times.overwrite_after(file, *first, *second)
        case Hazard.WAR:
            return max(_free_after(times, pair), default=0) or None
    return None


def _free_after(times: Latencies, pair: Pair) -> list[int]:
    """For each of a class of overwriters; 0 for one that nothing is claimed of."""
    file, first = pair.file, (pair.producer, pair.producer_role)
    overwriters = () if pair.consumer_role == _LATE else _overwriters(pair.consumer, times.arch)
    return [times.free_after(file, *first, overwriter) or 0 for overwriter in overwriters]


@cache
def _overwriters(name: str, arch: int) -> tuple[str, ...]:
    """Who is meant: an instruction, or with a `*` in front all of a pipe that do not write late."""
    if not name.startswith(ANY):
        return (name,)
    pipe = name.removeprefix(ANY)
    return tuple(o.name for o in OPCODES.values() if o.pipe == pipe and not o.is_variable(arch))


def compare(table: Distances, rows: Iterable[Row]) -> list[Comparison]:
    """Every row of the table's chip, and every other pair of a producer and a consumer in these rows."""
    times = latencies(table.arch)
    mine = {_pair(row): row for row in rows if row.arch == table.arch and row.hazard in HAZARDS}
    return [_compare_hazard(table, times, hazard, mine) for hazard in HAZARDS]


def _compare_hazard(table: Distances, times: Latencies, hazard: Hazard, rows: dict[Pair, Row]) -> Comparison:
    pairs = claimed = equal = 0
    below: list[Disagreement] = []
    for pair in _all_pairs(hazard, rows):
        pairs += 1
        answer, latency = table.answer(*pair), latency_of(times, pair)
        if answer is None or latency is None:
            continue
        claimed += 1
        equal += answer == latency
        if answer < latency:
            witness = rows[pair].witness if pair in rows else ""
            below.append(Disagreement(table.arch, pair, answer, latency, witness))
    count = sum(pair.hazard is hazard for pair in rows)
    return Comparison(table.arch, hazard, count, pairs, claimed, equal, tuple(below))


def _all_pairs(hazard: Hazard, rows: Iterable[Pair]) -> Iterator[Pair]:
    """Producers by consumers, file by file."""
    sides: dict[str, tuple[dict[tuple[str, str], None], dict[tuple[str, str], None]]]
    sides = defaultdict(lambda: ({}, {}))
    for pair in rows:
        if pair.hazard is hazard and pair.file != File.B:
            producers, consumers = sides[pair.file]
            producers[pair.producer, pair.producer_role] = None
            consumers[pair.consumer, pair.consumer_role] = None
    for file, (producers, consumers) in sides.items():
        for first, second in product(producers, consumers):
            yield Pair(hazard, file, *first, *second)


def closer_code(rows: Iterable[Row]) -> list[Disagreement]:
    """Pairs that compilers were seen to leave closer than the model allows: there the model is wrong."""
    found = []
    for row in rows:
        if row.hazard in HAZARDS and row.file != File.B:
            times, pair = latencies(row.arch), _pair(row)
            # Which one of a class it was is not known.
            least = min(_free_after(times, pair), default=0) if row.hazard is Hazard.WAR else None
            latency = latency_of(times, pair) if least is None else least
            if latency is not None and row.smallest < latency:
                found.append(Disagreement(row.arch, _pair(row), row.smallest, latency, row.witness))
    return found


def _pair(row: Row) -> Pair:
    return Pair(
        row.hazard, row.file, row.producer, row.producer_role, row.consumer, row.consumer_role
    )  # fmt: skip
