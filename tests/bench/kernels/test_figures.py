"""The table of public figures: complete, readable, and converted to times as its publications did it."""

from collections import Counter
from dataclasses import replace

import pytest

from cuasmrl.bench.kernels.figures import CERTAINTIES, UNITS, Figure, chosen, figures
from cuasmrl.bench.kernels.launch_time import Condition
from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.chips import CHIPS


def figure(key: str) -> Figure:
    return next(figure for figure in figures() if figure.id == key)


def test_there_are_enough_on_enough_chips() -> None:
    runnable = [figure for figure in figures() if not figure.left_out]
    assert len(runnable) >= 25
    assert len({figure.chip for figure in runnable}) >= 3
    series = Counter(figure.series for figure in runnable if figure.group == "gemm")
    assert max(series.values()) >= 6


def test_every_row_is_complete() -> None:
    assert len({figure.id for figure in figures()}) == len(figures())
    for one in figures():
        assert one.unit in UNITS, one.id
        assert one.certainty in CERTAINTIES, one.id
        assert one.clock_low <= one.clock <= one.clock_high, one.id
        assert one.source, one.id
        assert one.value > 0, one.id
        if one.certainty != "high":
            assert one.note, f"{one.id} does not say what was inferred"


@pytest.mark.parametrize("key", [one.id for one in figures() if one.chip in CHIPS])
def test_every_row_names_a_launch_of_its_chip(key: str) -> None:
    one = figure(key)
    chip = CHIPS[one.chip]
    for subject in one.subjects():
        assert subject.workload.supports(subject.config, chip.arch) is None
        grid = subject.workload.grid(subject.sizes, subject.config)
        assert min(grid) >= 1
        assert one.microseconds(subject) > 0
        assert one.in_unit(one.microseconds(subject), subject) == pytest.approx(one.value)


def test_rates_become_times() -> None:
    # 2 arrays of 268,435,458 doubles at 1,382 GB/s.
    scale = figure("RA3")
    assert scale.microseconds(scale.subjects()[0]) == pytest.approx(16 * 268_435_458 / 1382e9 * 1e6)
    # 2 * 8192^3 operations at 0.839 of 432 sub-cores * 512 operations * 1.28 GHz.
    product = figure("TM4")
    assert product.microseconds(product.subjects()[0]) == pytest.approx(4630, rel=0.001)
    # Causal attention has half of the products.
    causal, whole = figure("TA2").subjects()[0], figure("TA1").subjects()[0]
    assert whole.operations == 2 * causal.operations == 4 * 4 * 48 * 4096 * 4096 * 64


def test_figures_are_chosen_by_id_group_series_kernel_and_chip() -> None:
    assert [one.id for one in chosen(["TV1"], [])] == ["TV1"]
    assert {one.group for one in chosen(["attention"], [])} == {"attention"}
    assert {one.series for one in chosen(["sgemm"], [])} == {"sgemm a6000", "sgemm rtx4090"}
    assert {one.chip for one in chosen([], ["l40"])} == {"l40"}
    assert len(chosen([], [])) == len(figures())


@pytest.mark.parametrize(("only", "chips", "sentence"), [
    (["nonsense"], [], "No figure is called nonsense"),
    (["RA3"], ["l40"], "No figure is called RA3"),
    ([], ["voodoo2"], "There are no figures of voodoo2; choose one of"),
])  # fmt: skip
def test_a_choice_without_figures_is_refused(only: list[str], chips: list[str], sentence: str) -> None:
    with pytest.raises(CuasmrlError, match=sentence):
        chosen(only, chips)


def test_a_chip_without_numbers_is_left_out() -> None:
    assert not figure("RA3").left_out
    assert replace(figure("RA3"), chip="voodoo2").left_out == "no chip voodoo2"


@pytest.mark.parametrize(("l2", "clock"), [("tepid", "graph"), ("warm", "sundial")])
def test_unknown_conditions_are_refused(l2: str, clock: str) -> None:
    with pytest.raises(CuasmrlError, match="There is no condition"):
        Condition(l2, clock)
