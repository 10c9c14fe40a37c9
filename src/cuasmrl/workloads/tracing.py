"""Workloads as traced kernels, and as launch files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from cuasmrl.binary.cubin import Cubin
from cuasmrl.binary.sass import disassemble_kernel
from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.chips import Chip
from cuasmrl.gpu.launches import LaunchRecord, describe
from cuasmrl.gpu.timing import L2
from cuasmrl.gpu.traced import TracedKernel, UntracedKernel, trace_launch
from cuasmrl.schedule import schedule_of
from cuasmrl.workloads.corpus import CorpusEntry
from cuasmrl.workloads.model import Config, Sizes, Workload
from cuasmrl.workloads.registry import get


def trace_workload(
    workload: Workload, config: Config, chip: Chip, sizes: Sizes | None = None, l2: L2 = L2.COLD
) -> TracedKernel:
    """Build a workload for a chip and trace what one SM has to do of it."""
    built = workload.build(config, chip.arch, sizes)
    cubin = Cubin.parse(built.cubin, f"{workload.name} {config.name}")
    launch = workload.launch(built, workload.inputs(sizes), sizes)
    return trace_launch(
        workload.name, config.name, sizes or workload.sizes, cubin, built.kernel, launch, chip, l2
    )


def untraced_workload(
    workload: Workload, config: Config, chip: Chip, sizes: Sizes, l2: L2, refusal: str
) -> UntracedKernel:
    """What `trace_workload` refused to trace, for a GPU to run."""
    built = workload.build(config, chip.arch, sizes)
    cubin = Cubin.parse(built.cubin, f"{workload.name} {config.name}")
    listing = disassemble_kernel(cubin, built.kernel)
    return UntracedKernel(workload.name, config.name, sizes, cubin, listing, chip, l2, refusal=refusal)


def config_of(workload: Workload, sizes: Sizes, cubin: Cubin) -> Config | None:
    """The config of which a cubin holds a schedule; None if it holds other code."""
    for config in workload.configs:
        try:
            built = workload.build(config, cubin.arch, sizes)
            listing = disassemble_kernel(Cubin.parse(built.cubin, config.name))
            schedule_of(listing, cubin.kernel(built.kernel).words, cubin.source)
        except CuasmrlError:
            continue
        return config
    return None


def corpus_launches(entries: Iterable[CorpusEntry]) -> Iterator[tuple[Path, LaunchRecord]]:
    """For each cubin of a corpus the launch of its workload at its default sizes."""
    inputs: dict[str, dict[str, Any]] = {}
    for entry in sorted(entries, key=lambda entry: entry.workload):
        if entry.path is None:
            continue
        workload = get(entry.workload)
        # Neither chip nor config changes the inputs, and drawing them takes longer than all the rest.
        if entry.workload not in inputs:
            inputs = {entry.workload: workload.inputs()}
        built = workload.build(workload.config(entry.config), entry.arch)
        launch = workload.launch(built, inputs[entry.workload])
        names = [parameter.name for parameter in built.parameters]
        yield entry.path, describe(launch, built.kernel, names)
