"""`cuasmrl demo`: the tour as text and as data."""

import json
from pathlib import Path

from tests.command import run


def test_the_tour_runs_to_the_refusal(tmp_path: Path) -> None:
    text = run("demo", "-o", tmp_path, "--budget", "300")
    assert "refused: kernel gemm_leaky_relu" in text
    assert [f"{step}. " in text for step in range(1, 9)] == 8 * [True]
    folder = tmp_path / "run"
    assert run("check", folder / "original.cubin", folder / "result.cubin").startswith("certified")


def test_json_is_one_object_with_what_was_found(tmp_path: Path) -> None:
    found = json.loads(run("demo", "-o", tmp_path, "--budget", "40", "--json"))
    assert found["compiled"]["workload"] == "gemm_leaky_relu"
    assert found["compiled"]["instructions"] > found["compiled"]["blocks"] > 1
    assert found["lint"]["hazards"] == 0
    assert found["moves"]["positions"] > found["moves"]["exchanges"] > 0
    assert len(found["loop"]["before"]) == len(found["loop"]["after"]) == 12
    assert found["optimized"]["evaluations"] == 40
    assert found["optimized"]["verdict"]["sentence"]
    assert all(rule["text"] for rule in found["rules"])
    assert found["refusal"]["certified"] is False
