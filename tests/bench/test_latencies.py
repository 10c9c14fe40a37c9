"""`cuasmrl bench latencies`: the table beside the model, and code beside the model."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from cuasmrl import workloads
from cuasmrl.bench.latencies import compare_table
from cuasmrl.binary.cubin import Cubin
from cuasmrl.binary.sass import disassemble_kernel
from cuasmrl.schedule import Schedule
from cuasmrl.workloads import ARCHS
from tests.command import run


@pytest.fixture(scope="module")
def softmax(tmp_path_factory: pytest.TempPathFactory) -> Path:
    workload = workloads.get("softmax")
    folder = tmp_path_factory.mktemp("compiled")
    (folder / "softmax.cubin").write_bytes(workload.build(workload.config("w4"), 80).cubin)
    return folder


def test_every_chip_and_hazard_is_counted() -> None:
    rows = json.loads(run("bench", "latencies", "--json"))
    assert [(row["arch"], row["hazard"]) for row in rows] == [
        (arch, hazard) for arch in ARCHS for hazard in ("raw", "waw", "war")
    ]
    for row in rows:
        assert row["pairs"] >= row["claimed"] >= row["equal"] + len(row["below"])


def test_pairs_below_are_printed() -> None:
    text = run("bench", "latencies")
    assert "sm_120" in text
    for comparison in compare_table():
        for found in comparison.below:
            assert str(found) in text


def test_compilers_keep_to_the_latencies(softmax: Path) -> None:
    found = json.loads(run("bench", "latencies", "--code", softmax, "--json"))
    assert found["closer"] == []
    assert all(number["pairs"] >= number["pairs_at_it"] for number in found["numbers"])
    (sums,) = [n for n in found["numbers"] if n["file"] == "R" and n["first"] == n["second"] == ["fma"]]
    assert (80 in sums["chips"], sums["low"], sums["pairs_at_it"] > 0) == (True, 4, True)
    assert run("bench", "latencies", "--code", softmax).startswith("0 pairs of ")


def test_code_that_does_not_is_named(softmax: Path, tmp_path: Path) -> None:
    """All stalls of a kernel are one cycle."""
    cubin = Cubin.load(softmax / "softmax.cubin")
    original = Schedule.original(disassemble_kernel(cubin))
    hurried = original.replaced(controls=tuple(replace(c, stall=1) for c in original.controls))
    hurried.apply(cubin).save(tmp_path / "hurried.cubin")
    closer = json.loads(run("bench", "latencies", "--code", tmp_path, "--json", status=1))["closer"]
    assert {found["hazard"] for found in closer} >= {"raw"}
    assert all(found["cycles"] < found["latency"] for found in closer)
    assert all(found["witness"].startswith("hurried@") for found in closer)
