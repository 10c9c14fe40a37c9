"""The whole way on a GPU that pretends: kernels that can be replayed, and those that only a GPU can run."""

from functools import partial
from pathlib import Path

import pytest

from cuasmrl.cli.report import report_of
from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.devices import cuda, opening
from cuasmrl.gpu.devices.cuda import CudaTimer, find
from cuasmrl.gpu.traced import UntracedKernel
from cuasmrl.optimize import Optimized, Request, optimize, subject
from cuasmrl.optimize.gate import Outcome
from cuasmrl.optimize.runs import RunDirectory
from cuasmrl.schedule import Board, loop_depths
from tests.gpu.devices.fake_driver import FakeDriver, Scene


def played(monkeypatch: pytest.MonkeyPatch, run: Path, arch: int) -> Optimized:
    """A few evaluations of a small product of matrices, of which the third parameter is the output."""
    connect = partial(FakeDriver, Scene(arch=arch, luck=0.1, records=True, throttle=()))
    monkeypatch.setattr(cuda, "SOAK", 50)
    monkeypatch.setattr(opening, "find", partial(find, connect=connect))
    monkeypatch.setattr(
        opening,
        "CudaTimer",
        lambda kernel, number, launch: CudaTimer(kernel, number, launch, connect, pause=0.0),
    )
    sizes = {"M": 64, "N": 64, "K": 256}
    request = Request("gemm_leaky_relu", "m64n64k64_w4_s4", sizes, device="cuda:0", budget=25)
    return optimize(request, run)


@pytest.fixture
def refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the model learns, there are kernels that it does not know."""

    def refuse(*arguments: object) -> None:
        raise CuasmrlError("FOO at 0x10 runs on a unit, which the model does not have.")

    monkeypatch.setattr(subject, "trace_workload", refuse)


def outcomes(found: Optimized) -> dict[str, tuple[Outcome, str]]:
    return {check.name: (check.outcome, check.sentence) for check in found.verdict.checks}


@pytest.mark.usefixtures("refused")
def test_a_kernel_that_only_a_gpu_can_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = played(monkeypatch, tmp_path / "run", 80)
    assert isinstance(found.subject.kernel, UntracedKernel)
    checks = outcomes(found)
    assert checks["certificate"][0] is Outcome.PASSED
    outcome, sentence = checks["results"]
    assert outcome is Outcome.PASSED
    assert "fresh inputs on the GPU" in sentence
    outcome, sentence = checks["hazards"]
    assert outcome is Outcome.LEFT_OUT
    assert "which the model does not have" in sentence
    assert found.verdict.before is None
    assert "no modelled cycles" in found.verdict.modelled
    assert found.verdict.accepted == (checks["gain"][0] is checks["other sizes"][0] is Outcome.PASSED)
    assert found.evaluations == 25
    with pytest.raises(CuasmrlError, match="cannot be replayed: FOO"):
        _ = found.subject.traced
    page = (report_of(found) or Path("none")).read_text(encoding="utf-8")
    assert "Checks that were left out" in page
    assert f"<li>hazards: {checks['hazards'][1]}</li>" in page.replace("&#39;", "'")
    assert "There are no modelled cycles: nothing here can replay this kernel." in page
    assert "the moves that mattered, which need replays of the kernel: FOO at 0x10" in page
    assert 'id="loop"' not in page
    told = capsys.readouterr().err
    assert "the report is without the hot loop" in " ".join(told.split())


def test_play_reaches_the_loop(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Where time goes says the model; the GPU does not."""
    found = played(monkeypatch, tmp_path / "run", 80)
    checks = outcomes(found)
    assert {checks[name][0] for name in ("certificate", "results", "hazards")} == {Outcome.PASSED}
    assert found.verdict.before is not None
    listing = found.subject.kernel.listing
    best, board = RunDirectory.open(found.run).best(listing), Board(listing)
    depths = zip(board.blocks, loop_depths(board.blocks), strict=True)
    inside = {i for block, depth in depths if depth for i in range(block.start, block.end)}
    assert any(best.order[place] != place for place in inside)


@pytest.mark.usefixtures("refused")
def test_only_a_gpu_is_asked_to_run_it(tmp_path: Path) -> None:
    sizes = {"M": 64, "N": 64, "K": 256}
    request = Request("gemm_leaky_relu", "m64n64k64_w4_s4", sizes, device="virtual:a100", budget=5)
    with pytest.raises(CuasmrlError, match="which the model does not have"):
        optimize(request, tmp_path / "run")
    assert not (tmp_path / "run").exists()
