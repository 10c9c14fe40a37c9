"""The replay for the time only gives the cycles of the one that names them."""

from __future__ import annotations

import pytest

from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.chips import chip_of_arch
from cuasmrl.gpu.timing import Model
from cuasmrl.gpu.timing.uncertainty import draw
from cuasmrl.schedule import Schedule
from tests.gpu.timing.test_campaign import ARCHS, MODELLED, traced, variants
from tests.traced_kernels import rescheduled
from tests.traced_kernels import traced as small

MEMBERS = 4


def differing(model: Model, schedule: Schedule, blocks: int) -> list[int]:
    """Seeds under which the two replays disagree."""
    table = model.table(schedule)
    return [
        seed
        for seed in range(3)
        if model.cycles(table, seed, blocks) != model.replay(table, seed, blocks).cycles
    ]


@pytest.mark.parametrize("name", ["softmax", "gemm_leaky_relu", "vector_add"])
def test_both_replays_agree_on_small_kernels(name: str) -> None:
    """Also on chips of the ensemble, which switch mechanisms on and off."""
    model = small(name).model
    for parameters in draw(model.parameters, MEMBERS):
        member = model.with_parameters(parameters)
        for schedule in (small(name).original, rescheduled(name)):
            assert differing(member, schedule, model.resident + 1) == []


@pytest.mark.slow
@pytest.mark.parametrize("arch", ARCHS)
def test_both_replays_agree_on_every_workload(arch: int) -> None:
    compared = 0
    for workload, config in variants(arch):
        try:
            schedule, trace = traced(workload, config, chip_of_arch(arch))
        except CuasmrlError:
            continue
        for chip in (chip for chip in MODELLED if chip.arch == arch):
            model = Model(schedule, trace, chip)
            blocks = min(model.blocks, model.resident + 1)
            assert differing(model, schedule, blocks) == [], f"{workload.name} {config.name} on {chip.key}"
            compared += 1
    assert compared > 40
