"""Hazards that a schedule has and the original has not."""

from dataclasses import replace

from cuasmrl.optimize.gate.hazards import new_hazards
from tests.traced_kernels import rescheduled, traced


def test_legal_schedules_have_none() -> None:
    kernel = traced("softmax")
    assert not new_hazards(kernel.model, kernel.original, rescheduled("softmax"))


def test_what_the_original_does_itself_is_not_held_against_a_schedule() -> None:
    kernel = traced("softmax")
    waiting = tuple(replace(control, wait_mask=0) for control in kernel.original.controls)
    hasty = kernel.original.replaced(controls=waiting)
    found = new_hazards(kernel.model, kernel.original, hasty)
    assert found
    assert len({(f.hazard, f.first.index, f.second.index) for f in found}) == len(found)
    assert not new_hazards(kernel.model, hasty, hasty)
