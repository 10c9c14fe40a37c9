"""The chip around the SM: traffic and shares by hand, and what they do to whole kernels."""

from dataclasses import replace

import numpy as np
import pytest

from cuasmrl.compiled import compiled
from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.chips import chip
from cuasmrl.gpu.emulator import Footprint, Header, Touched, Trace
from cuasmrl.gpu.timing import L2, Model, Reason, bounds_of, load_parameters
from cuasmrl.gpu.timing.code import Int
from cuasmrl.gpu.timing.memory import wait_for_share
from cuasmrl.gpu.timing.memory_system import Traffic, dram_bytes_per_cycle, share_of, traffic_of
from cuasmrl.gpu.timing.records import PARTS, Sm
from tests.traced_kernels import traced

A100 = chip("a100")
MB = 1e6


@compiled
def waited(state: Int, due: int, slack: int, at: int, cost: int) -> int:
    return wait_for_share(state, due, slack, at, cost)


def stream(read: float, written: float, blocks: int) -> Footprint:
    """Blocks that share nothing, all in one wave."""
    return Footprint(Touched(read / blocks, read, read), Touched(written / blocks, written, written), blocks)


def header(footprint: Footprint | None, blocks: int) -> Header:
    return Header("by_hand", 80, "", (blocks, 1, 1), (128, 1, 1), 32, 0, 4, footprint)


def test_a_warm_cache_has_all() -> None:
    parameters = load_parameters("a100")
    traffic = traffic_of(stream(8 * MB, 4 * MB, 1000), 1000, A100, parameters, L2.WARM)
    assert traffic.total == 0


def test_a_cold_cache_reads_every_byte_once_and_throws_others_data_out() -> None:
    parameters = load_parameters("a100")
    traffic = traffic_of(stream(8 * MB, 4 * MB, 1000), 1000, A100, parameters, L2.COLD)
    assert (traffic.read, traffic.written, traffic.displaced) == (8 * MB, 0, 12 * MB)


def test_a_large_stream_leaves_only_its_last_part_in_the_cache() -> None:
    parameters = load_parameters("a100").with_values({"l2_kept": 1.0})
    capacity = A100.l2_bytes
    traffic = traffic_of(stream(8 * capacity, 2 * capacity, 1000), 1000, A100, parameters, L2.COLD)
    assert traffic.read == 8 * capacity
    assert traffic.written == pytest.approx(0.9 * 2 * capacity)
    assert traffic.displaced == capacity


def test_what_a_later_wave_touches_again_is_read_again_if_the_cache_is_too_small() -> None:
    parameters = load_parameters("a100").with_values({"l2_kept": 1.0})
    capacity = float(A100.l2_bytes)
    # Ten waves; each reads twice the capacity, and all of them the same.
    footprint = Footprint(Touched(1e4, 2 * capacity, 2 * capacity), Touched(0, 0, 0), 100)
    traffic = traffic_of(footprint, 1000, A100, parameters, L2.COLD)
    assert traffic.read == pytest.approx(2 * capacity + 0.5 * 18 * capacity)
    small = Footprint(Touched(1e4, capacity / 2, capacity / 2), Touched(0, 0, 0), 100)
    assert traffic_of(small, 1000, A100, parameters, L2.COLD).read == capacity / 2


def test_a_large_stream_that_runs_again_throws_out_what_it_wrote_last() -> None:
    parameters = load_parameters("a100")
    large = stream(900 * MB, 100 * MB, 1000)
    traffic = traffic_of(large, 1000, A100, parameters, L2.AGAIN)
    assert traffic.read == 900 * MB
    assert traffic.displaced == pytest.approx(0.1 * 0.75 * A100.l2_bytes)
    assert traffic.total == pytest.approx(1000 * MB)
    assert traffic_of(stream(8 * MB, 4 * MB, 1000), 1000, A100, parameters, L2.AGAIN).total == 0


