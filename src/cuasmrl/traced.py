"""A kernel with its trace on a chip, ready to time any schedule of it: from a workload or from a cubin."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from cuasmrl import workloads
from cuasmrl.chips import CHIPS, Chip, chip_of_arch
from cuasmrl.cubin import Cubin
from cuasmrl.emulator import Emulator, Trace
from cuasmrl.errors import CuasmrlError
from cuasmrl.launch import Launch
from cuasmrl.launches import LaunchRecord, describe
from cuasmrl.sass import Listing
from cuasmrl.schedule import Schedule, schedule_of
from cuasmrl.timing import Model, trace_share
from cuasmrl.workloads import Config, CorpusEntry, Workload
from cuasmrl.workloads.model import Sizes


@dataclass(frozen=True, eq=False)
class TracedKernel:
    name: str
    """The workload, or the file."""
    config: str
    """The config of the workload, or the kernel of the file."""
    sizes: Sizes
    cubin: Cubin = field(repr=False)
    listing: Listing = field(repr=False)
    trace: Trace = field(repr=False)
    chip: Chip

    @property
    def original(self) -> Schedule:
        """The schedule that was traced."""
        return Schedule.original(self.listing)

    @cached_property
    def model(self) -> Model:
        return Model(self.original, self.trace, self.chip)

    def schedule_in(self, cubin: Cubin) -> Schedule:
        """The schedule that another cubin holds of this kernel."""
        kernel = self.listing.kernel
        if cubin.arch != kernel.arch:
            raise CuasmrlError(
                f"{cubin.source} is compiled for sm_{cubin.arch}, {self.cubin.source} for sm_{kernel.arch}; "
                "schedules can be compared only on one architecture"
            )
        return schedule_of(self.listing, cubin.kernel(kernel.name).words, cubin.source)


def trace_workload(
    workload: Workload, config: Config, chip: Chip, sizes: Sizes | None = None
) -> TracedKernel:
    """Build a workload for a chip and trace what one SM has to do of it."""
    built = workload.build(config, chip.arch, sizes)
    cubin = Cubin.parse(built.cubin, f"{workload.name} {config.name}")
    launch = workload.launch(built, workload.inputs(sizes), sizes)
    return _traced(workload.name, config.name, sizes or workload.sizes, cubin, built.kernel, launch, chip)


def trace_cubin(
    cubin: Cubin, record: LaunchRecord, kernel: str | None = None, chip: Chip | None = None
) -> TracedKernel:
    """Trace a launch of a kernel of a cubin; without a chip, on the one that stands for its architecture."""
    chosen = cubin.kernel(kernel or record.kernel)
    chip = chip or chip_of_arch(cubin.arch)
    if not chip.runs(cubin.arch):
        able = ", ".join(key for key, other in CHIPS.items() if other.runs(cubin.arch))
        raise CuasmrlError(
            f"{cubin.source} is compiled for sm_{cubin.arch}, which {chip.key} (sm_{chip.arch}) cannot run; "
            + (f"choose --chip {able}" if able else "no chip here does")
        )
    launch = record.launch(chosen)
    sizes = {"blocks": launch.blocks, "threads": launch.threads}
    return _traced(Path(cubin.source).name, chosen.name, sizes, cubin, chosen.name, launch, chip)


def _traced(
    name: str, config: str, sizes: Sizes, cubin: Cubin, kernel: str, launch: Launch, chip: Chip
) -> TracedKernel:
    emulator = Emulator(cubin, kernel, chip)
    trace = trace_share(launch, emulator)
    return TracedKernel(name, config, sizes, cubin, emulator.listing, trace, chip)


def corpus_launches(entries: Iterable[CorpusEntry]) -> Iterator[tuple[Path, LaunchRecord]]:
    """For each cubin of a corpus the launch of its workload at its default sizes."""
    inputs: dict[str, dict[str, Any]] = {}
    for entry in sorted(entries, key=lambda entry: entry.workload):
        if entry.path is None:
            continue
        workload = workloads.get(entry.workload)
        # Neither chip nor config changes the inputs, and drawing them takes longer than all the rest.
        if entry.workload not in inputs:
            inputs = {entry.workload: workload.inputs()}
        built = workload.build(workload.config(entry.config), entry.arch)
        launch = workload.launch(built, inputs[entry.workload])
        names = [parameter.name for parameter in built.parameters]
        yield entry.path, describe(launch, built.kernel, names)
