"""Figures that a GPU gives: read from the clocks that kernels store."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from cuasmrl.bench.hardware.calibration import sm_clock
from cuasmrl.bench.hardware.clocks import SAMPLES, WARM_UPS, Clocks, clocks_of, measured, read, unreadable
from cuasmrl.bench.hardware.session import Session, chip_of, ordinal_of
from cuasmrl.bench.microbenchmarks import experiments
from cuasmrl.bench.microbenchmarks.experiment import Experiment
from cuasmrl.bench.microbenchmarks.inputs import inputs_of
from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.devices.driver import Gpu
from tests.bench.hardware.clocked_driver import MHZ, Clocked, ClockedDriver

CHAIN = Experiment("V", "shared", "index_u32", 1, 64, "stride 2", "", "first warp", 1024.0, "")


def session(cycles: Callable[[str, int], int]) -> Session:
    return Session(0, partial(ClockedDriver, Clocked(cycles)))


def test_a_figure_is_cycles_over_rounds() -> None:
    found = measured(CHAIN, session(lambda name, warp: 29 * 1024 + 5 * warp))
    assert found == (29.0,) * SAMPLES


def test_the_last_warp_counts_for_all_warps() -> None:
    # The second warp begins three cycles later.
    found = measured(replace(CHAIN, reading="all warps"), session(lambda name, warp: 2048 + 1021 * warp))
    assert found == ((3 + 2048 + 1021) / 1024,) * SAMPLES


def test_what_is_beyond_another_launch() -> None:
    asked = []

    def cycles(name: str, warp: int) -> int:
        """Of all threads of the first launches 31 cycles a round, of those without conflicts 23."""
        asked.append(name)
        return (31 if len(asked) <= 32 * (WARM_UPS + SAMPLES) else 23) * 1024

    found = measured(replace(CHAIN, reading="beyond stride 1", threads=32), session(cycles))
    assert found == (8.0,) * SAMPLES


def test_readings() -> None:
    clocks = Clocks((0, 10), (200, 290))
    wanted = {"all warps": 29.0, "first warp": 20.0, "lanes": 64 * 10 / 290, "bytes": 4 * 64 * 10 / 290,
              "turns": 290 / 20, "whole cycles": 20}  # fmt: skip
    for reading, value in wanted.items():
        assert read(replace(CHAIN, reading=reading, per=10.0), clocks) == pytest.approx(value)


def test_clocks_wrap() -> None:
    stored = np.zeros(128, np.uint32)
    stored[[0, 1, 64, 65]] = (2**32 - 5, 7, 2**32 - 9, 1)
    assert clocks_of(stored, 64) == Clocks((0, -4), (12, 6))


def test_experiments_without_stored_clocks_are_left_out() -> None:
    every = experiments().values()
    assert sum(not unreadable(experiment) for experiment in every) > 400
    assert unreadable(next(e for e in every if e.patch))
    assert "record of issues" in unreadable(replace(CHAIN, inputs="data sums"))
    assert "several SMs" in unreadable(replace(CHAIN, blocks=128))
    assert "'gap'" in unreadable(replace(CHAIN, reading="gap"))
    assert not unreadable(replace(CHAIN, reading="beyond stride 1"))


def test_readable_experiments_have_a_buffer_for_every_clock() -> None:
    for experiment in experiments().values():
        if not unreadable(experiment):
            arrays = [a for a in inputs_of(experiment.inputs).arguments if isinstance(a, np.ndarray)]
            assert arrays[-1].size >= 2 * experiment.threads, experiment.row


def test_the_clock_of_the_sms() -> None:
    assert sm_clock(session(lambda name, warp: 1)) == pytest.approx(MHZ, rel=1e-4)


def test_devices() -> None:
    assert ordinal_of("cuda:3") == 3
    for wrong in ("virtual:a100", "cuda:", "cuda:x", "0"):
        with pytest.raises(CuasmrlError, match="write cuda:0"):
            ordinal_of(wrong)
    assert chip_of(Gpu(0, "NVIDIA RTX A6000", 86, 84, 6 << 20, 13000)).key == "a6000"
    assert chip_of(Gpu(0, "NVIDIA A30", 80, 56, 24 << 20, 13000)).key == "a100"
    with pytest.raises(CuasmrlError, match="no chip for sm_35"):
        chip_of(Gpu(0, "Tesla K40", 35, 15, 1 << 20, 13000))
