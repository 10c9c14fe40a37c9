"""Time of a launch: cycles over the clock, and long launches extrapolated by waves."""

import pytest

from cuasmrl.bench.kernels.launch_time import Condition, launch_time, sm_cycles
from cuasmrl.bench.kernels.subjects import subject_of
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
