"""The table of distances beside the latencies of the sanitizer, and these beside compiler output."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from pathlib import Path

from rich.table import Table

from cuasmrl.binary.sass import Hazard, Row, distances
from cuasmrl.binary.sass.distances import joined, read_rows
from cuasmrl.gpu.timing.comparison import Comparison, Disagreement, closer_code, compare
from cuasmrl.gpu.timing.latencies import Latency, latencies, shipped_latencies
from cuasmrl.schedule.mining import Mined, mine
from cuasmrl.workloads import ARCHS


@cache
def table_rows() -> tuple[Row, ...]:
    """The rows behind `distances`: of our own kernels, and of libraries."""
    data = resources.files("cuasmrl.binary.sass") / "data"
    own, vendors = (
        read_rows((data / name).read_text(encoding="utf-8").splitlines(), name)
        for name in ("distances.csv", "vendor.csv")
    )
    return tuple(joined(own, vendors))


def compare_table(archs: Iterable[int] = ARCHS) -> list[Comparison]:
    """Every pair that the shipped table answers for, chip by chip and hazard by hazard."""
    return [comparison for arch in archs for comparison in compare(distances(arch), table_rows())]


def compare_code(
    directory: Path, jobs: int, advance: Callable[[int, int], None] | None
) -> tuple[Mined, list[Disagreement]]:
    """Pairs in the code below a directory that stand closer than the latencies allow."""
    mined = mine(directory, jobs, advance)
    # A row names a pair at its distance; wanted is one that stands closest.
    rows = (
        replace(row, witness=mined.evidence[key].places[row.smallest])
        for key, row in zip(sorted(mined.evidence), mined.rows, strict=True)
    )
    return mined, closer_code(rows)


@dataclass(frozen=True)
class Witnesses:
    """What some code says of a number that a result is read by."""

    latency: Latency
    pairs: int
    """Pairs that it decides about, alone or with another."""
    at: int
    """Those that stand exactly as far apart as it says."""

    def as_dict(self) -> dict[str, object]:
        return {**self.latency.as_dict(), "pairs": self.pairs, "pairs_at_it": self.at}


def witnesses(mined: Mined) -> list[Witnesses]:
    """How the sources of mined numbers count, in the order of the file."""
    pairs, at = Counter[Latency](), Counter[Latency]()
    for (arch, hazard, *names), evidence in mined.evidence.items():
        if hazard is Hazard.RAW:
            times = latencies(arch)
            cycles = times.read_after(*names)
            for row in times.behind_a_read(*names):
                pairs[row] += evidence.counts.total()
                at[row] += evidence.counts[cycles or 0]
    return [Witnesses(row, pairs[row], at[row]) for row in shipped_latencies() if row in pairs]


def latencies_table(comparisons: Iterable[Comparison]) -> Table:
    table = Table(title="Answers of the table of distances beside the model's latencies")
    table.add_column("chip")
    table.add_column("hazard")
    for heading in ("rows", "pairs", "compared", "equal", "below"):
        table.add_column(heading, justify="right")
    for one in comparisons:
        counts = (one.rows, one.pairs, one.claimed, one.equal, len(one.below))
        table.add_row(f"sm_{one.arch}", one.hazard, *map(str, counts))
    return table
