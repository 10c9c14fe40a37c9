"""A run that was stopped ends as if it had not been."""

import json
import shutil
from pathlib import Path

import pytest

from cuasmrl.agents import AGENTS
from cuasmrl.errors import CuasmrlError
from cuasmrl.optimize import Played, Watch, optimize, optimizer, resume
from cuasmrl.schedule import Scoreboards
from tests.optimize.playing import Device, Stopped, asking, device, device_for, prepare_quickly

__all__ = ["device"]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(optimizer, "prepare", prepare_quickly)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that nothing has stopped."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(optimizer, "prepare", prepare_quickly)
        device_for(patch)
        return optimize(asking(), tmp_path_factory.mktemp("whole") / "run").run


def contents(run: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in run.iterdir()}


def test_stopped_at_several_points(device: Device, whole: Path, tmp_path: Path) -> None:
    expected = contents(whole)
    for stop in (0, 17, 60):
        run = tmp_path / str(stop)
        # The probe for a legal move asks for the original, the run asks for it again.
        device.asked, device.last = 0, stop + 1
        with pytest.raises(Stopped):
            optimize(asking(), run)
        assert len((run / "log.jsonl").read_bytes().splitlines()) == stop
        device.asked, device.last = 0, None
        heard: list[Played] = []
        resume(run, watch=Watch(played=heard.append))
        assert device.asked == 61 - stop
        assert heard[-1].measured == min(60, 61 - stop)
        assert contents(run) == expected


@pytest.mark.parametrize(
    "agent", [pytest.param(a, marks=pytest.mark.slow) if a.startswith("ppo") else a for a in AGENTS]
)
def test_every_agent_can_be_stopped(agent: str, device: Device, tmp_path: Path) -> None:
    expected = optimize(asking(agent=agent, budget=40), tmp_path / "whole")
    # Some run out of moves before the budget is spent.
    device.asked, device.last = 0, 1 + expected.evaluations // 2
    with pytest.raises(Stopped):
        optimize(asking(agent=agent, budget=40), tmp_path / "run")
    device.last = None
    found = resume(tmp_path / "run")
    assert found.verdict == expected.verdict
    for name in ("log.jsonl", "verdict.json"):
        assert (tmp_path / "run" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_stopped_in_the_middle_of_a_line_and_before_the_best_was_kept(
    device: Device, whole: Path, tmp_path: Path
) -> None:
    expected = contents(whole)
    shutil.copytree(whole, tmp_path / "run")
    log = expected["log.jsonl"]
    for cut in (len(log) // 3, len(log) - 5, len(log)):
        (tmp_path / "run" / "log.jsonl").write_bytes(log[:cut])
        for name in ("best.json", "verdict.json", "certificate.json", "result.cubin"):
            (tmp_path / "run" / name).unlink()
        resume(tmp_path / "run")
        assert contents(tmp_path / "run") == expected


def test_a_finished_run_can_be_asked_again(device: Device, whole: Path, tmp_path: Path) -> None:
    before = contents(whole)
    again = resume(whole, {"seed": 0, "budget": 60}, tmp_path / "new.cubin")
    assert device.asked == 0
    assert contents(whole) == before
    assert json.loads(json.dumps(again.verdict.as_dict())) == json.loads(before["verdict.json"])
    assert (tmp_path / "new.cubin").read_bytes() == before["result.cubin"]


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"seed": 1}, "was started with seed 0, not 1"),
        ({"budget": 61}, "was started with budget 5, not 61"),
        ({"agent": "random"}, "was started with agent climber, not random"),
        ({"config": "m64n64k32_w4_s3"}, "was started with a cubin of sha256"),
        ({"sizes": {"M": 128, "N": 128, "K": 512}}, "was started with problem M=128 N=128 K=256, not M=128"),
        ({"device": "virtual:a6000"}, "was started with"),
        ({"scoreboards": Scoreboards.REASSIGNED}, "was started with scoreboards kept, not reassigned"),
    ],
)
def test_another_run_is_refused(
    device: Device, tmp_path: Path, given: dict[str, object], sentence: str
) -> None:
    device.last = 3
    with pytest.raises(Stopped):
        optimize(asking(budget=5), tmp_path / "run")
    before = contents(tmp_path / "run")
    with pytest.raises(CuasmrlError, match=sentence):
        resume(tmp_path / "run", given)
    assert contents(tmp_path / "run") == before


def test_another_version_and_another_cubin_are_refused(device: Device, tmp_path: Path) -> None:
    optimize(asking(budget=1), tmp_path / "run")
    path = tmp_path / "run" / "config.json"
    config = json.loads(path.read_text())
    for change, sentence in (
        ({"versions": {**config["versions"], "cuasmrl": "0.0.1"}}, "version 0.0.1, not "),
        ({"cubin": "00"}, "a cubin of sha256 00, not "),
        ({"settings": {"farthest": 7}}, r"the agent's settings \(farthest=7\), not \(farthest=40\)"),
    ):
        path.write_text(json.dumps({**config, **change}))
        with pytest.raises(CuasmrlError, match=sentence):
            resume(tmp_path / "run")


def test_a_log_of_other_play_is_refused(device: Device, tmp_path: Path) -> None:
    optimize(asking(budget=5), tmp_path / "run")
    log = tmp_path / "run" / "log.jsonl"
    lines = log.read_text().splitlines()
    entry = json.loads(lines[3])
    lines[3] = json.dumps({**entry, "key": "00" * 16})
    log.write_text("\n".join(lines) + "\n")
    with pytest.raises(CuasmrlError, match="evaluation 3 was another one before the run stopped"):
        resume(tmp_path / "run")


def test_what_is_no_run_cannot_be_continued(tmp_path: Path) -> None:
    with pytest.raises(CuasmrlError, match="holds no run"):
        resume(tmp_path / "nothing")
