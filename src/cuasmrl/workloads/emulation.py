"""Run a workload on the emulator and compare what it wrote with the reference."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from time import perf_counter
from typing import Any

import numpy as np
import numpy.typing as npt

from cuasmrl.binary.cubin import Cubin
from cuasmrl.gpu.chips import Chip
from cuasmrl.gpu.emulator import DEFAULT_BUDGET, Emulator, Run
from cuasmrl.workloads import BuiltKernel, Config, Expected, Workload
from cuasmrl.workloads.model import Sizes


@dataclass(frozen=True)
class Output:
    """One output buffer after a run."""

    name: str
    elements: int
    """Compared elements: all of them, or those that the chosen blocks wrote."""
    exact: int
    """Elements equal to the reference rounded to the buffer's type."""
    worst_error: float
    worst_share: float
    """The largest error as a share of what is allowed for its element; above 1 is a failure."""
    bound: str
    failure: str | None


@dataclass(frozen=True)
class Outcome:
    workload: str
    config: str
    arch: int
    sizes: dict[str, int]
    seed: int
    blocks: int
    outputs: tuple[Output, ...]
    warp_instructions: int
    lane_instructions: int
    seconds: float

    @property
    def passed(self) -> bool:
        return all(output.failure is None for output in self.outputs)

    @property
    def lane_rate(self) -> float:
        """Lane-instructions per second."""
        return self.lane_instructions / self.seconds

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "passed": self.passed, "lane_instructions_per_second": self.lane_rate}


def emulate(
    workload: Workload,
    config: Config,
    arch: int,
    sizes: Sizes | None = None,
    seed: int = 0,
    blocks: Sequence[int] | None = None,
    budget: int = DEFAULT_BUDGET,
    chip: Chip | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Outcome:
    """Build, run and judge one launch."""
    built = workload.build(config, arch, sizes)
    emulator = Emulator(Cubin.parse(built.cubin, f"{workload.name} {config.name}"), built.kernel, chip)
    inputs = workload.inputs(sizes, seed)
    expected = workload.reference(inputs, sizes)
    before = {name: np.array(inputs[name]) for name in expected}
    start = perf_counter()
    run = emulator.run(workload.launch(built, inputs, sizes), blocks, budget, progress)
    seconds = perf_counter() - start
    outputs = tuple(
        _judge(name, what, np.asarray(inputs[name]), before[name] if blocks is not None else None)
        for name, what in expected.items()
    )
    return _outcome(workload, built, dict(sizes or workload.sizes), seed, outputs, run, seconds)


def _outcome(
    workload: Workload,
    built: BuiltKernel,
    sizes: dict[str, int],
    seed: int,
    outputs: tuple[Output, ...],
    run: Run,
    seconds: float,
) -> Outcome:
    return Outcome(
        workload.name,
        built.config,
        built.arch,
        sizes,
        seed,
        run.blocks,
        outputs,
        run.warp_instructions,
        run.lane_instructions,
        seconds,
    )


def _judge(
    name: str, expected: Expected, actual: npt.NDArray[Any], before: npt.NDArray[Any] | None
) -> Output:
    """Compare a buffer; with `before`, only the elements that have changed since."""
    value = expected.value
    bound = np.broadcast_to(np.asarray(expected.bound, np.float64), value.shape)
    if before is not None:
        written = actual.view(f"u{actual.itemsize}") != before.view(f"u{before.itemsize}")
        actual, value, bound = actual[written], value[written], bound[written]
    error = np.abs(actual.astype(np.float64) - value.astype(np.float64))
    same = actual == value.astype(actual.dtype)
    error = np.where(same, 0.0, error)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(error == 0, 0.0, error / bound)
    return Output(
        name=name,
        elements=actual.size,
        exact=int(same.sum()),
        worst_error=float(np.max(error, initial=0.0)),
        worst_share=float(np.max(np.nan_to_num(share, nan=np.inf), initial=0.0)),
        bound=expected.why,
        failure=Expected(value, bound, expected.why).failure(actual),
    )
