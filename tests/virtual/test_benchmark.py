"""Code that measures gets the figure of the emulator: the autotuner, and Triton's benchmark function."""

from typing import Any

import pytest
import torch
import triton
import triton.testing

import cuasmrl.virtual
from cuasmrl.launch import Launch
from cuasmrl.virtual.benchmark import benchmark
from tests.virtual import kernels
from tests.virtual.conftest import Recorder


def call() -> None:
    x = torch.zeros(128)
    kernels.add[(1,)](x, x, x, 128, BLOCK=128)


def test_autotune_picks_the_cheapest(a100: Recorder) -> None:
    costs = {16: 300, 8: 100, 4: 200}
    a100.effect = lambda launch: costs[launch.grid[0]]
    x = torch.zeros(1024)
    kernels.tuned[lambda meta: (1024 // meta["BLOCK"],)](x, x, 1024)
    assert kernels.tuned.best_config.kwargs == {"BLOCK": 128}
    assert [launch.grid[0] for launch in a100.launches] == [16, 8, 4, 8]
    assert kernels.tuned.configs_timings[kernels.tuned.best_config] == [100, 100, 100]


def test_autotune_goes_on_after_the_virtual_gpu(recorder: Recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    """The autotuner keeps its benchmark function; afterwards it has to be that of the driver in charge."""

    class Theirs:
        def get_benchmarker(self) -> Any:
            return lambda kernel_call, quantiles, **options: ["theirs", quantiles, options]

    monkeypatch.setattr(triton.runtime.driver, "_active", Theirs())
    with cuasmrl.virtual.active("a100"):
        kept = triton.runtime.driver.active.get_benchmarker()
        assert kept is benchmark
    given: Any = kept(call, quantiles=(0.5,), rep=7)
    assert given == ["theirs", (0.5,), {"rep": 7}]


def test_forms_of_the_figure(a100: Recorder) -> None:
    a100.effect = lambda launch: 40
    assert benchmark(call) == 40
    assert benchmark(call, quantiles=(0.5, 0.2)) == [40, 40]
    assert benchmark(call, return_mode="all") == [40]

    def twice() -> None:
        call()
        call()

    assert benchmark(twice, warmup=1, rep=1) == 80
    assert len(a100.launches) == 5


def test_do_bench_runs_a_few_times_only(a100: Recorder) -> None:
    a100.effect = lambda launch: 500
    assert triton.testing.do_bench(call) == 500
    assert triton.testing.do_bench(call, quantiles=[0.5, 0.9]) == [500, 500]
    assert len(a100.launches) < 20


def test_bandwidth_of_the_chip(a100: Recorder) -> None:
    assert triton.testing.get_dram_gbps() == pytest.approx(1555, rel=1e-3)


def test_the_figure_is_deterministic(a100: Recorder) -> None:
    def cost(launch: Launch) -> int:
        return launch.blocks * 7

    a100.effect = cost
    assert benchmark(call) == benchmark(call)
