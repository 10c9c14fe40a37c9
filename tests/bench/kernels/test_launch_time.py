"""Time of a launch: cycles over the clock, and long launches extrapolated by waves."""

import pytest

from cuasmrl.bench.kernels.launch_time import Condition, launch_time, sm_cycles
from cuasmrl.bench.kernels.subjects import subject_of
from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.chips import chip
from cuasmrl.gpu.traced import TracedKernel
from cuasmrl.workloads.tracing import trace_workload

WARM = Condition("warm", "device")


def kernel(sizes: dict[str, int]) -> TracedKernel:
    subject = subject_of("gemm", "m64n64k32_w4_s3", sizes, 80)
    return trace_workload(subject.workload, subject.config, chip("a100"), sizes)


def test_a_slower_clock_takes_longer() -> None:
    traced = kernel({"M": 256, "N": 256, "K": 128})
    fast, slow = launch_time(traced, 1410, WARM), launch_time(traced, 705, WARM)
    assert slow.microseconds > fast.microseconds > 0
    assert fast.microseconds == pytest.approx(fast.cycles / 1410, rel=0.5)


def test_numbers_of_the_chip_can_be_changed() -> None:
    traced = kernel({"M": 256, "N": 256, "K": 128})
    changed = launch_time(traced, 1410, Condition("warm", "graph"), {"launch_time": 9.0})
    assert changed.microseconds == launch_time(traced, 1410, WARM).microseconds + 9
    with pytest.raises(CuasmrlError, match="no 'wind'"):
        launch_time(traced, 1410, WARM, {"wind": 1.0})


def test_a_kernel_larger_than_l2_finds_what_it_wrote_last() -> None:
    """Warm or cold, it moves its bytes; only the second time are those that it throws out its own."""
    subject = subject_of("copy", "v4_b256", {"n": 16_000_000}, 80)
    traced = trace_workload(subject.workload, subject.config, chip("a100"), subject.sizes)
    again, cold = (launch_time(traced, 1410, Condition(l2, "device")) for l2 in ("warm", "cold"))
    assert again.dram_bytes == pytest.approx(subject.moved_bytes, rel=0.01)
    assert cold.dram_bytes < again.dram_bytes
    assert again.microseconds < 0.95 * cold.microseconds


@pytest.mark.parametrize("columns", [8192, 8256])
def test_extrapolated_waves_are_like_replayed_ones(monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    """Also if the last wave has fewer blocks than the others."""
    traced = kernel({"M": 4096, "N": columns, "K": 64})
    assert traced.model.blocks > 8 * traced.model.resident
    whole = sm_cycles(traced.model, traced, 0)
    assert whole == traced.model.simulate(traced.original, 0).cycles
    monkeypatch.setattr("cuasmrl.bench.kernels.launch_time._REPLAYED", 0)
    assert sm_cycles(traced.model, traced, 0) == pytest.approx(whole, rel=0.08)
    assert sm_cycles(traced.model, traced, 0) != whole
