"""Finalists that fail when it counts are dropped, and the next one is taken."""

from pathlib import Path

import pytest

from cuasmrl.optimize import Watch, optimize, optimizer, resume
from cuasmrl.optimize.gate import Outcome
from cuasmrl.optimize.runs import RunDirectory
from tests.optimize.playing import Device, Stopped, asking, device, device_for, prepare_quickly

__all__ = ["device"]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(optimizer, "prepare", prepare_quickly)


@pytest.fixture(scope="module")
def finalists(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    """Those of an undisturbed run, the one that it picked first."""
    path = tmp_path_factory.mktemp("undisturbed") / "run"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(optimizer, "prepare", prepare_quickly)
        device = device_for(patch)
        found = optimize(asking(), path)
    assert not (path / "dropped.json").exists()
    best = bytes.fromhex(found.verdict.schedule)
    return [best, *(key for key in device.picked_from[-1] if key != best)]


@pytest.mark.parametrize("when_confirmed", [False, True])
def test_the_next_one_is_taken(
    device: Device, finalists: list[bytes], tmp_path: Path, when_confirmed: bool
) -> None:
    best, *others = finalists
    assert others
    device.faulty, device.faults_when_confirmed = {best}, when_confirmed
    heard: list[str] = []
    found = optimize(asking(), tmp_path / "run", watch=Watch(stage=heard.append))
    assert bytes.fromhex(found.verdict.schedule) in others
    check = found.verdict.checks[0]
    assert (check.name, check.outcome) == ("finalists", Outcome.PASSED)
    assert check.sentence == f"1 of {len(others) + 1} were dropped: {best.hex()[:8]} faults"
    assert f"dropped a finalist: {best.hex()[:8]} faults" in heard


def test_if_none_is_left_the_original_is_kept(device: Device, finalists: list[bytes], tmp_path: Path) -> None:
    device.faulty = set(finalists)
    found = optimize(asking(), tmp_path / "run")
    assert not found.verdict.accepted
    assert found.cubin is None
    assert found.verdict.checks[0].sentence.startswith(
        f"the device could time none of the {len(finalists)} finalists"
    )
    assert len(RunDirectory.open(tmp_path / "run").dropped()) == len(finalists)


def test_a_run_that_goes_on_does_not_try_them_again(
    device: Device, finalists: list[bytes], tmp_path: Path
) -> None:
    best, *_ = finalists
    device.faulty = {best}
    expected = optimize(asking(), tmp_path / "run")
    (tmp_path / "run" / "verdict.json").unlink()
    device.faulty, device.picked_from = set(), []
    found = resume(tmp_path / "run")
    assert best not in device.picked_from[0]
    assert found.verdict == expected.verdict


def test_a_run_that_stopped_while_it_was_judged_goes_on(
    device: Device, finalists: list[bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    best, *_ = finalists
    device.faulty = {best}

    def stopped(*arguments: object, **more: object) -> None:
        raise Stopped

    with monkeypatch.context() as patched:
        patched.setattr(optimizer, "judge", stopped)
        with pytest.raises(Stopped):
            optimize(asking(), tmp_path / "run")
    found = resume(tmp_path / "run")
    assert found.verdict.checks[0].name == "finalists"
    assert found.verdict.schedule != best.hex()
