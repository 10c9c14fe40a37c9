"""`cuasmrl replay`: runs on disk explained."""

import hashlib
import json
from pathlib import Path

import pytest

from cuasmrl.optimize.runs import RunConfig, RunDirectory
from cuasmrl.schedule import Schedule
from tests.command import run, sentence
from tests.explain.moves.schedules import planted
from tests.gpu.test_traced import record_of
from tests.traced_kernels import traced

NAME = "gemm_leaky_relu"


def config(source: dict[str, object], cubin: bytes) -> RunConfig:
    digest = hashlib.sha256(cubin).hexdigest()
    return RunConfig(source, NAME, digest, "", "virtual:a100", "planter", {}, budget=7, seed=3, versions={})


def written(path: Path, source: dict[str, object], best: Schedule | None, cubin: bytes | None = None) -> Path:
    kernel = traced(NAME)
    directory = RunDirectory.create(path, config(source, cubin or kernel.cubin.data))
    directory.keep_original(kernel.cubin, record_of(NAME))
    if best is not None:
        directory.keep_best(best, 1.0)
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs of a workload and of its cubin with a winner, one without, one of other code."""
    made, kernel = tmp_path_factory.mktemp("runs"), traced(NAME)
    workload: dict[str, object] = {"workload": NAME, "config": kernel.config, "sizes": kernel.sizes}
    winner = planted()[2]
    RunDirectory.open(written(made / "workload", workload, winner)).finish(
        {"sentence": "confirmed gain"}, None, None
    )
    written(made / "cubin", {"cubin": "k.cubin", "launch": "k.launch.json"}, winner)
    written(made / "nothing", workload, None)
    written(made / "other", workload, winner, b"other")
    return made


def test_one_run_in_a_summary(folder: Path) -> None:
    text = run("replay", folder / "workload")
    assert text.startswith(f"{folder / 'workload'}: planter, seed 3, budget 7\nconfirmed gain\n")
    assert "what the run has learned\n  shared-memory loads moved up past " in text
    assert f"the moves that matter most\n  2. LDSM at {16 * planted()[0]:#06x} up " in text
    assert " % of the gain" in text
    assert "--all shows every move with its lines of SASS" in text
    assert ":S0" not in text


def test_one_run_move_by_move(folder: Path) -> None:
    text = run("replay", folder / "workload", "--all")
    assert "\n1. block " in text
    assert f"\n2. LDSM at {16 * planted()[0]:#06x} up " in text
    assert ":S0" in text
    assert "what the run has learned\n  shared-memory loads moved up past " in text


def test_a_run_without_a_winner(folder: Path) -> None:
    text = run("replay", folder / "nothing")
    assert text.endswith("the run is not over\nnothing faster than the original was found\n")


def test_rules_of_several_runs(folder: Path) -> None:
    text = run("replay", folder / "workload", folder / "cubin", folder / "nothing")
    assert "the run is not over" in text
    assert f"k.cubin {NAME} on virtual:a100" in text
    assert "nothing faster than the original was found" in text
    assert "1. block " not in text
    assert "what 3 runs have learned\n" in text
    assert "2 moves in 2 runs on " in text


def test_json(folder: Path) -> None:
    found = json.loads(run("replay", folder / "workload", folder / "nothing", "--json"))
    winner, nothing = found["runs"]
    assert winner["explanation"]["kernel"] == NAME
    assert len(winner["explanation"]["moves"]) == 2
    assert nothing["explanation"] is None
    assert found["rules"][0]["text"].startswith("shared-memory loads moved up past")


def test_bad_input_is_one_sentence(folder: Path) -> None:
    assert "holds no run" in sentence("replay", folder)
    assert "is compiled to other code here than in the run" in sentence("replay", folder / "other")
