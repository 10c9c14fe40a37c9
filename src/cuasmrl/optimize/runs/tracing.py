"""The kernel of a run, traced again from its directory, on whatever device it was played."""

from __future__ import annotations

import hashlib

from cuasmrl import workloads
from cuasmrl.binary.cubin import Cubin
from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu import launches
from cuasmrl.gpu.chips import Chip, chip, chip_of_arch
from cuasmrl.gpu.timing import L2
from cuasmrl.gpu.traced import TracedKernel, trace_cubin
from cuasmrl.optimize.runs.directory import RunDirectory
from cuasmrl.workloads.tracing import trace_workload

_VIRTUAL = "virtual:"


def kernel_of_run(run: RunDirectory) -> TracedKernel:
    """What the run is about; refused if its source is compiled to other code here."""
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
