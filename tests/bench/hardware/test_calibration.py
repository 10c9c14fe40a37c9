"""The whole run on a pretended GPU, and the file it leaves."""

import json
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from cuasmrl import workloads
from cuasmrl.bench.hardware import calibration, rows, schedules
from cuasmrl.bench.hardware.calibration import Calibration, calibrate
from cuasmrl.bench.hardware.rows import chosen, rows_of, unsettled_rows
from cuasmrl.bench.hardware.schedules import Ranking, random_schedules, rank
from cuasmrl.bench.hardware.session import Session
from cuasmrl.bench.hardware.table import calibration_table
from cuasmrl.bench.microbenchmarks import experiments, unsettled
from cuasmrl.checker import Checker
from cuasmrl.gpu.devices.cuda import CudaTimer, available
from cuasmrl.gpu.devices.device import CandidateError
from cuasmrl.gpu.timing.uncertainty import measure
from cuasmrl.schedule import Schedule
from tests.bench.hardware.clocked_driver import Clocked, ClockedDriver
from tests.command import sentence
from tests.gpu.devices.fake_driver import FakeDriver, Scene, name_of
from tests.gpu.devices.launched import launch_of
from tests.traced_kernels import traced


def silent(done: int, total: int) -> None:
    pass


def slow(name: str, warp: int) -> int:
    return 4096


def test_every_experiment_is_chosen_once_and_prefers_its_chip() -> None:
    kinds = {(e.launched, e.reading, e.per) for e in experiments().values()}
    found = chosen("a6000")
    assert len(found) == len(kinds)
    assert {row.id for row, _ in found if row.chip == "a6000"} - {row.id for row, _ in chosen("a100")}


def test_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    some = [pair for pair in chosen("a100") if pair[1].source in ("shared", "carrier", "accesses")]
    monkeypatch.setattr(rows, "chosen", lambda chip: some)
    clocked = Clocked(slow, faults=frozenset({"lines"}))
    found = rows_of(Session(0, partial(ClockedDriver, clocked)))
    by_reason = {row.reason for row in found}
    assert len(found) == len(some)
    assert all(row.measured is not None or row.reason for row in found)
    assert any("cuLaunchKernel failed" in reason for reason in by_reason)
    stored = [row for row in found if row.measured is not None]
    assert all(len(row.samples) == 7 for row in stored)
    assert any(row.published is not None and row.modelled is not None for row in stored)


def test_kernels_that_an_architecture_does_not_have_are_said() -> None:
    (pair, *_) = chosen("a100")
    absent = replace(pair[1], kernel="of_another_chip")
    found = rows._row(Session(0, partial(ClockedDriver, Clocked(slow))), pair[0], absent)
    assert (found.modelled, found.measured) == (None, None)
    assert found.reason == f"{absent.source}.cu has no such kernel for sm_80"


def test_matrices_behind_copies() -> None:
    """A GPU on which every copy keeps the matrices waiting for four cycles."""

    def cycles(name: str, warp: int) -> int:
        return 40 + 4 * int(name.rsplit("x", maxsplit=1)[1])

    found = {row.what: row for row in unsettled_rows(Session(0, partial(ClockedDriver, Clocked(cycles))))}
    alone = [found[f"LDSM.4 behind {copies} LDGSTS.128, 1 warp"].measured for copies in (0, 1, 2, 4, 8)]
    assert alone == [40, 44, 48, 56, 72]
    slow, *_, fast = found["LDSM.4 behind 8 LDGSTS.128, 8 warps"].predicted.items()
    assert slow[0] < fast[0]
    assert slow[1] > fast[1]


def test_experiments_that_a_gpu_does_not_have_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """A T4 has no asynchronous copies, and the model no products in tensor memory."""
    t4 = Clocked(slow, name="Tesla T4", scene=Scene(arch=75))
    for row in unsettled_rows(Session(0, partial(ClockedDriver, t4))):
        assert (row.measured, row.samples) == (None, ())
        assert "cannot compile copies.cu for sm_75" in row.reason
    b200 = Clocked(slow, name="NVIDIA B200", scene=Scene(arch=100))
    monkeypatch.setattr(schedules, "KERNELS", schedules.KERNELS[:1])
    (found,) = schedules.rankings(Session(0, partial(ClockedDriver, b200)))
    assert (found.workload, found.measured) == ("gemm_leaky_relu", ())
    assert len(found.failed) == 1


