"""What one SM has to do of a launch: the blocks that come to it, and their trace."""

from __future__ import annotations

from cuasmrl.gpu.emulator import Emulator, Trace
from cuasmrl.gpu.launches.launch import Launch
from cuasmrl.gpu.timing.model import occupancy

_WAVES = 2


def traced_blocks(launch: Launch, emulator: Emulator) -> list[int]:
    """Blocks that come to the first SM: one in as many as there are SMs, for two waves."""
    chip, kernel = emulator.chip, emulator.kernel
    shared = kernel.shared_bytes + launch.shared_bytes
    resident = occupancy(chip, launch.threads, kernel.registers, shared).blocks
    return list(range(0, launch.blocks, chip.sm_count))[: _WAVES * resident]


def trace_share(launch: Launch, emulator: Emulator) -> Trace:
    """Execute the blocks of the first SM and keep what the model needs; buffers change in place."""
    return emulator.trace(launch, blocks=traced_blocks(launch, emulator))
