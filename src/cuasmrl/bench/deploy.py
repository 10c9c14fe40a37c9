"""What deployment costs: a lookup at each compile, a launch, and a shim in front of ptxas."""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rich.table import Table

from cuasmrl import workloads
from cuasmrl.binary.cubin import Cubin
from cuasmrl.binary.sass import disassemble
from cuasmrl.deploy.shim.folders import script
from cuasmrl.deploy.shim.tools import bundled
from cuasmrl.deploy.store import LOCATION, Allowed, Entry, Store, deploy
from cuasmrl.deploy.store.allowed import VIRTUAL
from cuasmrl.deploy.triton.cost import measure_launches
from cuasmrl.errors import CuasmrlError
from cuasmrl.schedule import Board

ARCH = 80
_CHIP = "a100"
_LOOKUPS = 50
_COMPILES = 25
_CHAINS, _LINKS = 32, 24
_NO_MEASUREMENT = {
    "device": "none", "unit": "none", "original": 1, "optimised": 1, "gain": 0, "interval": [0, 0],
}  # fmt: skip
_ALLOWED = Allowed(modelled=True)


@dataclass(frozen=True)
class DeployFigures:
    what: str
    on: str
    before: float
    """Without cuasmrl, in `unit`."""
    added: float
    """Median of what it takes more."""
    worst: float
    """The 95th of 100 of that."""
    processor: float
    """Mean of the processor time it takes more, which other programs lengthen less."""
    unit: str
    reach: str

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Taken:
    """Milliseconds."""

    elapsed: float
    processor: float

    def __sub__(self, other: Taken) -> Taken:
        return Taken(self.elapsed - other.elapsed, self.processor - other.processor)


def deploying(progress: Callable[[int, int], None]) -> list[DeployFigures]:
    parts = (_lookups, _launches, _shim)
    figures = []
    for done, part in enumerate(parts, 1):
        figures += part()
        progress(done, len(parts))
    return figures


def _lookups() -> list[DeployFigures]:
    """On the largest kernel of the published workloads."""
    built = [
        (f"{workload.name} {config.name}", workload.build(config, ARCH).cubin)
        for workload in workloads.all() if workload.published
        for config in workload.configs if workload.supports(config, ARCH) is None
    ]  # fmt: skip
    name, cubin = max(built, key=lambda entry: len(entry[1]))
    on = f"{name}, {len(Cubin.parse(cubin, name).kernel().words):,} instructions"
    with TemporaryDirectory(prefix="cuasmrl-") as place:
        store = Store(Path(place))
        missed = [_taken(lambda: deploy(cubin, store, _ALLOWED)) for _ in range(_LOOKUPS)]
        store.put(_entry(cubin))
        found = [_taken(lambda: deploy(cubin, store, _ALLOWED)) for _ in range(_LOOKUPS)]
        if not deploy(cubin, store, _ALLOWED).used:
            raise CuasmrlError("the store does not give what was just put in, so nothing was measured")
    return [
        _figures(f"lookup, {what}", on, 0.0, times, "5 ms")
        for what, times in (("nothing stored", missed), ("stored", found))
    ]


def _launches() -> list[DeployFigures]:
    cost = measure_launches()
    added = cost.added
    return [DeployFigures("launch", "softmax", cost.without, added, added, added, "us", "not measurable")]


