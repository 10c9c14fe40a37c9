"""`cuasmrl demo`: the tour as text and as data."""

import json
from functools import partial
from pathlib import Path

import pytest

from cuasmrl.cli import demo
from cuasmrl.optimize import Request
from tests.command import run


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same tour with a kernel of fewer instructions, which does less, by a player that plans nothing."""
    monkeypatch.setattr(demo, "AGENT", "greedy")
    monkeypatch.setattr(demo, "CONFIG", "m64n64k32_w4_s3")
    monkeypatch.setattr("cuasmrl.optimize.Request", partial(Request, sizes={"M": 128, "N": 128, "K": 256}))


def toured(folder: Path, budget: int) -> None:
    text = run("demo", "-o", folder, "--budget", str(budget))
    assert "refused: kernel gemm_leaky_relu" in text
    assert [f"{step}. " in text for step in range(1, 9)] == 8 * [True]
    run_of_it = folder / "run"
    assert run("check", run_of_it / "original.cubin", run_of_it / "result.cubin").startswith("certified")


@pytest.mark.usefixtures("small")
def test_a_small_tour_runs_to_the_refusal(tmp_path: Path) -> None:
    toured(tmp_path, 150)


@pytest.mark.slow
def test_the_tour_runs_to_the_refusal(tmp_path: Path) -> None:
    toured(tmp_path, 300)


@pytest.mark.usefixtures("small")
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
