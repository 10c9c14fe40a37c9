"""Code that measures gets the time of the model: the autotuner, and Triton's benchmark function."""

from dataclasses import replace
from typing import Any

import pytest
import torch
import triton
import triton.testing

import cuasmrl.gpu.virtual
from cuasmrl import workloads
from cuasmrl.gpu.chips import CHIPS, chip
from cuasmrl.gpu.launches.launch import Launch
from cuasmrl.gpu.timing.uncertainty import measure
from cuasmrl.gpu.virtual import Launched, wrap
from cuasmrl.gpu.virtual.benchmark import benchmark
from cuasmrl.gpu.virtual.modelled import SEEDS
from cuasmrl.workloads.kernels.normalisation import softmax
from cuasmrl.workloads.tracing import trace_workload
from tests.gpu.virtual import kernels
from tests.gpu.virtual.conftest import Recorder

CYCLES_IN_A_MILLISECOND = chip("a100").clock_khz


def call() -> None:
    x = torch.zeros(128)
    kernels.add[(1,)](x, x, x, 128, BLOCK=128)


def milliseconds(cycles: float) -> Any:
    return pytest.approx(cycles / CYCLES_IN_A_MILLISECOND, abs=1e-9)


def test_autotune_picks_the_fastest(a100: Recorder) -> None:
    costs = {16: 300, 8: 100, 4: 200}
    a100.effect = lambda launch: costs[launch.grid[0]]
    x = torch.zeros(1024)
    kernels.tuned[lambda meta: (1024 // meta["BLOCK"],)](x, x, 1024)
    assert kernels.tuned.best_config.kwargs == {"BLOCK": 128}
    assert [launch.grid[0] for launch in a100.timed] == [16, 8, 4]
    assert [launch.grid[0] for launch in a100.launches] == [8]
    assert kernels.tuned.configs_timings[kernels.tuned.best_config] == [milliseconds(100)] * 3


def test_autotune_goes_on_after_the_virtual_gpu(recorder: Recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    """The autotuner keeps its benchmark function; afterwards it has to be that of the driver in charge."""

    class Theirs:
        def get_benchmarker(self) -> Any:
            return lambda kernel_call, quantiles, **options: ["theirs", quantiles, options]

    monkeypatch.setattr(triton.runtime.driver, "_active", Theirs())
    with cuasmrl.gpu.virtual.active("a100"):
        kept = triton.runtime.driver.active.get_benchmarker()
        assert kept is benchmark
    given: Any = kept(call, quantiles=(0.5,), rep=7)
    assert given == ["theirs", (0.5,), {"rep": 7}]


def test_forms_of_the_figure(a100: Recorder) -> None:
    a100.effect = lambda launch: 40
    assert benchmark(call) == milliseconds(40)
    assert benchmark(call, quantiles=(0.5, 0.2)) == [milliseconds(40)] * 2
    assert benchmark(call, return_mode="all") == [milliseconds(40)]

    def twice() -> None:
        call()
        call()

    assert benchmark(twice, warmup=1, rep=1) == milliseconds(80)
    assert len(a100.timed) == 5
    assert not a100.launches


def test_an_error_while_measuring_leaves_the_device_running(a100: Recorder) -> None:
    def fails() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        benchmark(fails)
    call()
    assert len(a100.launches) == 1


@pytest.mark.parametrize("rep", [100, 10_000])
def test_do_bench_runs_a_few_times_only(a100: Recorder, rep: int) -> None:
    a100.effect = lambda launch: 500
    assert triton.testing.do_bench(call, rep=rep) == milliseconds(500)
    assert triton.testing.do_bench(call, rep=rep, quantiles=[0.5, 0.9]) == [milliseconds(500)] * 2
    assert len(a100.launches) < 20


def test_launches_are_timed_only_while_somebody_looks(a100: Recorder) -> None:
    clock = triton.runtime.driver.active.get_device_interface()
    call()
    assert not a100.timed
    start, end = clock.Event(enable_timing=True), clock.Event(enable_timing=True)
    start.record()
    call()
    call()
    end.record()
    assert start.elapsed_time(end) == milliseconds(2000)
    del start, end
    call()
    assert (len(a100.timed), len(a100.launches)) == (2, 4)


def test_bandwidth_of_the_chip(a100: Recorder) -> None:
    assert triton.testing.get_dram_gbps() == pytest.approx(1555, rel=1e-3)


def test_the_figure_is_deterministic(a100: Recorder) -> None:
    def cost(launch: Launch) -> int:
        return launch.blocks * 7

    a100.effect = cost
    first = benchmark(call)
    triton.testing.do_bench(call)
    assert benchmark(call) == first


def test_autotune_by_modelled_time() -> None:
    """No stand-in: the choice is the fastest on the SM model, and tuning leaves no launch behind."""
    seen: list[Launched] = []
    x, z = torch.rand(500), torch.zeros(500)
    kernels.retuned.cache.clear()
    with cuasmrl.gpu.virtual.active("a100", on_launch=seen.append):
        kernels.retuned[lambda meta: (-(-500 // meta["BLOCK"]),)](x, z, 500)
    assert torch.equal(z, x + 1)
    assert len(seen) == 1
    times = {config.kwargs["BLOCK"]: time for config, (time, _, _) in kernels.retuned.configs_timings.items()}
    assert kernels.retuned.best_config.kwargs["BLOCK"] == min(times, key=lambda block: times[block])
    assert all(0.0002 < time < 0.005 for time in times.values())


def test_the_time_is_that_of_the_whole_way() -> None:
    """Cycle by cycle what a workload takes that is traced and timed without Triton's launcher."""
    workload, sizes = workloads.get("softmax"), {"M": 216, "N": 256}
    inputs: dict[str, Any] = workload.inputs(sizes)
    out, x = (wrap(inputs[name]) for name in ("out_ptr", "x_ptr"))
    config = workload.config("w2")
    with cuasmrl.gpu.virtual.active("a100"):
        time = benchmark(lambda: softmax[(216,)](out, x, 256, 256, 256, BLOCK_N=256, num_warps=2))
    kernel = trace_workload(workload, config, chip("a100"), sizes)
    assert time == milliseconds(measure(kernel.model, kernel.original, SEEDS).value)


def test_timing_changes_nothing_in_memory() -> None:
    """The kernel adds to its own input, so a second run would show."""
    x = torch.zeros(256)
    with cuasmrl.gpu.virtual.active("a100"):
        before = x.clone()
        time = benchmark(lambda: kernels.add[(2,)](x, x + 1, x, 256, BLOCK=128))
        assert torch.equal(x, before)
        clock = triton.runtime.driver.active.get_device_interface()
        start, end = clock.Event(enable_timing=True), clock.Event(enable_timing=True)
        start.record()
        kernels.add[(2,)](x, x + 1, x, 256, BLOCK=128)
        end.record()
    assert (x == 1).all()
    assert start.elapsed_time(end) == time


def test_a_chip_without_timing_data(monkeypatch: pytest.MonkeyPatch) -> None:
    """The figure is the least that issuing the instructions takes."""
    monkeypatch.setitem(CHIPS, "novel", replace(CHIPS["rtx5090"], key="novel"))
    with cuasmrl.gpu.virtual.active("novel"):
        one = benchmark(call)
        assert isinstance(one, float)
        assert 0 < one < 0.001