def _shim() -> list[DeployFigures]:
    """In turns, so that whatever else the machine does meets all of them."""
    real = bundled("ptxas")
    if real is None:
        raise CuasmrlError("the shim is measured in front of Triton's ptxas; pip install 'cuasmrl[triton]'")
    with TemporaryDirectory(prefix="cuasmrl-") as place:
        source, output, shim = (Path(place) / name for name in ("kernel.ptx", "kernel.cubin", "ptxas"))
        source.write_text(_ptx(), encoding="utf-8")
        shim.write_text(script(shim, str(real)), encoding="utf-8")
        shim.chmod(0o755)
        arguments = [f"--gpu-name=sm_{ARCH}", str(source), "-o", str(output)]
        empty, filled = Path(place) / "empty", Path(place) / "filled"
        subprocess.run([real, *arguments], check=True)
        plain = output.read_bytes()
        entry = Store(filled).put(_entry(plain))
        rounds = [
            [
                _compile(tool, arguments, store)
                for tool, store in ((real, empty), (shim, empty), (shim, filled))
            ]
            for _ in range(_COMPILES)
        ]
        if output.read_bytes() != entry.optimised:
            raise CuasmrlError("the shim does not give what was just stored, so nothing was measured")
    before = statistics.median(alone.elapsed for alone, _, _ in rounds)
    on = f"a kernel of {_CHAINS * _LINKS:,} products"
    return [
        _figures(f"shim, {what}", on, before, [times[column] - times[0] for times in rounds], "100 ms")
        for what, column in (("nothing stored", 1), ("stored", 2))
    ]


def _compile(tool: Path, arguments: list[str], store: Path) -> Taken:
    # For the virtual GPU, where results that no GPU has measured are used without a word.
    environment: Mapping[str, str] = {**os.environ, LOCATION: str(store), VIRTUAL: _CHIP}
    return _taken(lambda: subprocess.run([tool, *arguments], check=True, env=environment))


def _entry(cubin: bytes) -> Entry:
    """The smallest change that there is: one swap."""
    original = Cubin.parse(cubin, "a kernel to be deployed")
    board = Board(disassemble(original)[original.kernel().name])
    board.swap(board.legal_swaps()[0])
    return Entry.of(cubin, board.schedule().apply(original).data, _NO_MEASUREMENT)


def _ptx() -> str:
    """Chains of dependent products, with enough of them for ptxas to have something to do."""
    lines = [f"ld.global.f32 %f{i}, [%d2+{4 * i}];" for i in range(_CHAINS)]
    for _ in range(_LINKS):
        lines += [f"fma.rn.f32 %f{i}, %f{i}, %f{(7 * i + 3) % _CHAINS}, %f{i};" for i in range(_CHAINS)]
    lines += [f"st.global.f32 [%d1+{4 * i}], %f{i};" for i in range(_CHAINS)]
    body = "\n    ".join(lines)
    return (
        f".version 8.0\n.target sm_{ARCH}\n.address_size 64\n"
        ".visible .entry chains(.param .u64 to, .param .u64 from)\n{\n"
        f"    .reg .f32 %f<{_CHAINS}>;\n    .reg .b64 %d<3>;\n"
        f"    ld.param.u64 %d1, [to];\n    ld.param.u64 %d2, [from];\n    {body}\n    ret;\n}}\n"
    )


def _taken(action: Callable[[], object]) -> Taken:
    start, used = time.perf_counter(), _processor_time()
    action()
    return Taken(1000 * (time.perf_counter() - start), 1000 * (_processor_time() - used))


def _processor_time() -> float:
    """Of this process and of those it has waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def _figures(what: str, on: str, before: float, times: list[Taken], reach: str) -> DeployFigures:
    elapsed = [taken.elapsed for taken in times]
    processor = statistics.mean(taken.processor for taken in times)
    worst = statistics.quantiles(elapsed, n=20)[-1]
    return DeployFigures(what, on, before, statistics.median(elapsed), worst, processor, "ms", reach)


def deploy_table(figures: list[DeployFigures]) -> Table:
    table = Table(box=None, pad_edge=False)
    for column in ("what", "on"):
        table.add_column(column)
    for column in ("without", "added", "95 % below", "processor", "allowed"):
        table.add_column(column, justify="right")
    for f in figures:
        table.add_row(
            f.what, f.on, f"{f.before:.1f} {f.unit}", f"{f.added:.2f} {f.unit}",
            f"{f.worst:.2f} {f.unit}", f"{f.processor:.2f} {f.unit}", f.reach,
        )  # fmt: skip
    return table
