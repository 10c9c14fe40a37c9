"""A directory of cubins: every workload, config and chip that can be built."""

from __future__ import annotations

import multiprocessing
import os
import tempfile
from collections.abc import Callable, Collection, Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path

from cuasmrl.errors import CuasmrlError
from cuasmrl.workloads import registry
from cuasmrl.workloads.chips import ARCHS


@dataclass(frozen=True)
class CorpusEntry:
    """One variant: where its cubin is, or why there is none."""

    workload: str
    config: str
    arch: int
    path: Path | None
    reason: str | None = None


@dataclass(frozen=True)
class Corpus:
    built: tuple[CorpusEntry, ...]
    missing: tuple[CorpusEntry, ...]


def build_corpus(
    directory: Path,
    archs: Iterable[int] = ARCHS,
    names: Collection[str] | None = None,
    configs: Collection[str] | None = None,
    jobs: int = 2,
    progress: Callable[[CorpusEntry, int, int], None] | None = None,
) -> Corpus:
    """Compile everything asked for into directory/sm_80/<workload>-<config>.cubin and so on.

    `progress` is called with each entry as it is settled, the number settled and the number of all.
    """
    chosen = [registry.get(name) for name in names] if names is not None else registry.all()
    wanted = [
        (workload, config, arch)
        for arch in archs
        for workload in chosen
        for config in workload.configs
        if configs is None or config.name in configs
    ]
    unknown = set(configs or ()) - {config.name for workload in chosen for config in workload.configs}
    if unknown:
        raise CuasmrlError(f"None of the chosen workloads has a config named {', '.join(sorted(unknown))}.")
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CuasmrlError(f"The corpus {directory} cannot be written ({error.strerror}).") from error
    entries: list[CorpusEntry] = []

    def settle(entry: CorpusEntry) -> None:
        entries.append(entry)
        if progress is not None:
            progress(entry, len(entries), len(wanted))

    # Triton's compiler keeps process-wide state, so workers are fresh processes rather than forks or threads.
    with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
        tasks = []
        for workload, config, arch in wanted:
            reason = workload.supports(config, arch)
            if reason is not None:
                settle(CorpusEntry(workload.name, config.name, arch, None, reason))
            else:
                tasks.append(pool.submit(_build_one, directory, workload.name, config.name, arch))
        for task in as_completed(tasks):
            try:
                settle(task.result())
            except BrokenProcessPool:
                raise CuasmrlError(
                    "A compiler process died, perhaps for lack of memory; try fewer jobs."
                ) from None
    ordered = sorted(entries, key=lambda entry: (entry.arch, entry.workload, entry.config))
    return Corpus(
        tuple(entry for entry in ordered if entry.path is not None),
        tuple(entry for entry in ordered if entry.path is None),
    )


def _build_one(directory: Path, name: str, config_name: str, arch: int) -> CorpusEntry:
    workload = registry.get(name)
    try:
        built = workload.build(workload.config(config_name), arch)
    except CuasmrlError as error:
        return CorpusEntry(name, config_name, arch, None, str(error))
    path = directory / f"sm_{arch}" / f"{name}-{config_name}.cubin"
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
    with os.fdopen(handle, "wb") as file:
        file.write(built.cubin)
    os.replace(temporary, path)
    return CorpusEntry(name, config_name, arch, path)
