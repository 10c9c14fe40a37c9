"""Products of warpgroups in the model: their engine, their tiles, the groups that are awaited."""

from __future__ import annotations

from functools import lru_cache

import pytest

from cuasmrl import workloads
from cuasmrl.bench.streams import issues, listing, round_cycles, run
from cuasmrl.errors import CuasmrlError
from cuasmrl.explain.waits.holds import holds_of
from cuasmrl.gpu.chips import chip
from cuasmrl.gpu.timing import Reason, Unit, bounds_of, sanitize
from cuasmrl.gpu.timing.parameters import load_parameters
from cuasmrl.gpu.traced import TracedKernel
from cuasmrl.schedule import Schedule
from cuasmrl.workloads.tracing import trace_workload
from tests.gpu.timing.rescheduled import schedules_on_chips

WIDE = "HGMMA.64x256x16.F32 R24, gdesc[UR8], R24"
NARROW = "HGMMA.64x64x16.F32 R24, gdesc[UR8], R24"
OTHER = "HGMMA.64x64x16.F32 R56, gdesc[UR8], R56"
LATENCY = 30


def waited(*lines: str, warps: int = 4) -> int:
    """Cycles from the issue of the first of these lines to that of an instruction behind the last."""
    found = issues(run(listing([*lines, "IADD3 R1, R2, R3, RZ"], 90), "h100", warps=warps))
    return found[len(lines)] - found[0]


def test_a_group_is_awaited() -> None:
    assert load_parameters("h100")["product_latency"] == LATENCY
    for product, cycles in ((WIDE, 128), (NARROW, 32)):
        alone = waited(f"{product}, gsb0", "WARPGROUP.DEPBAR.LE gsb0, 0x0")
        assert cycles + LATENCY <= alone <= cycles + LATENCY + 8
        after = waited(product, product, f"{product}, gsb0", "WARPGROUP.DEPBAR.LE gsb0, 0x0")
        assert after == alone + 2 * cycles


def test_a_wait_lets_younger_groups_run() -> None:
    first, both = f"{NARROW}, gsb0", (f"{NARROW}, gsb0", f"{OTHER}, gsb0")
    alone = waited(first, "WARPGROUP.DEPBAR.LE gsb0, 0x0")
    assert waited(*both, "WARPGROUP.DEPBAR.LE gsb0, 0x1") == alone
    assert waited(*both, "WARPGROUP.DEPBAR.LE gsb0, 0x0") == alone + 32
    assert waited(first, "WARPGROUP.DEPBAR.LE gsb0, 0x1") < 16


def test_nothing_else_waits() -> None:
    assert waited(f"{WIDE}, gsb0", "FADD R1, R2, R3") < 8


def test_warpgroups_share_the_engine() -> None:
    lines = [f"{NARROW}, gsb0", "WARPGROUP.DEPBAR.LE gsb0, 0x4"]
    assert round_cycles(lines, "h100", 90, 4) == 32
    assert round_cycles(lines, "h100", 90, 8) == pytest.approx(64, rel=0.06)


def test_tiles_are_read_through_the_data_port() -> None:
    """A product of 64 columns takes all turns of the port, one of 256 leaves a third of them."""
    loads = ["LDS R4, [R2]"] * 4
    for product, cycles, least in ((NARROW, 32, 46), (WIDE, 128, 128)):
        beside = round_cycles([f"{product}, gsb0", *loads, "WARPGROUP.DEPBAR.LE gsb0, 0x4"], "h100", 90, 4)
        assert least <= beside <= max(cycles + 16, least) + 4


def test_chips_without_the_engine_say_so() -> None:
    with pytest.raises(CuasmrlError, match="product_columns"):
        run(listing([f"{NARROW}, gsb0"], 90), "a100", warps=4)


@lru_cache
def traced(name: str, config: str) -> TracedKernel:
    workload = workloads.get(name)
    return trace_workload(workload, workload.config(config), chip("h100"), workload.shapes[0])


KERNELS = [("bmm", "m64n64k64_w4_s3"), ("flash_attention", "m128n64_w4_s2")]


@pytest.mark.parametrize(("name", "config"), KERNELS)
def test_schedules_of_compiled_kernels(name: str, config: str) -> None:
    """Cycles have names, both replays agree, no bound is above them, on chips of the ensemble too."""
    kernel = traced(name, config)
    assert any(bound.resource == "tensor engine" for bound in bounds_of(kernel.model))
    for model, schedule in schedules_on_chips(kernel, seed=7, count=2):
        table = model.table(schedule)
        result = model.replay(table, 1, model.resident + 1)
        assert (result.core_reasons.sum(axis=1) == result.cycles).all()
        assert (result.row_reasons.sum(axis=0) == result.warp_reasons).all()
        assert result.unit_busy[Unit.TENSOR] > 0
        assert model.cycles(table, 1, model.resident + 1) == result.cycles
        whole = model.cycles(table, 1)
        assert all(bound.cycles <= whole for bound in bounds_of(model))


def test_who_waits_for_products_is_said() -> None:
    kernel = traced(*KERNELS[1])
    result = kernel.model.simulate(kernel.original, logged=100_000)
    assert sanitize(kernel.original, result) == ()
    holds = [hold for hold in holds_of(result.log, kernel.original) if hold is not None]
    engine = [hold for hold in holds if hold.reason is Reason.TENSOR_ENGINE]
    code = Schedule.original(kernel.listing).listing.instructions
    assert {code[hold.by].opcode for hold in engine} == {"WARPGROUP"}
