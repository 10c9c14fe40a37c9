"""A kernel on a chip: with its trace, so that any schedule can be timed, or with why it has none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from cuasmrl.binary.cubin import Cubin, Kernel
from cuasmrl.binary.sass import Listing, disassemble_kernel
from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.chips import CHIPS, Chip, chip_of_arch
from cuasmrl.gpu.emulator import Emulator, Trace
from cuasmrl.gpu.launches import LaunchRecord
from cuasmrl.gpu.launches.launch import Launch
from cuasmrl.gpu.timing import L2, Model, load_parameters, trace_share
from cuasmrl.gpu.timing.code import Code
from cuasmrl.gpu.timing.excerpt import excerpt
from cuasmrl.schedule import Schedule, schedule_of


@dataclass(frozen=True, eq=False)
class LaunchedKernel:
    name: str
    """The workload, or the file."""
    config: str
    """The config of the workload, or the kernel of the file."""
    sizes: Mapping[str, int]
    cubin: Cubin = field(repr=False)
    listing: Listing = field(repr=False)
    chip: Chip
    l2: L2 = L2.COLD
    """What L2 holds when the kernel starts."""

    @property
    def original(self) -> Schedule:
        """The schedule that the cubin has."""
        return Schedule.original(self.listing)

    def schedule_in(self, cubin: Cubin) -> Schedule:
        """The schedule that another cubin holds of this kernel."""
        kernel = self.listing.kernel
        if cubin.arch != kernel.arch:
            raise CuasmrlError(
                f"{cubin.source} is compiled for sm_{cubin.arch}, {self.cubin.source} for sm_{kernel.arch}; "
                "schedules can be compared only on one architecture"
            )
        return schedule_of(self.listing, cubin.kernel(kernel.name).words, cubin.source)


@dataclass(frozen=True, eq=False)
class UntracedKernel(LaunchedKernel):
    """Only a GPU can run it."""

    refusal: str = field(kw_only=True)
    """Why the emulator or the model cannot."""


@dataclass(frozen=True, eq=False)
class TracedKernel(LaunchedKernel):
    trace: Trace = field(kw_only=True, repr=False)
    _parts: dict[int, Model] = field(default_factory=dict, init=False, repr=False)

    @cached_property
    def model(self) -> Model:
        return self._model(self.trace)

    def part(self, iterations: int) -> Model:
        """What a search replays: so many iterations of each loop."""
        if iterations not in self._parts:
            self._parts[iterations] = self._model(excerpt(self.trace, iterations))
        return self._parts[iterations]

    def _model(self, trace: Trace) -> Model:
        return Model(self.original, trace, self.chip, l2=self.l2)


def trace_launch(
    name: str,
    config: str,
    sizes: Mapping[str, int],
    cubin: Cubin,
    kernel: str,
    launch: Launch,
    chip: Chip,
    l2: L2 = L2.COLD,
) -> TracedKernel:
    """Trace what one SM of the chip has to do of a launch; name, config and sizes are for reports."""
    parameters = load_parameters(chip.key)
    emulator = Emulator(cubin, kernel, chip)
    Code(emulator.listing, parameters)  # refuses what the model cannot time before anything is executed
    trace = trace_share(launch, emulator)
    return TracedKernel(name, config, sizes, cubin, emulator.listing, chip, l2, trace=trace)


def trace_cubin(
    cubin: Cubin,
    record: LaunchRecord,
    kernel: str | None = None,
    chip: Chip | None = None,
    l2: L2 = L2.COLD,
) -> TracedKernel:
    """Trace a launch of a kernel of a cubin; without a chip, on the one that stands for its architecture."""
    chosen, chip = _chosen(cubin, record, kernel, chip)
    launch = record.launch(chosen)
    sizes, name = _sizes(launch), Path(cubin.source).name
    return trace_launch(name, chosen.name, sizes, cubin, chosen.name, launch, chip, l2)


def untraced_cubin(
    cubin: Cubin, record: LaunchRecord, kernel: str | None, chip: Chip, l2: L2, refusal: str
) -> UntracedKernel:
    """What `trace_cubin` refused to trace, for a GPU to run."""
    chosen, chip = _chosen(cubin, record, kernel, chip)
    sizes, name = _sizes(record.launch(chosen)), Path(cubin.source).name
    listing = disassemble_kernel(cubin, chosen.name)
    return UntracedKernel(name, chosen.name, sizes, cubin, listing, chip, l2, refusal=refusal)


def _sizes(launch: Launch) -> dict[str, int]:
    return {"blocks": launch.blocks, "threads": launch.threads}


def _chosen(cubin: Cubin, record: LaunchRecord, kernel: str | None, chip: Chip | None) -> tuple[Kernel, Chip]:
    chosen = cubin.kernel(kernel or record.kernel)
    chip = chip or chip_of_arch(cubin.arch)
    if not chip.runs(cubin.arch):
        able = ", ".join(key for key, other in CHIPS.items() if other.runs(cubin.arch))
        raise CuasmrlError(
            f"{cubin.source} is compiled for sm_{cubin.arch}, which {chip.key} (sm_{chip.arch}) cannot run; "
            + (f"choose --chip {able}" if able else "no chip here does")
        )
    return chosen, chip