def test_shares_by_hand() -> None:
    parameters = load_parameters("a100").with_values(
        {"l2_chip_bytes": 3456.0, "l2_bytes": 64.0, "dram_efficiency": 1.0, "block_rate": 1.0}
    )
    share = share_of(header(None, 108 * 3 + 27), A100, parameters, L2.WARM)
    # 3,456 bytes a cycle over 108 SMs are 32 for each, a sector a cycle; over 27 it is the port that limits.
    assert (share.full.l2_read, share.tail.l2_read) == (PARTS, PARTS // 2)
    assert (share.tail_block, share.block_interval) == (3, 108 * PARTS)
    assert share.dram_per_mille == 0
    cold = share_of(header(stream(1000 * MB, 0, 351), 351), A100, parameters, L2.COLD)
    assert cold.dram_per_mille == 1000
    sector = 32 / (dram_bytes_per_cycle(A100) / 108)
    displaced = 0.75 * A100.l2_bytes / (1000 * MB)
    assert cold.full.dram_read == pytest.approx(PARTS * sector * (1 + displaced), rel=0.01)


def test_writes_take_more_of_l2() -> None:
    parameters = load_parameters("a100").with_values(
        {"l2_chip_bytes": 3456.0, "l2_written_bytes": 1728.0, "l2_bytes": 64.0}
    )
    share = share_of(header(None, 108), A100, parameters, L2.WARM)
    assert (share.full.l2_read, share.full.l2_written) == (PARTS, 2 * PARTS)
    assert share.port_sector == PARTS // 2


def test_dram_reaches_less_where_reads_and_writes_are_mixed() -> None:
    parameters = load_parameters("a100").with_values(
        {"l2_kept": 1.0, "dram_efficiency": 1.0, "dram_mixed_efficiency": 0.8, "share_slack": 100.0}
    )
    moved = ((8, 0, 0), (0, 8, 0), (4, 3, 1), (6, 2, 0), (0, 0, 0))
    assert [Traffic(*parts).mixed for parts in moved] == [0, 0, 1, 0.5, 0]
    # So much is read that what L2 keeps or throws out does not count.
    cold = {
        written: share_of(header(stream(1e13, written, 108), 108), A100, parameters, L2.COLD)
        for written in (0.0, 1e13)
    }
    assert cold[1e13].full.dram_read == pytest.approx(cold[0].full.dram_read / 0.8, rel=0.01)
    # A read waits for the writes before it.
    assert cold[0].dram_slack == pytest.approx(100 * PARTS, rel=0.01)
    assert cold[1e13].dram_slack == pytest.approx(0, abs=0.01 * PARTS)
    assert cold[1e13].l2_slack == 100 * PARTS


def test_an_sm_waits_for_little_of_a_burst_and_for_all_of_a_stream() -> None:
    state = np.zeros(int(Sm.WIDTH), np.int64)

    def wait(at: int, cost: int) -> int:
        return int(waited(state, int(Sm.DRAM_DUE), 1000, at, cost))

    assert wait(0, 100) == 0
    assert wait(0, 100) == 100 - 1000 * 100 // 1100
    assert wait(10_000, 100) == 0, "what was asked for long ago is through"
    waits = [wait(10_000, 1000) for _ in range(1000)]
    assert waits[-1] == pytest.approx(100 + 999 * 1000 - 1000, rel=0.01)
    assert state[Sm.DRAM_DUE] == 10_000 + 100 + 1000 * 1000


def test_the_next_block_starts_after_a_while() -> None:
    kernel = traced("vector_add")
    model = Model(kernel.original, kernel.trace, kernel.chip, l2=L2.WARM)
    blocks = model.resident + 1
    # Else the end would be that of the last store.
    free = {
        "block_rate": 1e6,
        "l2_bytes": 1e6,
        "l2_chip_bytes": 1e9,
        "l2_written_bytes": 1e9,
        "l2_jitter": 0.0,
    }

    def end(**changes: float) -> int:
        changed = model.with_parameters(model.parameters.with_values({**free, **changes}))
        return int(changed.simulate(kernel.original, 0, blocks).block_end[-1])

    assert end(block_start=500) - end(block_start=300) == pytest.approx(200, abs=10)
    assert end(warp_start=8) > end(warp_start=0)


def test_the_peak_of_a_chip() -> None:
    assert dram_bytes_per_cycle(A100) * A100.clock_khz * 1e3 == pytest.approx(1555e9, rel=1e-3)
    assert dram_bytes_per_cycle(chip("a100-80gb")) * 1.41e9 == pytest.approx(2039e9, rel=1e-3)


def test_a_kernel_larger_than_the_cache_is_never_warm() -> None:
    with pytest.raises(CuasmrlError, match="so it cannot be warm; choose --l2 cold"):
        share_of(header(stream(100 * MB, 0, 10), 10), A100, load_parameters("a100"), L2.WARM)


def test_a_trace_without_a_footprint_cannot_be_cold() -> None:
    for l2 in (L2.COLD, L2.AGAIN):
        with pytest.raises(CuasmrlError, match=f"which a {l2} L2 needs; record it again"):
            share_of(header(None, 10), A100, load_parameters("a100"), l2)


def test_a_share_above_the_whole_is_refused() -> None:
    parameters = load_parameters("a100").with_values({"l2_bytes": 128.0, "l2_chip_bytes": 100.0})
    with pytest.raises(CuasmrlError, match="contradicts itself"):
        share_of(header(None, 10), A100, parameters, L2.WARM)


def test_a_stream_from_dram_goes_at_the_speed_of_dram() -> None:
    """All the bytes it moves, over the share of the peak that a chip reaches, are nearly all of its time."""
    kernel = traced("vector_add")
    model = kernel.model
    assert model.l2 is L2.COLD
    assert model.traffic is not None
    found = model.simulate(kernel.original).cycles
    rate = dram_bytes_per_cycle(kernel.chip) * model.parameters["dram_efficiency"]
    assert model.traffic.total / rate <= found * 1.02
    assert found <= 1.6 * model.traffic.total / rate
    assert bounds_of(model)[0].resource == "DRAM bandwidth"
    assert bounds_of(model)[0].cycles <= found


def test_a_warm_cache_is_faster_than_a_cold_one_and_free_bandwidth_faster_still() -> None:
    kernel = traced("vector_add")
    cold = kernel.model
    warm = Model(kernel.original, kernel.trace, kernel.chip, l2=L2.WARM)
    wide = warm.with_parameters(warm.parameters.with_values({"l2_bytes": 1e6, "l2_chip_bytes": 1e9}))
    times = [model.simulate(kernel.original).cycles for model in (cold, warm, wide)]
    assert times == sorted(times, reverse=True)
    assert times[0] > times[1]


def test_cycles_spent_on_dram_have_their_name() -> None:
    kernel = traced("vector_add")
    for model in (kernel.model, Model(kernel.original, kernel.trace, kernel.chip, l2=L2.WARM)):
        result = model.simulate(kernel.original)
        assert (result.core_reasons.sum(axis=1) == result.cycles).all()
        assert result.warp_reasons.sum() == result.row_reasons.sum()
        assert (result.warp_reasons[Reason.DRAM] > 0) == (model.l2 is L2.COLD)


def test_later_blocks_have_lines_of_their_own() -> None:
    """More blocks of a stream than were traced: each still brings its own data through L2."""
    kernel = traced("vector_add")
    fewer = replace(kernel, trace=_first_blocks(kernel.trace, 8)).model
    known = kernel.model
    assert fewer.simulate(kernel.original).cycles == pytest.approx(
        known.simulate(kernel.original).cycles, rel=0.1
    )


def _first_blocks(trace: Trace, count: int) -> Trace:
    """The same trace of fewer blocks."""
    warps = count * trace.header.warps_per_block
    stays = trace.access_warp < warps
    accesses = {
        name: getattr(trace, name)[stays]
        for name in ("access_warp", "access_position", "access_instruction", "access_lanes", "access_lines",
                     "access_passes", "access_base", "access_pattern")
    }  # fmt: skip
    return replace(trace, blocks=trace.blocks[:count], path_of_warp=trace.path_of_warp[:warps], **accesses)
