"""From a request to a result, and the refusals on the way."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from cuasmrl import workloads
from cuasmrl.binary.cubin import Cubin
from cuasmrl.checker import Checker
from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.chips import CHIPS
from cuasmrl.gpu.launches import describe, save
from cuasmrl.optimize import Played, Request, Watch, optimize, optimizer, prepare, resume
from cuasmrl.optimize.runs import RunDirectory
from cuasmrl.schedule import Scoreboards
from cuasmrl.workloads import Workload
from tests.climbing import CONFIG, NAME, SIZES, kernel
from tests.optimize.playing import Device, asking, device, prepare_quickly

__all__ = ["device"]


def test_a_workload_from_the_request_to_the_cubin(device: Device, tmp_path: Path) -> None:
    heard: list[Played] = []
    stages: list[str] = []
    watch = Watch(stage=stages.append, played=heard.append)
    found = optimize(asking(), tmp_path / "run", tmp_path / "new.cubin", watch)
    assert found.verdict.accepted, found.verdict.lines()
    assert found.evaluations == 60
    assert [played.done for played in heard] == [played.measured for played in heard] == list(range(1, 61))
    assert heard[-1].gain == found.search_gain > 0
    assert stages[0] == "measuring how much has to be replayed"
    assert stages[1].startswith("schedules are scored by ")
    assert stages[2:4] == ["picking a schedule", "proving the schedule"]
    effort = json.loads((tmp_path / "run" / "effort.json").read_text())
    assert f"under {effort['conditions']} conditions" in stages[1]
    run = RunDirectory.open(tmp_path / "run")
    assert run.verdict() == json.loads(json.dumps(found.verdict.as_dict()))
    assert [e.number for e in run.evaluations()] == list(range(61))
    best = min(run.evaluations(), key=lambda e: e.time)
    schedule = run.best(kernel().listing)
    assert schedule.key == best.key
    assert found.cubin == tmp_path / "new.cubin"
    written = Cubin.load(found.cubin)
    assert written.data == schedule.apply(run.original()).data == (run.path / "result.cubin").read_bytes()
    certificate = json.loads((run.path / "certificate.json").read_text())
    assert certificate == json.loads(json.dumps(Checker(run.original()).check(written).as_dict()))
    assert {path.name for path in run.path.iterdir()} == {
        "config.json", "original.cubin", "log.jsonl", "best.json", "certificate.json", "effort.json",
        "result.cubin", "verdict.json",
    }  # fmt: skip


def test_scoreboards_given_out_anew_pass_the_gate(device: Device, tmp_path: Path) -> None:
    found = optimize(asking(agent="greedy", budget=200, scoreboards=Scoreboards.REASSIGNED), tmp_path / "run")
    assert found.verdict.accepted, found.verdict.lines()
    kernel = found.subject.kernel
    assert found.cubin is not None
    delivered = kernel.schedule_in(Cubin.load(found.cubin))
    assert any(
        (now.read_barrier, now.wait_mask) != (was.read_barrier, was.wait_mask)
        for now, was in zip(delivered.controls, kernel.original.controls, strict=True)
    )
    assert resume(tmp_path / "run").verdict == found.verdict


def test_no_gain_writes_nothing(device: Device, tmp_path: Path) -> None:
    found = optimize(asking(agent="idler"), tmp_path / "run", tmp_path / "new.cubin")
    assert (found.evaluations, found.cubin) == (0, None)
    assert not (tmp_path / "new.cubin").exists()
    assert not (tmp_path / "run" / "result.cubin").exists()
    assert "no gain" in found.verdict.sentence


def test_a_cubin_with_a_launch_file(device: Device, tmp_path: Path) -> None:
    workload = workloads.get(NAME)
    built = workload.build(workload.config(CONFIG), 80, SIZES)
    (tmp_path / "k.cubin").write_bytes(built.cubin)
    launch = workload.launch(built, workload.inputs(SIZES), SIZES)
    save(tmp_path / "k.launch.json", describe(launch, built.kernel))
    asked = Request(
        str(tmp_path / "k.cubin"),
        launch=str(tmp_path / "k.launch.json"),
        agent="climber",
        budget=60,
        min_gain=0.0,
        min_faster=0.5,
    )
    found = optimize(asked, tmp_path / "run")
    assert found.verdict.accepted, found.verdict.lines()
    assert found.config.device == "virtual:a100"
    assert found.cubin == tmp_path / "run" / "result.cubin"


def test_the_fastest_config_is_chosen() -> None:
    steps: list[tuple[int, int]] = []
    found = prepare(Request("softmax", sizes={"M": 648, "N": 256}), lambda *step: steps.append(step))
    cycles = {candidate.config: candidate.cycles for candidate in found.candidates}
    assert set(cycles) == {config.name for config in workloads.get("softmax").configs}
    assert cycles[found.kernel.config] == min(c for c in cycles.values() if c is not None)
    assert steps[-1] == (3, 3)


def test_a_given_config_is_kept(device: Device) -> None:
    found = prepare(asking(), lambda done, total: None)
    assert (found.kernel.config, found.candidates) == (CONFIG, ())


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ({"budget": 0}, "a budget of 0 evaluations"),
        ({"agent": "rondom"}, "no agent 'rondom'; choose random"),
        ({"source": "gem"}, "no workload 'gem'"),
        ({"config": "m1"}, "no config 'm1'"),
        ({"device": "virtual:a1000"}, "no chip 'a1000'"),
        ({"device": "gpu"}, "no device 'gpu'; write virtual:a100"),
        ({"device": "virtual:novel"}, "no timing data for novel"),
        ({"device": "virtual:novel", "config": None}, "no timing data for novel"),
        ({"kernel": "k"}, "--kernel belongs to cubins"),
        ({"launch": "l.json"}, "--config and --set belong to workloads"),
        ({"source": "k.cubin", "config": None, "sizes": {}}, "cannot read k.cubin"),
    ],
)
def test_bad_requests(
    device: Device,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    asked: dict[str, object],
    sentence: str,
) -> None:
    monkeypatch.setitem(CHIPS, "novel", replace(CHIPS["a100"], key="novel"))
    with pytest.raises(CuasmrlError, match=sentence):
        optimize(asking(**asked), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_kernel_without_a_legal_move_leaves_nothing_behind(
    device: Device, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cuasmrl.schedule.board.leaves_kernel", lambda code: True)
    with pytest.raises(CuasmrlError, match="has no legal move"):
        optimize(asking(), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_workload_without_reference(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Workload, "reference", lambda self, inputs, sizes: {})
    with pytest.raises(CuasmrlError, match="has no reference"):
        prepare(asking(), lambda done, total: None)


def test_places_for_output(device: Device, tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "file").write_text("")
    with pytest.raises(CuasmrlError, match="is not empty"):
        optimize(asking(), tmp_path / "taken")
    with pytest.raises(CuasmrlError, match="it is a directory"):
        optimize(asking(), tmp_path / "run", tmp_path)
    with pytest.raises(CuasmrlError, match="there is no directory"):
        optimize(asking(), tmp_path / "run", tmp_path / "no" / "new.cubin")
    assert device.asked == 0


def test_runs_without_a_name_get_one(device: Device, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(optimizer, "prepare", prepare_quickly)
    name = f"{NAME}-{CONFIG}-a100-climber-seed0"
    assert optimize(asking(budget=1)).run == Path("runs", name)
    assert optimize(asking(budget=1)).run == Path("runs", f"{name}-2")
