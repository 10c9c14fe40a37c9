"""The emulator beside Triton's own interpreter: the same kernels, shapes and inputs, one after the other."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from cuasmrl import workloads
from cuasmrl.bench.interpreter import interpret
from cuasmrl.emulate import emulate

ARCH = 80


@dataclass(frozen=True)
class EmulatorFigures:
    workload: str
    config: str
    sizes: dict[str, int]
    blocks: int
    warp_instructions: int
    emulator_seconds: float
    """Of the second run in this process: compiled parts and cubins come from their caches."""
    interpreter_seconds: float
    lane_instructions_per_second: float

    @property
    def ratio(self) -> float:
        """How many times faster the emulator is."""
        return self.interpreter_seconds / self.emulator_seconds

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "ratio": self.ratio}


def emulator(progress: Callable[[int, int], None]) -> list[EmulatorFigures]:
    """The first config of each published workload at its own size."""
    chosen = [w for w in workloads.all() if w.published]
    figures = []
    for done, workload in enumerate(chosen, 1):
        config = workload.configs[0]
        interpreted = interpret(workload, config, workload.sizes)
        emulate(workload, config, ARCH, workload.shapes[0])
        outcome = emulate(workload, config, ARCH)
        figures.append(
            EmulatorFigures(
                workload.name,
                config.name,
                dict(workload.sizes),
                outcome.blocks,
                outcome.warp_instructions,
                outcome.seconds,
                interpreted.seconds,
                outcome.lane_rate,
            )
        )
        progress(done, len(chosen))
    return figures
