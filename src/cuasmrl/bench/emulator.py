"""The emulator beside Triton's own interpreter: the same kernels, shapes and inputs, one after the other."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from cuasmrl import workloads
from cuasmrl.bench.interpreter import interpret
from cuasmrl.workloads.emulation import emulate

ARCH = 80
# Smaller than the workloads' own shapes where the interpreter would need minutes.
_SIZES = {
    "bmm": {"B": 4, "M": 256, "N": 256, "K": 512},
    "flash_attention": {"B": 1, "H": 4, "S": 1024, "D": 32},
    "rmsnorm": {"B": 1, "H": 32, "S": 64, "D": 64},
}


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
    """The first config of each published workload."""
    chosen = [w for w in workloads.all() if w.published]
    figures = []
    for done, workload in enumerate(chosen, 1):
        config = workload.configs[0]
        sizes = _SIZES.get(workload.name, workload.sizes)
        interpreted = interpret(workload, config, sizes)
        emulate(workload, config, ARCH, workload.shapes[0])
        outcome = emulate(workload, config, ARCH, sizes)
        figures.append(
            EmulatorFigures(
                workload.name,
                config.name,
                dict(sizes),
                outcome.blocks,
                outcome.warp_instructions,
                outcome.seconds,
                interpreted.seconds,
                outcome.lane_rate,
            )
        )
        progress(done, len(chosen))
    return figures
