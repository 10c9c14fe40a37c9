"""Play on the kernels that were recorded, with the launches they were seen with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cuasmrl.deploy.deposit import shelve
from cuasmrl.deploy.store import Entry, Recorded, Store
from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu import launches
from cuasmrl.gpu.devices import chip_of_device
from cuasmrl.gpu.launches import LaunchRecord
from cuasmrl.gpu.launches.record import Buffer, Scalar
from cuasmrl.optimize.optimizer import RUNS, Optimized, Watch, optimize
from cuasmrl.optimize.request import Request
from cuasmrl.optimize.runs.directory import vacant

_MOST_OTHERS = 4


@dataclass(frozen=True)
class Outcome:
    """What came of one recorded kernel."""

    key: str
    kernel: str
    launches: int
    """Distinct ones that were recorded."""
    found: Optimized | None = field(repr=False)
    entry: Entry | None = field(repr=False)
    """What the store has now; None if there is no gain."""
    problem: str | None = None
    """Why it was not played on."""

    def as_dict(self) -> dict[str, Any]:
        return {
            "key": self.key,
            "kernel": self.kernel,
            "launches": self.launches,
            "stored": self.entry is not None,
            "problem": self.problem,
            "result": self.found.as_dict() if self.found else None,
        }


def optimize_recorded(
    store: Store,
    given: Mapping[str, Any],
    runs: Path = RUNS,
    watch: Watch | None = None,
) -> Iterator[Outcome]:
    """Every kernel that waits in the store; `given` are fields of a `Request` such as agent and budget.

    A kernel with a result in the store is recorded no longer; one without gain stays, for another attempt.
    """
    for kernel in store.recorded():
        yield from play_on(kernel, store, given, runs, watch)


def play_on(
    recorded: Recorded, store: Store, given: Mapping[str, Any], runs: Path = RUNS, watch: Watch | None = None
) -> list[Outcome]:
    """Each kernel of one recorded cubin; its launches stay until the last of them has been played on."""
    try:
        groups = launches_by_kernel(recorded)
        outcomes = [_play(recorded, store, name, files, given, runs, watch) for name, files in groups.items()]
    except CuasmrlError as error:
        return [Outcome(recorded.key, "", len(recorded.launches), None, None, str(error))]
    if any(outcome.entry is not None for outcome in outcomes):
        store.forget_recorded(recorded.key)
    return outcomes


def _play(
    recorded: Recorded,
    store: Store,
    name: str,
    files: list[Path],
    given: Mapping[str, Any],
    runs: Path,
    watch: Watch | None,
) -> Outcome:
    request = request_of(recorded, name, [str(path) for path in files], given)
    run = vacant(runs / f"{name or 'kernel'}-{recorded.key[:12]}-{request.agent}-seed{request.seed}")
    try:
        found = optimize(request, run, watch=watch)
    except CuasmrlError as error:
        return Outcome(recorded.key, name, len(files), None, None, str(error))
    return Outcome(recorded.key, name, len(files), found, shelve(found, store, recorded.origin))


def request_of(recorded: Recorded, name: str, files: Sequence[str], given: Mapping[str, Any]) -> Request:
    """For a kernel of a recorded cubin, played on with the first of these launch files."""
    main, *others = files
    asked = {"device": _device(recorded), **given}
    return Request(
        str(recorded.cubin),
        launch=main,
        other_launches=tuple(others[:_MOST_OTHERS]),
        kernel=name or None,
        **asked,
    )


def launches_by_kernel(recorded: Recorded) -> dict[str, list[Path]]:
    """Launch files by kernel, those with most blocks first; of launches that differ in data only, one."""
    kept: dict[tuple[Any, ...], tuple[int, str, Path]] = {}
    for path in recorded.launches:
        record = launches.load(path)
        blocks = record.grid[0] * record.grid[1] * record.grid[2]
        kept.setdefault(_likeness(record), (blocks, record.kernel or "", path))
    if not kept:
        raise CuasmrlError(
            "no launch of it was recorded; write a launch file and run "
            f"`cuasmrl optimize {recorded.cubin} --launch FILE --store`"
        )
    groups: dict[str, list[Path]] = {}
    for _, name, path in sorted(kept.values(), key=lambda found: -found[0]):
        groups.setdefault(name, []).append(path)
    return groups


def _likeness(record: LaunchRecord) -> tuple[Any, ...]:
    arguments = tuple(
        (entry.dtype, entry.shape if isinstance(entry, Buffer) else entry.value)
        if isinstance(entry, Buffer | Scalar)
        else entry
        for entry in record.arguments
    )
    return record.kernel, record.grid, record.block, record.shared_bytes, arguments


def _device(recorded: Recorded) -> str | None:
    """Where it was seen, if that is a device of this machine."""
    device = recorded.origin.get("device")
    try:
        chip_of_device(str(device))
    except CuasmrlError:
        return None
    return str(device)
