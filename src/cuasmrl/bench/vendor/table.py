"""The rows of the campaign for people."""

from collections import Counter
from collections.abc import Iterator, Sequence

from rich.table import Table

from cuasmrl.bench.vendor.row import Row

_COLUMNS = (
    "cubins", "kernels", "instructions", "refused", "hazards", "unexplained", "unknown", "schedules",
    "refused", "too close", "slow", "failed", "seconds",
)  # fmt: skip
_SHOWN = 5


def vendor_table(rows: Sequence[Row]) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("wheel")
    table.add_column("chip")
    for column in _COLUMNS:
        table.add_column(column, justify="right")
    for row in rows:
        table.add_row(row.wheel, f"sm_{row.arch}", *_cells([row]))
    wheels, chips = {row.wheel for row in rows}, {row.arch for row in rows}
    table.add_row(f"{len(wheels)} wheels", f"{len(chips)} chips", *_cells(rows))
    return table


def findings(rows: Sequence[Row], shown: int = _SHOWN) -> Iterator[str]:
    """Everything that is no success, in sentences: of each kind the number and the first ones."""
    kinds: dict[str, list[str]] = {}
    counts: Counter[str] = Counter()
    for row in rows:
        counts.update({"refused": row.refused, "refused schedule": row.refused_schedules, **row.hazards})
        counts.update({"too close": row.too_close, "slow": len(row.slow), "failed": len(row.failed)})
        for kind, sentences in {**row.examples, "slow": row.slow, "failed": row.failed}.items():
            kinds.setdefault(kind, []).extend(f"{row.wheel} sm_{row.arch}, {text}" for text in sentences)
    for kind, sentences in kinds.items():
        if sentences:
            yield f"{kind}: {counts[kind]}"
            yield from (f"  {sentence}" for sentence in sentences[:shown])
    unknown = sum((Counter(row.unknown) for row in rows), Counter[str]())
    if unknown:
        yield "unknown opcodes: " + ", ".join(f"{name} {count}" for name, count in unknown.most_common())


def _cells(rows: Sequence[Row]) -> list[str]:
    numbers = [
        sum(row.cubins for row in rows),
        sum(row.kernels for row in rows),
        sum(row.instructions for row in rows),
        sum(row.refused for row in rows),
        sum(sum(row.hazards.values()) for row in rows),
        sum(row.unexplained for row in rows),
        sum(sum(row.unknown.values()) for row in rows),
        sum(row.schedules for row in rows),
        sum(row.refused_schedules for row in rows),
        sum(row.too_close for row in rows),
        sum(len(row.slow) for row in rows),
        sum(len(row.failed) for row in rows),
    ]
    return [*(f"{number:,}" for number in numbers), f"{sum(row.seconds for row in rows):.0f}"]
