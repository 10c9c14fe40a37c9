"""What `simulate` finds out about a kernel, and how it prints it."""

import io
import json

import pytest
from rich.console import Console

from cuasmrl.cli.tables import print_simulation
from cuasmrl.gpu.simulation import simulate
from tests.traced_kernels import rescheduled, traced


def test_any_schedule_of_a_traced_kernel() -> None:
    kernel = traced("gemm_leaky_relu")
    found = simulate(kernel, rescheduled("gemm_leaky_relu"), seeds=2)
    assert (found.workload, found.config, found.sizes) == ("gemm_leaky_relu", "m64n64k32_w4_s3", kernel.sizes)
    assert len(found.cycles) == 2
    assert found.lower_bound == max(bound.cycles for bound in found.bounds) <= min(found.cycles)
    assert found.counterfactuals[0].cycles < found.mean_cycles
    assert sum(one.executions for one in found.slack) == found.instructions


def test_everything_is_in_the_json() -> None:
    kernel = traced("softmax")
    found = simulate(kernel, seeds=1)
    read = json.loads(json.dumps(found.as_dict()))
    assert read["lower_bound_cycles"] == found.lower_bound
    assert read["bounds"][0]["cycles"] == found.lower_bound
    assert read["counterfactuals"][0]["change"] == pytest.approx(found.counterfactuals[0].change)
    assert {"address", "executions", "first", "offset", "least", "mean"} == set(read["slack"][0])
    assert read["hot"][0]["slack"] >= 0


def test_the_tables() -> None:
    kernel = traced("softmax")
    found = simulate(kernel, seeds=2)
    text = io.StringIO()
    print_simulation(Console(file=text, width=160), found)
    printed = text.getvalue()
    for title in (
        "cycles by reason",
        "lower bounds of any schedule",
        "if this were free",
        "hot instructions",
    ):
        assert printed.count(title) == 1
    assert f"{found.lower_bound:,}" in printed
    assert "would not compute the same" in printed
    assert "[" in printed