def test_random_schedules_are_legal_and_ever_further_away() -> None:
    kernel = traced("softmax")
    found = random_schedules(kernel, 6)
    moves = [count for count, _ in found]
    assert found[0] == (0, kernel.original)
    assert moves == sorted(moves)
    assert moves[-1] > 20 * moves[1]
    assert len({schedule.key for _, schedule in found}) == 7
    checker = Checker(kernel.cubin)
    for _, schedule in found:
        checker.check(schedule.apply(kernel.cubin))
    assert [s.key for _, s in random_schedules(kernel, 6)] == [s.key for _, s in found]


def test_a_gpu_that_agrees_with_the_model() -> None:
    kernel = traced("softmax")
    tried = random_schedules(kernel, 6)
    cycles = {s.key: measure(kernel.model, s, (0, 1, 2)).value for _, s in tried}
    original = cycles[kernel.original.key]
    gains = {name_of(s.apply(kernel.cubin).data): original / cycles[s.key] - 1 for _, s in tried}
    scene = Scene(time=40.0, noise=0.0, gains=gains, output=0)
    timer = CudaTimer(kernel, 0, launch_of("softmax"), partial(FakeDriver, scene))
    found = rank(kernel, tried, timer)
    timer.close()
    assert found.spearman == pytest.approx(1.0)
    alike, pairs = found.pairs
    assert alike == pairs > 0
    assert len(found.measured) == 7


class Backwards:
    """A timer that knows times, and fails on one schedule."""

    device, unit, finalists = "cuda:0", "microseconds", 1

    def __init__(self, times: dict[bytes, float]) -> None:
        self.times = times

    def time(self, schedule: Schedule) -> float:
        if schedule.key not in self.times:
            raise CandidateError("this one faults")
        return self.times[schedule.key]


def test_schedules_that_fail_are_said() -> None:
    kernel = traced("softmax")
    tried = random_schedules(kernel, 5)
    known = {schedule.key: 1000.0 - 10 * k for k, (_, schedule) in enumerate(tried[:-1])}
    found = rank(kernel, tried, Backwards(known))  # type: ignore[arg-type]
    assert found.failed == ("this one faults",)
    assert len(found.schedules) == len(found.modelled) == 5


def test_pairs_that_differ_little_do_not_count() -> None:
    ranking = Ranking("a", "b", "", ("", "", ""), (0, 1, 2), (1.0, 2.0, 3.0), (100.0, 100.5, 90.0), ())
    assert ranking.pairs == (0, 2)
    assert ranking.spearman is None


def test_a_calibration_is_written_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    some = [pair for pair in chosen("a100") if pair[1].source == "shared"][:2]
    for module in (rows, calibration):
        monkeypatch.setattr(module, "chosen", lambda chip: some)
    empty = Ranking("softmax", "w8", "", ("o", "p"), (0, 4), (1.0, 2.0), (10.0, 11.0), ())
    monkeypatch.setattr(calibration, "rankings", lambda *arguments: [empty])
    found = calibrate("cuda:0", silent, partial(ClockedDriver, Clocked(slow)))
    file = tmp_path / "calibration.json"
    found.write(file)
    read = json.loads(file.read_text())
    assert read["format"] == 1
    assert (read["gpu"]["name"], read["chip"]) == ("NVIDIA A100-SXM4-40GB", "a100")
    assert read["clocks_mhz"] == pytest.approx([1380, 1380], rel=1e-3)
    assert set(read["versions"]) == {"cuasmrl", "nvcc", "triton", "python", "system"}
    assert len(read["rows"]) == 2
    assert len(read["unsettled"]) == len(unsettled.experiments())
    assert read["rankings"][0]["pairs"] == [1, 1]
    _shows(found)


def _shows(found: Calibration) -> None:
    """The tables have a line for everything, also where the model says nothing."""
    unknown = replace(found.rows[0], modelled=None, measured=None, reason="no clock")
    table = calibration_table(replace(found, rows=(unknown, *found.rows)))
    assert table.row_count == 7


def test_kernels_of_the_rankings_exist_on_all_chips() -> None:
    for name, config in schedules.KERNELS:
        workload = workloads.get(name)
        for arch in (80, 86, 89):
            assert workload.supports(workload.config(config), arch) is None


def test_a_device_that_is_none_is_refused() -> None:
    assert "write cuda:0" in sentence("bench", "timing", "--device", "virtual:a100")


@pytest.mark.skipif(available() is None, reason="there is a GPU")
def test_a_machine_without_a_gpu_is_refused() -> None:
    assert "no NVIDIA driver" in sentence("bench", "timing", "--device", "cuda:0")
