"""From a request to a kernel that is ready to be played on and judged."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from cuasmrl import workloads
from cuasmrl.binary.cubin import Cubin
from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu import launches
from cuasmrl.gpu.chips import chip_of_arch
from cuasmrl.gpu.devices import chip_of_device
from cuasmrl.gpu.devices.opening import is_gpu
from cuasmrl.gpu.emulator.faults import Fault
from cuasmrl.gpu.launches import LaunchRecord
from cuasmrl.gpu.traced import LaunchedKernel, TracedKernel, UntracedKernel, trace_cubin, untraced_cubin
from cuasmrl.optimize.choice import Candidate, Trial, choose_config
from cuasmrl.optimize.gate import Problem, Problems, problems_of_record, problems_of_workload
from cuasmrl.optimize.request import Request
from cuasmrl.workloads import Workload
from cuasmrl.workloads.tracing import trace_workload, untraced_workload

_DEFAULT_DEVICE = "virtual:a100"


@dataclass(frozen=True)
class Subject:
    kernel: TracedKernel | UntracedKernel
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
    def traced(self) -> TracedKernel:
        return _traced(self.kernel)

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.kernel.cubin.data).hexdigest()


@dataclass(frozen=True)
class Chosen:
    """The kernel that a request is about, traced for the chip of its device unless only a GPU can run it."""

    kernel: TracedKernel | UntracedKernel
    device: str
    launch: LaunchRecord | None = None
    """Of a cubin."""
    candidates: tuple[Candidate, ...] = ()
    """The configs among which this one was chosen; none if it was given."""

    @property
    def traced(self) -> TracedKernel:
        return _traced(self.kernel)


def choose(request: Request, advance: Callable[[int, int], None]) -> Chosen:
    """Build or read, choose a config, trace. `advance` follows the choice."""
    request.check()
    if request.is_cubin:
        assert request.launch is not None
        cubin, record = Cubin.load(request.source), launches.load(request.launch)
        device = request.device or f"virtual:{chip_of_arch(cubin.arch).key}"
        chip = chip_of_device(device)
        kernel = _traced_or_not(
            device,
            lambda: trace_cubin(cubin, record, request.kernel, chip, request.l2),
            lambda why: untraced_cubin(cubin, record, request.kernel, chip, request.l2, why),
        )
        return Chosen(kernel, device, record)
    workload = workloads.get(request.source)
    sizes = {**workload.sizes, **request.sizes}
    device = request.device or _DEFAULT_DEVICE
    chip = chip_of_device(device)
    if request.config is not None:
        config = workload.config(request.config)
        kernel = _traced_or_not(
            device,
            lambda: trace_workload(workload, config, chip, sizes, request.l2),
            lambda why: untraced_workload(workload, config, chip, sizes, request.l2, why),
        )
        return Chosen(kernel, device)
    trial = None
    if request.trial:
        trial = Trial(request.player, request.trial, request.seed, request.scoreboards, request.objective)
    chosen, candidates = choose_config(workload, chip, sizes, advance, trial, request.l2)
    return Chosen(chosen, device, candidates=candidates)


def _traced(kernel: TracedKernel | UntracedKernel) -> TracedKernel:
    """Refused where only a GPU can run it."""
    if isinstance(kernel, UntracedKernel):
        raise CuasmrlError(f"{kernel.name} cannot be replayed: {kernel.refusal}")
    return kernel


def _traced_or_not(
    device: str, trace: Callable[[], TracedKernel], otherwise: Callable[[str], UntracedKernel]
) -> TracedKernel | UntracedKernel:
    """What the emulator or the model refuses, a GPU may run all the same; what faults there must not."""
    try:
        return trace()
    except Fault:
        raise
    except CuasmrlError as error:
        if not is_gpu(device):
            raise
        return otherwise(str(error))


def prepare(request: Request, advance: Callable[[int, int], None]) -> Subject:
    """Choose a kernel, and gather the problems it will be judged on."""
    chosen = choose(request, advance)
    return _of_workload(chosen) if chosen.launch is None else _of_cubin(request, chosen, chosen.launch)


def _of_cubin(request: Request, chosen: Chosen, record: LaunchRecord) -> Subject:
    assert request.launch is not None
    kernel = chosen.kernel
    source: dict[str, Any] = {"cubin": _absolute(request.source), "launch": _absolute(request.launch)}
    if request.other_launches:
        source["other_launches"] = [_absolute(path) for path in request.other_launches]
    files = (request.launch, *request.other_launches)
    digests = [hashlib.sha256(Path(path).read_bytes()).hexdigest() for path in files]
    return Subject(
        kernel,
        _problems(record, [launches.load(path) for path in request.other_launches], kernel),
        chosen.device,
        source,
        f"launch file {' '.join(digests)}",
        None,
        record,
    )


def _problems(record: LaunchRecord, others: Sequence[LaunchRecord], kernel: LaunchedKernel) -> Problems:
    """Every launch that is known of the kernel; the first is the one it is optimised for."""
    made = [problems_of_record(one, kernel.listing.kernel).main for one in (record, *others)]
    main, *more = (replace(problem, name=Path(problem.name).name) for problem in made)
    return Problems(main, tuple(more), tuple(more))


def _absolute(path: str) -> str:
    return str(Path(path).resolve())


def _of_workload(chosen: Chosen) -> Subject:
    kernel = chosen.kernel
    workload = workloads.get(kernel.name)
    config, sizes = workload.config(kernel.config), dict(kernel.sizes)
    built = workload.build(config, kernel.chip.arch, sizes)
    problems = problems_of_workload(workload, config, built, sizes)
    _check_reference(workload, min([problems.main, *problems.shapes], key=_extent))
    source = {"workload": workload.name, "config": config.name, "sizes": sizes}
    return Subject(
        kernel,
        problems,
        chosen.device,
        source,
        problems.main.name,
        built.compiler,
        candidates=chosen.candidates,
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
