"""Reading, moving and checking: times on the largest config of each published workload."""

import random
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from cuasmrl import workloads
from cuasmrl.binary.cubin import Cubin
from cuasmrl.binary.sass import disassemble, find_nvdisasm
from cuasmrl.checker import Checker
from cuasmrl.schedule import Board

ARCH = 80
_SWAPS = 2000


@dataclass(frozen=True)
class ScheduleFigures:
    """Times in milliseconds, on one kernel."""

    kernel: str
    instructions: int
    nvdisasm: float
    """One run of the tool, by itself."""
    load: float
    """Parsing the container, reading the listing and the full analysis, nvdisasm's own time taken off."""
    swap: float
    """Median of a legal adjacent swap with the new mask."""
    shift: float
    """Median of a move to a random legal position, with the block retimed."""
    check: float
    """The checker on a rescheduled cubin, the original being analysed already."""

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def schedule(progress: Callable[[int, int], None]) -> list[ScheduleFigures]:
    """The largest config of each published workload."""
    chosen = [w for w in workloads.all() if w.published]
    figures = []
    for done, workload in enumerate(chosen, 1):
        configs = [c for c in workload.configs if workload.supports(c, ARCH) is None]
        cubins = [(c.name, Cubin.parse(workload.build(c, ARCH).cubin, c.name)) for c in configs]
        name, cubin = max(cubins, key=lambda entry: len(entry[1].kernel().words))
        figures.append(_measure(f"{workload.name} {name}", cubin))
        progress(done, len(chosen))
    return figures


def _measure(name: str, cubin: Cubin) -> ScheduleFigures:
    with TemporaryDirectory(prefix="cuasmrl-") as folder:
        path = Path(folder) / "kernel.cubin"
        cubin.save(path)
        tool = find_nvdisasm()
        nvdisasm = min(_time(lambda: tool.run(path, "-c", "-ndf")) for _ in range(3))
        whole = min(
            _time(lambda: Board(disassemble(Cubin.load(path))[cubin.kernel().name])) for _ in range(3)
        )
    listings = disassemble(cubin)
    board = Board(listings[cubin.kernel().name])
    rng = random.Random(0)
    swaps: list[float] = []
    while len(swaps) < _SWAPS:
        p = rng.choice(board.legal_swaps())
        swaps.append(_time(lambda: board.swap(p)))  # noqa: B023 - called at once
    shifts: list[float] = []
    for _ in range(_SWAPS // 20):
        i = rng.randrange(len(board.code))
        to = rng.choice(board.reach(i))
        shifts.append(_time(lambda: board.move(i, to)))  # noqa: B023 - called at once
    checker = Checker(cubin, listings)
    candidate = board.schedule().apply(cubin)
    check = _time(lambda: checker.check(candidate))
    return ScheduleFigures(
        name,
        len(board.code),
        nvdisasm,
        whole - nvdisasm,
        statistics.median(swaps),
        statistics.median(shifts),
        check,
    )


def _time(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return 1000 * (time.perf_counter() - start)
