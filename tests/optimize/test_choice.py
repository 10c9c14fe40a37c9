"""Which config is played on."""

from dataclasses import replace

import pytest

from cuasmrl import workloads
from cuasmrl.agents import AGENTS
from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.chips import chip
from cuasmrl.gpu.devices import Objective
from cuasmrl.optimize import Request, fastest
from cuasmrl.optimize.choice import Candidate, Trial, choose_config
from cuasmrl.schedule import Scoreboards

SIZES = {"M": 128, "N": 128, "K": 256}
CONFIGS = ("m32n32k32_w2_s2", "m64n64k32_w4_s3", "m64n64k64_w4_s4")


def few_configs() -> workloads.Workload:
    workload = workloads.get("gemm_leaky_relu")
    return replace(workload, configs=tuple(workload.config(name) for name in CONFIGS))


def nobody(done: int, total: int) -> None:
    """Does not look."""


def test_without_a_trial_the_fastest_as_compiled_is_taken() -> None:
    kernel, candidates = choose_config(few_configs(), chip("a100"), SIZES, nobody)
    assert [candidate.config for candidate in candidates] == list(CONFIGS)
    assert kernel.config == fastest(candidates).config
    assert all(candidate.played is None for candidate in candidates)


def test_a_trial_is_played_on_configs_near_the_fastest() -> None:
    steps: list[tuple[int, int]] = []
    trial = Trial(AGENTS.named("greedy"), 10, 0, Scoreboards.REASSIGNED, Objective.NOMINAL)
    kernel, candidates = choose_config(
        few_configs(), chip("a100"), SIZES, lambda *step: steps.append(step), trial
    )
    cycles = {c.config: c.cycles for c in candidates if c.cycles is not None}
    near = [name for name, count in cycles.items() if count <= 1.2 * min(cycles.values())]
    assert [c.config for c in candidates if c.played is not None] == near
    assert all(0.5 < c.played / cycles[c.config] < 1.05 for c in candidates if c.played is not None)
    reached = {c.config: c.played or cycles[c.config] for c in candidates}
    assert kernel.config == min(reached, key=lambda name: reached[name])
    assert steps[-1] == (len(near), len(near))


def test_a_config_that_cannot_be_timed_is_never_the_fastest() -> None:
    assert fastest((Candidate("a", None, "no"), Candidate("b", 5.0), Candidate("c", 4.0))).config == "c"


@pytest.mark.parametrize("request_", [
    Request("gemm_leaky_relu", trial=-1),
    Request("gemm_leaky_relu", "m64n64k32_w4_s3", trial=5),
    Request("a.cubin", launch="a.json", trial=5),
])  # fmt: skip
def test_a_trial_without_a_choice_is_refused(request_: Request) -> None:
    with pytest.raises(CuasmrlError, match="trial"):
        request_.check()
