"""Every chip that launches can be checked against is timed, or refused before anything is executed."""

from dataclasses import replace

import pytest

from cuasmrl import workloads
from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu import traced
from cuasmrl.gpu.chips import CHIPS, chip
from cuasmrl.gpu.emulator import Trace
from cuasmrl.gpu.simulation import simulate
from cuasmrl.gpu.timing import code
from cuasmrl.gpu.timing.beside import BESIDE
from cuasmrl.workloads.tracing import trace_workload
from tests.command import run


def executed(*_: object) -> Trace:
    raise AssertionError("something was executed")


@pytest.mark.parametrize("key", CHIPS)
def test_timed_from_end_to_end(key: str) -> None:
    workload = workloads.get("vector_add")
    kernel = trace_workload(workload, workload.configs[0], chip(key), {"n": 65536})
    found = simulate(kernel, seeds=1)
    assert found.lower_bound <= found.mean_cycles
    assert kernel.model.microseconds(found.mean_cycles) > kernel.model.parameters["launch_time"]


def test_on_the_command_line() -> None:
    said = run("simulate", "vector_add", "--chip", "b200", "--config", "b1024_w4", "--set", "n=65536")
    assert "on virtual:b200" in said


def test_a_chip_without_timing_data_is_refused_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traced, "Emulator", executed)
    novel = replace(chip("a100"), key="novel")
    workload = workloads.get("vector_add")
    with pytest.raises(CuasmrlError, match=r"^there is no timing data for novel, so nothing can be timed"):
        trace_workload(workload, workload.configs[0], novel, {"n": 65536})


def test_what_cannot_be_timed_is_refused_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traced, "trace_share", executed)
    monkeypatch.setattr(code, "BESIDE", BESIDE - {"UTCHMMA"})
    workload = workloads.get("gemm_leaky_relu")
    config = workload.config("m64n64k64_w4_s4")
    with pytest.raises(CuasmrlError, match="which the model does not have"):
        trace_workload(workload, config, chip("b200"), {"M": 64, "N": 64, "K": 64})
