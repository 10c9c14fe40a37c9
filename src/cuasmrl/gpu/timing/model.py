"""The SM model: modelled cycles of a schedule on a chip, from a trace."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass

import numpy as np

from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.chips import Chip
from cuasmrl.gpu.chips import chip as chip_named
from cuasmrl.gpu.emulator import Trace
from cuasmrl.gpu.timing.beside import needs_sides
from cuasmrl.gpu.timing.code import Code, Int
from cuasmrl.gpu.timing.machine import Layout, Machine, layout_of, machine_of
from cuasmrl.gpu.timing.memory_system import L2, Traffic, share_of, traffic_of
from cuasmrl.gpu.timing.parameters import Parameters, load_parameters
from cuasmrl.gpu.timing.records import REASON_NAMES, SIXTEENTH, Job, Note, Reason, Row, Tally, Unit
from cuasmrl.gpu.timing.replay import empty_state, replay, replay_time
from cuasmrl.gpu.timing.sheet import NOTHING, Sheet, new_sheet
from cuasmrl.gpu.timing.work import lay_out
from cuasmrl.markup import card
from cuasmrl.schedule import Schedule

_STANDS_STILL = (
    "The replay stands still: a barrier waits for warps that have ended, products of a warpgroup for what "
    "some of its warps never issue, or a phase of an mbarrier for arrivals that wait for it themselves."
)


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


@dataclass(frozen=True, eq=False)
class Result:
    """What one replay gave, in modelled cycles."""

    cycles: int
    instructions: int
    warp_reasons: Int
    """Cycles of all warps by reason: the sum is the sum of their lives."""
    core_reasons: Int
    """Cycles of each sub-core by reason; each row sums to `cycles`."""
    row_reasons: Int
    """Cycles of all warps by instruction of the schedule and reason; `ISSUED` counts executions."""
    unit_busy: Int
    """Cycles for which the units of a kind were held, all sub-cores together."""
    block_end: Int
    """When each block was done."""
    log: Int
    """A `Note` of each of the first issues, a row each; -1 where there were fewer."""

    def _repr_html_(self) -> str:
        """For notebooks."""
        cores, all_cycles = self.core_reasons.sum(axis=0), int(self.core_reasons.sum()) or 1
        most = sorted((k for k in Reason if cores[k]), key=lambda k: (-cores[k], k))
        rows = [(REASON_NAMES[k], f"{100 * cores[k] / all_cycles:.1f} %") for k in most]
        said = f"{self.instructions:,} warp instructions"
        return card(f"{self.cycles:,} modelled cycles", [said], ("reason", "of all sub-cores' cycles"), rows)

    @staticmethod
    def of(ends: Int, tally: Int, log: Int) -> Result:
        units = tally[Tally.UNITS : Tally.CORES].copy()
        units[Unit.TENSOR] //= SIXTEENTH
        return Result(
            int(ends.max()),
            int(tally[Tally.WARPS + Reason.ISSUED]),
            tally[: Tally.REASONS],
            tally[Tally.CORES : Tally.ROWS].reshape(-1, Tally.REASONS),
            tally[Tally.ROWS :].reshape(-1, Tally.REASONS),
            units[: len(Unit)],
            ends,
            log.reshape(-1, Note.WIDTH),
        )


class Model:
    """One kernel's trace on one chip, ready to time any schedule of the kernel."""

    def __init__(
        self,
        schedule: Schedule,
        trace: Trace,
        chip: Chip | str,
        parameters: Parameters | None = None,
        l2: L2 = L2.WARM,
    ) -> None:
        self.chip = chip_named(chip) if isinstance(chip, str) else chip
        self.parameters = parameters or load_parameters(self.chip.key)
        self.l2 = l2
        self.listing = schedule.listing
        self.header = header = trace.header
        threads = header.block[0] * header.block[1] * header.block[2]
        self.occupancy = occupancy(self.chip, threads, header.registers, header.shared_bytes)
        self.work = lay_out(trace, schedule.listing)
        grid = header.grid[0] * header.grid[1] * header.grid[2]
        self.blocks = -(-grid // self.chip.sm_count)
        """Blocks that one SM executes: the share of the grid, rounded up."""
        self.resident = min(self.occupancy.blocks, self.blocks)
        self.shared_bytes = self.resident * header.shared_bytes
        self.machine = self._machine(self.parameters)
        self.code = self._code(self.parameters)
        self._has_events = any(map(needs_sides, self.listing.instructions))
        self._begun: dict[int, tuple[Layout, Int]] = {}

    def with_parameters(self, parameters: Parameters, keeps_code: bool = False) -> Model:
        """The same kernel on the same chip under other numbers; its code is kept if no number that it
        depends on has changed."""
        other = copy(self)
        other.parameters = parameters
        other.machine = self._machine(parameters)
        other._begun = {}
        if not keeps_code:
            other.code = other._code(parameters)
        return other

    @property
    def traffic(self) -> Traffic | None:
        """Bytes between L2 and DRAM; None if the trace does not say what the whole launch touches."""
        if self.header.footprint is None:
            return None
        grid = self.header.grid
        blocks = grid[0] * grid[1] * grid[2]
        return traffic_of(self.header.footprint, blocks, self.chip, self.parameters, self.l2)

    def microseconds(self, cycles: float) -> float:
        """What a benchmark would see of so many cycles: at the chip's clock, with the launch."""
        return 1000 * cycles / self.chip.clock_khz + self.parameters["launch_time"]

    def _machine(self, parameters: Parameters) -> Machine:
        return machine_of(
            parameters, self.shared_bytes, share_of(self.header, self.chip, parameters, self.l2)
        )

    def _code(self, parameters: Parameters) -> Code:
        return Code(self.listing, parameters)

    def layout(self, blocks: int) -> Layout:
        """Where the records of a replay of so many blocks begin."""
        return self._beginning(blocks)[0]

    def _beginning(self, blocks: int) -> tuple[Layout, Int]:
        """The layout, and the state of an SM that has not begun."""
        found = self._begun.get(blocks)
        if found is None:
            per_block = int(self.work[Job.WARPS_PER_BLOCK])
            phases = int(self.work[Job.PHASES]) if self._has_events else None
            layout = layout_of(self.machine, self.code.needs, self.resident, per_block, blocks, phases)
            found = self._begun[blocks] = layout, empty_state(layout, per_block)
        return found

    def table(self, schedule: Schedule) -> Int:
        return self.code.table(schedule)

    def simulate(
        self, schedule: Schedule, seed: int = 0, blocks: int | None = None, logged: int = 0
    ) -> Result:
        """Replay a schedule once."""
        return self.replay(self.table(schedule), seed, blocks, logged)

    def replay(self, table: Int, seed: int = 0, blocks: int | None = None, logged: int = 0) -> Result:
        """Replay the records of a schedule once; keep the times of so many issues."""
        blocks = blocks or self.blocks
        layout, empty = self._beginning(blocks)
        rows = len(table) // Row.WIDTH
        tally = np.zeros(Tally.ROWS + rows * Tally.REASONS, np.int64)
        log = np.full(logged * Note.WIDTH, -1, np.int64)
        ends = replay(table, self.work, self.machine, layout, empty, self.resident, blocks, seed, tally, log)
        if not ends.all():
            raise CuasmrlError(_STANDS_STILL)
        return Result.of(ends, tally, log)

    def cycles(self, table: Int, seed: int = 0, blocks: int | None = None) -> int:
        """The cycles of `replay`, sooner: nothing is said about where they went."""
        blocks = blocks or self.blocks
        sheet = new_sheet(len(table) // Row.WIDTH, self.visits(blocks), NOTHING)
        return self.resumed(table, seed, blocks, sheet)[0]

    def resumed(
        self, table: Int, seed: int, blocks: int, sheet: Sheet, begun: Int | None = None
    ) -> tuple[int, tuple[Int, ...], int]:
        """The cycles; the state at each mark that was reached; and by how much it was behind its rival if it
        was given up, then there are no cycles.

        Begins with a state that an earlier replay had at a mark, if one is given, and then needs a sheet with
        what that replay had noted before.
        """
        layout, empty = self._beginning(blocks)
        ends, kept, behind = replay_time(
            table, self.work, self.machine, layout, empty if begun is None else begun, self.resident, blocks,
            seed, sheet,
        )  # fmt: skip
        if not (behind or ends.all()):
            raise CuasmrlError(_STANDS_STILL)
        return int(ends.max()), tuple(kept.reshape(-1, layout.size)), behind

    def visits(self, blocks: int) -> int:
        """Of blocks of the code, by all warps of so many blocks of the launch."""
        traced = int(self.work[Job.BLOCKS])
        of_block = np.diff(self._path_starts).reshape(traced, -1).sum(axis=1) // 2
        return int(of_block.sum() * (blocks // traced) + of_block[: blocks % traced].sum())

    @property
    def _path_starts(self) -> Int:
        first = self.work[Job.PATH_STARTS]
        return self.work[first : first + self.work[Job.WARPS_PER_BLOCK] * self.work[Job.BLOCKS] + 1]

    @property
    def executions(self) -> Int:
        """Of each position, by all traced warps."""
        work, paths = self.work, self._path_starts
        starts = work[work[Job.BLOCK_STARTS] : work[Job.PATH_STARTS]] // Row.WIDTH
        visits = np.bincount(work[paths[0] : paths[-1] : 2], minlength=len(starts))
        return np.repeat(visits, np.diff(np.append(starts, len(self.code.rows))))
