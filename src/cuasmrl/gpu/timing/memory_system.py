"""The chip around the SM: what of L2 and DRAM comes to one SM while the others are busy too.

Shares and rates, no second simulation. All SMs run the same kernel at the same time, so each gets an equal
part of the chip's L2 and DRAM bandwidth. What has to come from DRAM follows from the bytes that the whole
launch touches.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.chips import Chip
from cuasmrl.gpu.emulator.trace import SECTOR_BYTES, Footprint, Header
from cuasmrl.gpu.timing.parameters import Parameters
from cuasmrl.gpu.timing.records import PARTS

_PER_MILLE = 1000
_FAR_SHARE = 0.5
"""Of what L2 holds when an SM asks for the first time, where there are two partitions."""


class L2(StrEnum):
    """What L2 holds when the kernel starts."""

    WARM = "warm"
    """All that the kernel touches, as in a CUDA graph that runs it again and again."""
    AGAIN = "again"
    """What the same launch left there. As `WARM` if L2 can hold all of it; else nothing that helps, and
    what it wrote last."""
    COLD = "cold"
    """Nothing of it, but data that others have written and DRAM does not have yet: as in
    `triton.testing.do_bench`, which fills the cache with zeros first."""


@dataclass(frozen=True)
class Traffic:
    """Bytes that a launch moves between L2 and DRAM."""

    read: float
    written: float
    displaced: float
    """Written by others before, and thrown out by this launch."""

    @property
    def total(self) -> float:
        return self.read + self.written + self.displaced

    @property
    def mixed(self) -> float:
        """1 if as much is read as written, 0 if there is only one of the two."""
        return 2 * min(self.read, self.total - self.read) / self.total if self.total else 0.0


class Rates(NamedTuple):
    """What a sector costs an SM, in parts of a cycle, and where it comes from."""

    l2_read: int
    l2_written: int
    dram_read: int
    """Of a sector that is read for the first time in its block, times how often DRAM has to bring it."""
    dram_written: int


class Share(NamedTuple):
    """What comes to one SM."""

    full: Rates
    tail: Rates
    """While the last blocks run, and fewer SMs are busy."""
    tail_block: int
    """The first block of the SM that belongs to the tail."""
    dram_per_mille: int
    """Of the sectors that are read for the first time in their block."""
    block_interval: int
    """Parts of a cycle between two blocks that the chip gives to an SM."""
    far_per_mille: int
    """Of those of them that L2 holds: how many lie in the far partition."""
    port_sector: int
    """What a sector takes of the SM's own port to L2, in parts of a cycle."""
    l2_slack: int
    dram_slack: int
    """How far ahead of its share an SM may be as others are behind, in parts of a cycle."""


def fits(footprint: Footprint, chip: Chip) -> bool:
    """Can L2 hold all that a launch touches?"""
    return footprint.grid <= chip.l2_bytes


def traffic_of(footprint: Footprint, blocks: int, chip: Chip, parameters: Parameters, l2: L2) -> Traffic:
    """Every byte once if L2 is cold, and again what is touched in a later wave when L2 no longer has it."""
    if l2 is L2.WARM and not fits(footprint, chip):
        raise CuasmrlError(
            f"the kernel touches {footprint.grid / 1e6:.0f} MB, and the L2 cache of {chip.name} has "
            f"{chip.l2_bytes / 1e6:.0f} MB, so it cannot be warm; choose --l2 cold or --l2 again"
        )
    if l2 is not L2.COLD and fits(footprint, chip):
        return Traffic(0.0, 0.0, 0.0)
    capacity = chip.l2_bytes * parameters["l2_kept"]
    read, waves = footprint.read, blocks / footprint.wave
    touched_again = max(0.0, waves * read.wave - read.grid)
    since = min(footprint.grid, read.wave + footprint.written.wave)
    lost = max(0.0, 1 - capacity / since) if since else 0.0
    # What is written last stays in L2 when the kernel ends.
    kept = min(1.0, capacity / footprint.grid) if footprint.grid else 0.0
    stays = kept * footprint.written.grid
    return Traffic(
        read.grid + lost * touched_again,
        footprint.written.grid - stays,
        stays if l2 is L2.AGAIN else min(footprint.grid, capacity),
    )


def share_of(header: Header, chip: Chip, parameters: Parameters, l2: L2) -> Share:
    """What one SM gets while the grid of a launch runs on the chip."""
    _check(parameters)
    blocks = header.grid[0] * header.grid[1] * header.grid[2]
    footprint = header.footprint
    if footprint is None:
        if l2 is not L2.WARM:
            raise CuasmrlError(
                f"the trace of {header.kernel} does not say what the whole launch touches, which a {l2} L2 "
                "needs; record it again, or choose --l2 warm"
            )
        read_share, write_share, far_share = parameters["dram_share"], 0.0, 0.0
        displacing = read_once = written_once = 0.0
        mixed = 0.0
    else:
        traffic = traffic_of(footprint, blocks, chip, parameters, l2)
        read_share = _ratio(traffic.read, blocks * footprint.read.block)
        write_share = _ratio(traffic.written, blocks * footprint.written.block)
        far_share = _FAR_SHARE
        mixed = traffic.mixed
        # Whatever comes into L2 throws something out.
        displacing = _ratio(traffic.displaced, footprint.grid)
        read_once = _ratio(footprint.read.grid, blocks * footprint.read.block)
        written_once = _ratio(footprint.written.grid, blocks * footprint.written.block)
    rest = blocks % chip.sm_count
    alone, both = parameters["dram_efficiency"], parameters["dram_mixed_efficiency"]
    efficiency = alone - (alone - both) * mixed

    def rates(busy: int) -> Rates:
        port = parameters["l2_bytes"]
        dram_bytes = dram_bytes_per_cycle(chip) * efficiency / busy
        sector = SECTOR_BYTES * PARTS / dram_bytes
        return Rates(
            round(SECTOR_BYTES * PARTS / min(port, parameters["l2_chip_bytes"] / busy)),
            round(SECTOR_BYTES * PARTS / min(port, parameters["l2_written_bytes"] / busy)),
            round(sector * (read_share + displacing * read_once)),
            round(sector * (write_share + displacing * written_once)),
        )

    full = rates(min(blocks, chip.sm_count))
    return Share(
        full,
        rates(rest) if rest else full,
        blocks // chip.sm_count,
        round(_PER_MILLE * read_share),
        round(PARTS * min(blocks, chip.sm_count) / parameters["block_rate"]),
        round(_PER_MILLE * far_share),
        round(SECTOR_BYTES * PARTS / parameters["l2_bytes"]),
        round(PARTS * parameters["share_slack"]),
        round(PARTS * parameters["share_slack"] * (1 - mixed)),
    )


def dram_bytes_per_cycle(chip: Chip) -> float:
    """The peak of the chip, in cycles of the SMs; data comes at both edges of the memory clock."""
    return 2 * chip.memory_clock_khz * chip.memory_bus_bits / 8 / chip.clock_khz


def _ratio(part: float, whole: float) -> float:
    return min(1.0, part / whole) if whole else 0.0


def _check(parameters: Parameters) -> None:
    if parameters["l2_bytes"] > parameters["l2_chip_bytes"]:
        raise CuasmrlError(
            f"The timing data of {parameters.chip} contradicts itself: one SM gets "
            f"{parameters['l2_bytes']:g} bytes a cycle from L2 (l2_bytes), the whole chip "
            f"{parameters['l2_chip_bytes']:g} (l2_chip_bytes); correct the chip's file."
        )
