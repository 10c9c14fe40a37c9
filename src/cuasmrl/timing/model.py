"""The SM model: modelled cycles of a schedule on a chip, from a trace."""

from __future__ import annotations

from dataclasses import dataclass

from cuasmrl.chips import Chip
from cuasmrl.chips import chip as chip_named
from cuasmrl.emulator import Trace
from cuasmrl.errors import CuasmrlError
from cuasmrl.schedule import Schedule
from cuasmrl.timing.code import Code, table_of
from cuasmrl.timing.machine import machine_of
from cuasmrl.timing.parameters import Parameters, load_parameters
from cuasmrl.timing.replay import Result, replay
from cuasmrl.timing.work import Work, lay_out


@dataclass(frozen=True)
class Occupancy:
    """How many blocks an SM holds at a time, and what limits it."""

    blocks: int
    limit: str


def occupancy(chip: Chip, threads: int, registers: int, shared_bytes: int) -> Occupancy:
    """Blocks that fit into an SM at once; raises if not even one does."""
    warps = -(-threads // 32)
    per_warp = -(-registers * 32 // 256) * 256
    limits = {
        "blocks": chip.max_blocks_per_sm,
        "warps": chip.max_threads_per_sm // 32 // warps,
        "registers": chip.registers_per_sm // (per_warp * -(-warps // 4) * 4),
    }
    if shared_bytes:
        limits["shared memory"] = chip.shared_per_sm // (shared_bytes + chip.shared_reserved_per_block)
    limit = min(limits, key=lambda name: limits[name])
    if limits[limit] < 1:
        raise CuasmrlError(
            f"Not one block of this launch fits into an SM of {chip.name}: {limit} are the limit."
        )
    return Occupancy(limits[limit], limit)


class Model:
    """One kernel's trace on one chip, ready to time any schedule of the kernel."""

    def __init__(
        self, schedule: Schedule, trace: Trace, chip: Chip | str, parameters: Parameters | None = None
    ) -> None:
        self.chip = chip_named(chip) if isinstance(chip, str) else chip
        self.parameters = parameters or load_parameters(self.chip.key)
        header = trace.header
        threads = header.block[0] * header.block[1] * header.block[2]
        self.occupancy = occupancy(self.chip, threads, header.registers, header.shared_bytes)
        self.work: Work = lay_out(trace, schedule.listing)
        grid = header.grid[0] * header.grid[1] * header.grid[2]
        self.blocks = -(-grid // self.chip.sm_count)
        """Blocks that one SM executes: the share of the grid, rounded up."""
        self.resident = min(self.occupancy.blocks, self.blocks)
        self.machine = machine_of(self.parameters, self.resident * header.shared_bytes)

    def table(self, schedule: Schedule) -> Code:
        return table_of(schedule, self.parameters)

    def simulate(self, schedule: Schedule, seed: int = 0, blocks: int | None = None) -> Result:
        """Replay a schedule once."""
        return self.replay(self.table(schedule), seed, blocks)

    def replay(self, table: Code, seed: int = 0, blocks: int | None = None) -> Result:
        result: Result = replay(table, self.work, self.machine, self.resident, blocks or self.blocks, seed)
        return result
