"""Accepted results on their way into the store: what is noted down of them, and which of two stays."""

from dataclasses import replace
from pathlib import Path

import pytest

from cuasmrl.binary.cubin import Cubin
from cuasmrl.deploy.deposit import deposit, with_other_kernels
from cuasmrl.deploy.store import Entry, Store, code_key
from cuasmrl.gpu.devices.rounds import MeasuredGain
from cuasmrl.optimize import Optimized, optimize
from tests.conftest import CompileCuda
from tests.deploy.store.results import MEASUREMENT, MODELLED
from tests.deploy.test_recorded import two_kernels
from tests.optimize.playing import Device, asking, device

__all__ = ["device"]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


@pytest.fixture
def found(tmp_path: Path, device: Device) -> Optimized:
    """Modelled."""
    return optimize(asking(), tmp_path / "run")


def measured(found: Optimized, gain: float = 0.03, gpu: str = "NVIDIA A100-SXM4-80GB") -> Optimized:
    """As if a GPU had confirmed it."""
    rounds = MeasuredGain(
        nominal=0.031, median=gain, low=0.02, high=0.04, share_above_zero=1.0, members=(gain,), old_time=20.5,
        new_time=19.9, control=0.0, refusal=None, gpu=gpu, arch=80,
    )  # fmt: skip
    verdict = replace(found.verdict, device="cuda:0", unit="microseconds", gain=rounds)
    return replace(found, verdict=verdict)


def stored(found: Optimized, store: Store) -> Entry:
    entry = deposit(found, store)
    assert entry is not None
    assert store.find(entry.key) == entry
    return entry


def test_a_modelled_gain_is_the_median_over_the_ensemble(found: Optimized, store: Store) -> None:
    entry = stored(found, store)
    gain, verdict = found.verdict.gain, found.verdict
    assert gain is not None
    assert entry.gain == entry.measurement["gain"] == gain.median
    assert entry.measurement["interval"] == [gain.low, gain.high]
    # On the nominal chip, and so another figure.
    assert (entry.measurement["original"], entry.measurement["optimised"]) == (verdict.before, verdict.after)
    assert verdict.before is not None
    assert verdict.after is not None
    assert entry.gain != verdict.before / verdict.after - 1
    assert "gpu" not in entry.measurement


def test_a_measured_gain_names_its_gpu(found: Optimized, store: Store) -> None:
    measurement = stored(measured(found), store).measurement
    assert (measurement["device"], measurement["unit"]) == ("cuda:0", "microseconds")
    assert (measurement["gain"], measurement["original"], measurement["optimised"]) == (0.03, 20.5, 19.9)
    assert measurement["gpu"] == {"name": "NVIDIA A100-SXM4-80GB", "compute_capability": "8.0"}


def test_a_measured_result_is_not_replaced_by_a_modelled_one(found: Optimized, store: Store) -> None:
    modelled = stored(found, store)
    by_a_gpu = stored(measured(found), store)
    assert by_a_gpu.measurement != modelled.measurement
    assert stored(found, store) == by_a_gpu


def test_of_one_gpu_the_faster_one_stays(found: Optimized, store: Store) -> None:
    first = stored(measured(found, 0.03), store)
    assert stored(measured(found, 0.02), store) == first
    assert stored(measured(found, 0.04), store).gain == 0.04
    # What another GPU says cannot be compared with it.
    assert stored(measured(found, 0.01, "NVIDIA A30"), store).gain == 0.01


def test_what_has_a_result_waits_no_longer(found: Optimized, store: Store) -> None:
    """Recorded by one way, optimised by another; also if the store has something better already."""
    cubin = found.subject.kernel.cubin.data
    for _ in range(2):
        store.record(cubin, [], {"compiler": "ptxas"})
        assert stored(found, store).key == code_key(cubin)
        assert store.recorded() == []


@pytest.mark.parametrize("is_second_measured", [False, True])
def test_what_was_measured_and_what_was_modelled_are_not_joined(
    compile_cuda: CompileCuda, is_second_measured: bool
) -> None:
    """Else the one would pass for the other."""
    first, second = two_kernels(compile_cuda)
    pair = (MODELLED, MEASUREMENT) if is_second_measured else (MEASUREMENT, MODELLED)
    before, made = (
        replace(entry, measurement={**figures, "kernel": entry.measurement["kernel"]})
        for entry, figures in zip((first, second), pair, strict=True)
    )
    assert with_other_kernels(made, before) == made
    joined = with_other_kernels(made, replace(before, measurement={**pair[1], "kernel": "first"}))
    assert joined.optimised not in (made.optimised, before.optimised)
    assert len(Cubin.parse(joined.optimised, "joined").kernels) == 2
