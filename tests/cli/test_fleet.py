"""`cuasmrl fleet`: what is shown, and what is refused before anything is played."""

import json
from pathlib import Path

import pytest

from cuasmrl.agents import match
from cuasmrl.cli import fleet as command
from cuasmrl.deploy.fleet.pool import Alone
from cuasmrl.game import Evaluation
from cuasmrl.gpu.devices import VirtualTimer
from cuasmrl.optimize.players import agent_of
from cuasmrl.optimize.request import default_agent
from tests.cli.test_optimize import SMALL
from tests.climbing import kernel as small_gemm
from tests.command import run, sentence
from tests.deploy.fleet.playing import recorded_store, work


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "fleet"


def test_what_is_refused(tmp_path: Path, place: Path) -> None:
    empty = str(tmp_path / "empty")
    assert "nothing is recorded in" in sentence("fleet", "--store", empty)
    store = str(recorded_store(tmp_path / "store", 1).root)
    given = "fleet", "--store", store, "--run", str(place)
    assert "leaves nobody to work" in sentence(*given, "--workers", "0")
    assert "may need" in sentence(*given, "--workers", "100000")
    assert "on Ray its cluster says how many there are" in sentence(*given, "--workers", "2", "--on", "ray")
    assert "has to be between 1 and the budget" in sentence(
        *given, "--workers", "1", "--slice", "9", "--budget", "8"
    )
    anneal = sentence(*given, "--workers", "1", "--agent", "anneal", "--slice", "4", "--budget", "8")
    assert "cannot be played in slices; give --slice 8" in anneal
    assert not (place / "journal.jsonl").exists()


def test_workers_of_one_kernel_that_cannot_be(tmp_path: Path) -> None:
    """Said before anything is played, or even traced."""
    place = tmp_path / "run"
    asked = "optimize", "softmax", "--run", place
    assert "--workers 0 leaves nobody to work" in sentence(*asked, "--workers", "0")
    assert "100000 workers may need" in sentence(*asked, "--workers", "100000")
    assert "a batch of 0 proposals is none" in sentence(*asked, "--batch", "0")
    assert "anneal has batches of its own" in sentence(*asked, "--agent", "anneal", "--batch", "4")
    assert "there is no NVIDIA driver here" in sentence(*asked, "--device", "cuda:0", "--workers", "2")
    assert not place.exists()


@pytest.mark.parametrize("agent", [default_agent(), "greedy"])
def test_a_kernel_on_two_workers(tmp_path: Path, agent: str) -> None:
    """Every evaluation is that of one process, in the same order."""
    asked = "optimize", *SMALL, "--agent", agent, "--budget", "40", "--batch", "4"
    run(*asked, "--run", tmp_path / "run", "--workers", "2")
    assert json.loads((tmp_path / "run" / "config.json").read_text())["settings"]["lag"] == 3
    logged = [json.loads(line) for line in (tmp_path / "run" / "log.jsonl").read_text().splitlines()]
    seen: list[Evaluation] = []
    kernel = small_gemm()
    match(agent_of(agent, 4), kernel, VirtualTimer(kernel, workers=1), 40, 0, listener=seen.append)
    assert [(one["key"], one["time"]) for one in logged[1:]] == [(one.key.hex(), one.time) for one in seen]


def test_a_fleet(
    tmp_path: Path, place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    store = recorded_store(tmp_path / "store", 2)
    monkeypatch.setattr(command, "_pool", lambda *asked: Alone(work))
    given = {"agent": "climber", "seed": 0, "device": "virtual:a100"}
    found = command.carried_out(given, 40, 20, place, Path(store.root), None, None, quiet=False)
    told = capsys.readouterr().err
    assert "surveying: 2 kernels, 0 evaluations so far" in told
    command.show_fleet(found, place, as_json=False)
    text = capsys.readouterr().out
    assert "2 kernels, 0 with a result in the store" in text
    assert "the original is kept" in text
    command.show_fleet(found, place, as_json=True)
    data = json.loads(capsys.readouterr().out)
    assert [one["spent"] for one in data["kernels"]] == [line.spent for line in found.lines]
    assert json.loads((place / "report.json").read_text()) == data
