"""Two schedules compared: totals, exact sums by reason, and every instruction under its own name."""

import json

import numpy as np
import pytest

from cuasmrl.errors import CuasmrlError
from cuasmrl.explain.comparison import Comparison, compare
from cuasmrl.gpu.timing import REASON_NAMES, Reason
from cuasmrl.schedule import Board
from tests.traced_kernels import rescheduled, traced

KERNELS = ["softmax", "gemm_leaky_relu"]
SEEDS = range(3)


def compared(name: str, seed: int = 0) -> Comparison:
    kernel = traced(name)
    return compare(kernel.model, kernel.original, rescheduled(name, seed), SEEDS)


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("seed", range(3))
def test_changes_by_reason_sum_to_the_difference(name: str, seed: int) -> None:
    found = compared(name, seed)
    kernel = traced(name)
    assert found.before.cycles == tuple(kernel.model.simulate(kernel.original, s).cycles for s in SEEDS)
    assert found.after.cycles == tuple(
        kernel.model.simulate(rescheduled(name, seed), s).cycles for s in SEEDS
    )
    assert sum(reason.change for reason in found.reasons) == pytest.approx(found.difference, abs=1e-6)
    changes = [abs(reason.change) for reason in found.reasons]
    assert changes == sorted(changes, reverse=True)


@pytest.mark.parametrize("name", KERNELS)
def test_instructions_account_for_all_waiting_of_warps(name: str) -> None:
    found, kernel = compared(name), traced(name)
    waited = []
    for schedule in (kernel.original, rescheduled(name)):
        results = [kernel.model.simulate(schedule, seed) for seed in SEEDS]
        waited.append(sum(int(r.warp_reasons.sum() - r.warp_reasons[Reason.ISSUED]) for r in results) / 3)
    assert sum(c.change for c in found.instructions) == pytest.approx(waited[1] - waited[0])


@pytest.mark.parametrize("name", KERNELS)
def test_instructions_keep_their_names(name: str) -> None:
    found, schedule = compared(name), rescheduled(name)
    code = schedule.listing.instructions
    for change in found.instructions:
        assert change.text == code[change.index].text
        assert change.address_before == code[change.index].address
        assert schedule.order[change.address_after // 16] == change.index
    assert found.moved == sum(i != place for place, i in enumerate(schedule.order))
    assert found.sentences


def test_a_stall_is_charged_to_the_instruction_that_has_it() -> None:
    """Nothing else changes, so its executions times the added cycles are exactly what is lost."""
    kernel = traced("softmax")
    board = Board(kernel.listing)
    i = next(i for i, control in enumerate(kernel.original.controls) if 0 < control.stall < 5 and i > 20)
    assert board.set_stall(i, kernel.original.controls[i].stall + 4)
    found = compare(kernel.model, kernel.original, board.schedule(), SEEDS)
    executions = kernel.model.simulate(kernel.original).row_reasons[i, Reason.ISSUED]
    (change,) = (c for c in found.instructions if c.index == i)
    assert change.reason == REASON_NAMES[Reason.STALL]
    assert change.reason_change == 4 * executions
    assert (found.moved, found.edited) == (0, 1)
    stall = kernel.original.controls[i].stall
    assert any(f"has stall count {stall + 4} instead of {stall}" in s for s in found.sentences)


def test_the_same_schedule_has_no_difference() -> None:
    kernel = traced("softmax")
    found = compare(kernel.model, kernel.original, kernel.original, SEEDS)
    assert (found.difference, found.reasons, found.instructions, found.sentences) == (0, (), (), ())
    assert (found.moved, found.edited, found.faster_seeds) == (0, 0, 0)


def test_turned_round_it_says_the_opposite() -> None:
    kernel = traced("gemm_leaky_relu")
    there = compared("gemm_leaky_relu")
    back = compare(kernel.model, rescheduled("gemm_leaky_relu"), kernel.original, SEEDS)
    assert back.difference == -there.difference
    assert {r.reason: r.change for r in back.reasons} == {r.reason: -r.change for r in there.reasons}
    assert {c.index: c.change for c in back.instructions} == pytest.approx(
        {c.index: -c.change for c in there.instructions}
    )


def test_a_producer_that_moves_is_named() -> None:
    """Take loads to the end of their reach, the farthest first: a wait gets longer and names its load."""
    kernel = traced("gemm_leaky_relu")
    board = Board(kernel.listing)
    loads = [i.index for i in kernel.listing.instructions if i.opcode == "LDSM"]
    named = []
    for load in sorted(loads, key=lambda i: board.position[i] - max(board.reach(i)))[:8]:
        board.reset()
        assert board.move(load, max(board.reach(load)))
        found = compare(kernel.model, kernel.original, board.schedule(), SEEDS)
        named.append(load in {cause for c in found.instructions for cause in (c.cause_before, c.cause_after)})
    assert any(named)


def test_json() -> None:
    found = compared("softmax").as_dict()
    again = json.loads(json.dumps(found))
    assert again["before"]["mean_modelled_cycles"] == pytest.approx(np.mean(again["before"]["cycles"]))
    assert sum(r["change"] for r in again["reasons"]) == pytest.approx(again["difference"], abs=1e-6)


def test_other_code_is_refused() -> None:
    kernel, other = traced("softmax"), traced("gemm_leaky_relu")
    with pytest.raises(CuasmrlError, match="the same listing"):
        compare(kernel.model, kernel.original, other.original)


def test_a_wait_for_a_barrier_stays_with_the_barrier() -> None:
    """Who stands behind a barrier waits for it; an exchange there is neither a gain nor a loss."""
    kernel = traced("gemm_leaky_relu")
    board = Board(kernel.listing)
    bars = [i.index for i in kernel.listing.instructions if i.opcode == "BAR"]
    moved = [bar for bar in bars if any(board.move(bar, to) for to in board.reach(bar) if to != bar)]
    assert moved
    found = compare(kernel.model, kernel.original, board.schedule(), SEEDS)
    named = [c for c in found.instructions if c.reason == REASON_NAMES[Reason.BARRIER]]
    assert {kernel.listing.instructions[c.index].opcode for c in named} <= {"BAR"}
