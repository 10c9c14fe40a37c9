"""What a launch touches: by capture and recapture, and beside what the arguments say."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuasmrl import workloads
from cuasmrl.binary.cubin import Cubin
from cuasmrl.gpu.chips import chip
from cuasmrl.gpu.emulator import Emulator, Footprint, Trace
from cuasmrl.gpu.emulator.footprint import (
    distinct,
    first_touches,
    footprint_of,
    readers,
    sampled_blocks,
    writers,
)
from cuasmrl.gpu.launches.launch import Launch
from cuasmrl.gpu.timing.share import sample_size, trace_share, with_whole_footprint


def emulator_of(name: str, sizes: dict[str, int] | None = None, config: int = 0) -> tuple[Emulator, Launch]:
    workload = workloads.get(name)
    built = workload.build(workload.configs[config], 80, sizes)
    launch = workload.launch(built, workload.inputs(sizes), sizes)
    return Emulator(Cubin.parse(built.cubin, name), built.kernel, chip("a100")), launch


def footprint(name: str, sizes: dict[str, int] | None = None) -> Footprint:
    emulator, launch = emulator_of(name, sizes)
    found = trace_share(launch, emulator).header.footprint
    assert found is not None
    return found


def test_blocks_that_share_nothing_go_on_sharing_nothing() -> None:
    assert distinct(100, 1600, 16, 5000) == 500_000


def test_blocks_that_share_all_touch_no_more() -> None:
    assert distinct(100, 100, 16, 5000) == pytest.approx(100)


def test_rows_of_tiles_are_counted_from_those_that_were_met() -> None:
    """32 tiles of which each block reads one: 16 blocks at random meet 12.7 of them on average."""
    met = 32 * (1 - (31 / 32) ** 16)
    assert distinct(100, 100 * met, 16, 1024) == pytest.approx(3200, rel=1e-3)


@given(st.integers(1, 200), st.integers(1, 40), st.integers(1, 5000), st.floats(0, 1))
def test_never_less_than_was_seen_nor_more_than_all(each: int, sampled: int, more: int, apart: float) -> None:
    union = each * (1 + apart * (sampled - 1))
    found = distinct(each, union, sampled, sampled + more)
    assert union - 1e-6 <= found <= each * (sampled + more) * (1 + 1e-9)


def test_samples_are_drawn_once_and_for_all() -> None:
    wave, grid = sampled_blocks(10_000, 864, 24)
    assert (wave, grid) == sampled_blocks(10_000, 864, 24)
    assert len(wave) == len(grid) == 24
    assert max(wave) - min(wave) < 864
    assert sampled_blocks(10, 864, 24) == (list(range(10)), list(range(10)))


def test_blocks_that_take_long_are_sampled_less() -> None:
    emulator, launch = emulator_of("vector_add")
    trace = emulator.trace(launch, blocks=[0, 1])
    assert sample_size(trace) == 24
    many = np.repeat(trace.access_warp, 50_000)
    assert sample_size(replace(trace, access_warp=many)) == 3


def test_a_stream_touches_every_byte_once() -> None:
    found = footprint("vector_add")
    n = workloads.get("vector_add").sizes["n"]
    assert (found.read.grid, found.written.grid) == (2 * 2 * n, 2 * n)
    assert found.read.wave <= found.read.grid


def test_weights_that_all_blocks_read_count_once() -> None:
    """RMS norm: every block has its own rows, and all have the same weights."""
    sizes = dict(workloads.get("rmsnorm").sizes)
    found = footprint("rmsnorm")
    rows = 2 * sizes["B"] * sizes["H"] * sizes["S"] * sizes["D"]
    assert rows <= found.read.grid <= rows * 1.01


def test_operands_of_a_product_are_found_within_a_tenth() -> None:
    sizes = {"M": 1024, "N": 1024, "K": 256}
    found = footprint("gemm_leaky_relu", sizes)
    assert found.read.grid == pytest.approx(2 * 2 * 1024 * 256, rel=0.2)
    assert found.written.grid == 2 * 1024 * 1024


def test_a_sample_agrees_with_the_whole() -> None:
    emulator, launch = emulator_of("gemm_leaky_relu", {"M": 512, "N": 512, "K": 128})
    whole = with_whole_footprint(emulator.trace(launch), launch, emulator).header.footprint
    assert whole is not None
    assert whole.read.grid == 2 * 2 * 512 * 128
    sample = trace_share(launch, emulator).header.footprint
    assert sample is not None
    assert sample.read.grid == pytest.approx(whole.read.grid, rel=0.25)
    assert sample.read.block == whole.read.block


def test_no_more_is_touched_of_a_buffer_than_it_has() -> None:
    """Three blocks of a large grid share nothing, and there is no telling that others do."""
    emulator, launch = emulator_of("gemm_leaky_relu", {"M": 1024, "N": 1024, "K": 128})
    # Of 16 by 16 tiles, in groups of eight rows: no two of these are in one row or one column.
    assert launch.blocks == 256
    chosen = [0, 77, 255]
    sample = emulator.trace(launch, blocks=chosen)
    operands = 2 * 2 * 1024 * 128

    def found(extents: list[tuple[int, int]]) -> float:
        return footprint_of(sample, emulator.listing, chosen, chosen, 108, extents).read.grid

    assert found([]) > 2 * operands
    assert found(emulator.extents(launch)) == operands


def test_who_touches_nothing_has_no_footprint() -> None:
    emulator, launch = emulator_of("softmax")
    trace = emulator.trace(launch, blocks=[0, 1])
    nowhere = replace(trace, access_base=np.full_like(trace.access_base, -1))
    found = footprint_of(nowhere, emulator.listing, [0, 1], [0, 1], 108, [])
    assert found.read.grid == found.written.grid == 0


def test_only_the_first_touch_of_a_block_counts() -> None:
    emulator, launch = emulator_of("softmax")
    trace = emulator.trace(launch, blocks=[0, 1])
    access, sector = first_touches(trace, readers(emulator.listing))
    block = trace.access_warp[access] // trace.header.warps_per_block
    assert len({*zip(block.tolist(), sector.tolist(), strict=True)}) == len(sector)
    assert readers(emulator.listing).isdisjoint(writers(emulator.listing))


def test_a_footprint_survives_the_file(tmp_path: Path) -> None:
    emulator, launch = emulator_of("vector_add")
    trace = trace_share(launch, emulator)
    trace.save(tmp_path / "t.trace")
    assert Trace.load(tmp_path / "t.trace").header == trace.header
