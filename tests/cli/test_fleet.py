"""`cuasmrl fleet`: what is shown, and what is refused before anything is played."""

import json
from pathlib import Path

import pytest

from cuasmrl.cli import fleet as command
from cuasmrl.deploy.fleet.pool import Alone
from tests.command import sentence
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
    assert "belong to --recorded" in sentence("optimize", "softmax", "--workers", "2")
    assert not (place / "journal.jsonl").exists()


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
