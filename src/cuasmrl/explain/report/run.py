"""The picture of a run from its directory. The virtual GPU draws, on whatever device it was played."""

from __future__ import annotations

import hashlib
from pathlib import Path

from cuasmrl import workloads
from cuasmrl.binary.cubin import Cubin
from cuasmrl.errors import CuasmrlError
from cuasmrl.explain.report.loop import ConfirmedGain, HotLoop, hot_loop
from cuasmrl.explain.report.svg import draw
from cuasmrl.gpu import launches
from cuasmrl.gpu.chips import Chip, chip, chip_of_arch
from cuasmrl.gpu.timing import L2
from cuasmrl.gpu.traced import TracedKernel, trace_cubin
from cuasmrl.optimize.runs import RunDirectory
from cuasmrl.workloads.tracing import trace_workload

_VIRTUAL = "virtual:"


def picture_of_run(path: Path) -> str:
    """The hot loop before and after as an SVG; refused if the run has found nothing faster."""
    return draw(loop_of_run(path))


def loop_of_run(path: Path) -> HotLoop:
    """The hot loop under the original and under the best schedule so far."""
    run = RunDirectory.open(path)
    if not (path / "best.json").exists():
        raise CuasmrlError(f"{path} has found nothing faster than the original, so there is nothing to draw")
    kernel = kernel_of_run(run)
    best = run.best(kernel.listing)
    return hot_loop(kernel, best, ConfirmedGain.of(run.verdict(), best))


def kernel_of_run(run: RunDirectory) -> TracedKernel:
    """What the run is about, traced again; refused if its source is compiled to other code here."""
    config, original = run.config, run.original()
    target = _chip(config.device, original.arch)
    source, l2 = config.source, L2(config.l2)
    if "workload" not in source:
        named = Cubin.parse(original.data, str(source["cubin"]))
        return trace_cubin(named, launches.load(run.path / "launch.json"), config.kernel, target, l2)
    workload = workloads.get(source["workload"])
    kernel = trace_workload(workload, workload.config(source["config"]), target, dict(source["sizes"]), l2)
    if hashlib.sha256(kernel.cubin.data).hexdigest() != config.cubin:
        raise CuasmrlError(
            f"{run.path}: {workload.name} {kernel.config} is compiled to other code here than in the run; "
            "explain it with the compiler that the run names in config.json"
        )
    return kernel


def _chip(device: str, arch: int) -> Chip:
    if device.startswith(_VIRTUAL):
        return chip(device.removeprefix(_VIRTUAL))
    return chip_of_arch(arch)
