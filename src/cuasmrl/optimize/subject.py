"""From a request to a kernel that is ready to be played on and judged."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from cuasmrl import launches, workloads
from cuasmrl.agents import AGENTS
from cuasmrl.chips import chip_of_arch
from cuasmrl.cubin import Cubin
from cuasmrl.devices import chip_of_device
from cuasmrl.errors import CuasmrlError
from cuasmrl.gate import Problem, Problems, problems_of_record, problems_of_workload
from cuasmrl.launches import LaunchRecord
from cuasmrl.optimize.choice import Candidate, Trial, choose_config
from cuasmrl.optimize.request import Request
from cuasmrl.traced import TracedKernel, trace_cubin, trace_workload
from cuasmrl.workloads import Workload

_DEFAULT_DEVICE = "virtual:a100"


@dataclass(frozen=True)
class Subject:
    kernel: TracedKernel
    problems: Problems
    device: str
    source: Mapping[str, Any]
    """The request's own words, for whoever continues the run."""
    problem: str
    """What the kernel is launched on: sizes, or the digest of a launch file."""
    compiler: str | None
    launch: LaunchRecord | None = None
    """Of a cubin."""
    candidates: tuple[Candidate, ...] = field(default=())
    """The configs among which this one was chosen; none if it was given."""

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.kernel.cubin.data).hexdigest()


def prepare(request: Request, advance: Callable[[int, int], None]) -> Subject:
    """Build or read, choose a config, trace. `advance` follows the choice."""
    request.check()
    return _of_cubin(request) if request.is_cubin else _of_workload(request, advance)


def _of_cubin(request: Request) -> Subject:
    assert request.launch is not None
    cubin, record = Cubin.load(request.source), launches.load(request.launch)
    device = request.device or f"virtual:{chip_of_arch(cubin.arch).key}"
    kernel = trace_cubin(cubin, record, request.kernel, chip_of_device(device))
    source: dict[str, Any] = {"cubin": _absolute(request.source), "launch": _absolute(request.launch)}
    if request.other_launches:
        source["other_launches"] = [_absolute(path) for path in request.other_launches]
    files = (request.launch, *request.other_launches)
    digests = [hashlib.sha256(Path(path).read_bytes()).hexdigest() for path in files]
    return Subject(
        kernel,
        _problems(record, [launches.load(path) for path in request.other_launches], kernel),
        device,
        source,
        f"launch file {' '.join(digests)}",
        None,
        record,
    )


def _problems(record: LaunchRecord, others: Sequence[LaunchRecord], kernel: TracedKernel) -> Problems:
    """Every launch that is known of the kernel; the first is the one it is optimised for."""
    made = [problems_of_record(one, kernel.listing.kernel).main for one in (record, *others)]
    main, *more = (replace(problem, name=Path(problem.name).name) for problem in made)
    return Problems(main, tuple(more), tuple(more))


def _absolute(path: str) -> str:
    return str(Path(path).resolve())


def _of_workload(request: Request, advance: Callable[[int, int], None]) -> Subject:
    workload = workloads.get(request.source)
    sizes = {**workload.sizes, **request.sizes}
    device = request.device or _DEFAULT_DEVICE
    chip = chip_of_device(device)
    candidates: tuple[Candidate, ...] = ()
    if request.config is None:
        trial = None
        if request.trial:
            trial = Trial(AGENTS.named(request.agent), request.trial, request.seed, request.scoreboards)
        kernel, candidates = choose_config(workload, chip, sizes, advance, trial)
    else:
        kernel = trace_workload(workload, workload.config(request.config), chip, sizes)
    config = workload.config(kernel.config)
    built = workload.build(config, chip.arch, sizes)
    problems = problems_of_workload(workload, config, built, sizes)
    _check_reference(workload, min([problems.main, *problems.shapes], key=_extent))
    source = {"workload": workload.name, "config": config.name, "sizes": sizes}
    return Subject(
        kernel, problems, device, source, problems.main.name, built.compiler, candidates=candidates
    )


def _check_reference(workload: Workload, problem: Problem) -> None:
    """A workload that nobody can say the right result of is not one to make promises about."""
    if not workload.reference(workload.inputs(problem.sizes), problem.sizes):
        raise CuasmrlError(
            f"{workload.name} has no reference that says what it must compute; "
            "optimise its cubin with a launch file instead"
        )


def _extent(problem: Problem) -> int:
    product = 1
    for size in problem.sizes.values():
        product *= size
    return product
