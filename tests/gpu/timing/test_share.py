"""Which blocks of a launch stand for all of them."""

from statistics import fmean

import numpy as np
import pytest

from cuasmrl import workloads
from cuasmrl.binary.cubin import Cubin
from cuasmrl.gpu.chips import chip
from cuasmrl.gpu.emulator import Emulator
from cuasmrl.gpu.launches.launch import Launch
from cuasmrl.gpu.timing.share import spread_blocks, trace_share, traced_blocks, typical_blocks, work_of


@pytest.mark.parametrize("period", [4, 16, 32, 64, 20])
@pytest.mark.parametrize("rows", [48, 96, 192])
def test_spread_blocks_have_as_much_to_do_as_all(period: int, rows: int) -> None:
    """Work that grows with one coordinate; with the number of a block that repeats, and without repeating."""
    x = [1 + block % period for block in range(period * rows)]
    y = [1 + block // period for block in range(period * rows)]
    for work in (x, y):
        for grid, error in (((period, rows, 1), 0.03), ((period * rows, 1, 1), 0.25)):
            blocks = spread_blocks(grid, 24)
            assert fmean(work[block] for block in blocks) == pytest.approx(fmean(work), rel=error)


def test_spread_blocks_are_blocks_of_the_grid() -> None:
    for grid in ((1, 1, 1), (3, 2, 1), (1, 1, 500), (7, 11, 13)):
        blocks = spread_blocks(grid, 24)
        assert blocks == sorted(set(blocks))
        assert blocks[0] >= 0
        assert blocks[-1] < grid[0] * grid[1] * grid[2]


def test_typical_blocks_by_hand() -> None:
    blocks, work = np.array([5, 9, 20, 33, 60, 61]), np.array([60, 10, 20, 50, 40, 30])
    assert typical_blocks(blocks, work, 2) == [20, 33]
    assert typical_blocks(blocks, work, 6) == blocks.tolist()
    assert typical_blocks(blocks, work, 8) == blocks.tolist()


def launched(name: str, **sizes: int) -> tuple[Emulator, Launch]:
    workload = workloads.get(name)
    built = workload.build(workload.configs[0], 80, sizes)
    launch = workload.launch(built, workload.inputs(sizes), sizes)
    return Emulator(Cubin.parse(built.cubin, name), built.kernel, chip("a100")), launch


def test_a_triangular_problem_is_traced_as_a_whole() -> None:
    """The blocks of one SM are all of one kind here: 8 rows of tiles, and 108 SMs."""
    emulator, launch = launched("flash_attention_causal", B=1, H=128, S=512, D=32)
    everything = work_of(emulator.trace(launch, blocks=range(8)), emulator.listing)
    assert np.ptp(everything) > everything.mean()
    first = traced_blocks(launch, emulator)
    trace = trace_share(launch, emulator)
    assert len(trace.blocks) == len(first) < launch.blocks // 108
    assert trace.header.footprint is not None
    found = work_of(trace, emulator.listing).mean()
    assert found == pytest.approx(everything.mean(), rel=0.1)


def test_of_like_blocks_those_of_the_first_sm_are_traced() -> None:
    emulator, launch = launched("vector_add", n=1 << 22)
    trace = trace_share(launch, emulator)
    assert trace.blocks.tolist() == traced_blocks(launch, emulator)
    assert len(trace.blocks) * 108 < launch.blocks
