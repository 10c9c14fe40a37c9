"""Explanations of small kernels: sums, words, rules."""

import json
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest

from cuasmrl.agents.ranking import Float, Int
from cuasmrl.explain.moves import Explanation, explain, rules_of
from cuasmrl.explain.moves.changes import Retime
from cuasmrl.explain.moves.opinion import Opinion
from cuasmrl.explain.moves.patterns import Pattern, Scenery
from cuasmrl.explain.moves.story import Step
from cuasmrl.explain.moves.table import lesson, story
from cuasmrl.explain.moves.words import deed
from cuasmrl.gpu.devices import VirtualTimer
from cuasmrl.gpu.profile import Profile
from cuasmrl.schedule import Board, Scoreboards, SetReuse, SetStall, SetYield
from tests.climbing import faster, kernel
from tests.explain.moves.schedules import planted, timer
from tests.traced_kernels import traced


@lru_cache
def explained() -> Explanation:
    return explain(traced("gemm_leaky_relu"), planted()[2], timer("gemm_leaky_relu"))


@lru_cache
def climbed() -> Explanation:
    return explain(kernel(), faster(), VirtualTimer(kernel(), members=2))


@pytest.mark.parametrize("found", [explained, climbed])
def test_steps_and_reasons_sum_to_the_gain(found: Callable[[], Explanation]) -> None:
    explanation = found()
    saved = explanation.original - explanation.minimal
    assert saved > 0
    assert explanation.minimal <= explanation.winner + explanation.tolerance
    assert sum(move.in_order for move in explanation.moves) == pytest.approx(saved)
    assert sum(move.share for move in explanation.moves) == pytest.approx(saved)
    for move in explanation.moves:
        assert -sum(reason.change for reason in move.reasons) == pytest.approx(move.in_order, abs=1e-6)


def test_the_planted_move_is_named() -> None:
    good, _, _ = planted()
    retiming, move = explained().moves
    assert retiming.pattern == Pattern("stall counts brought to the smallest", "in the loop")
    assert retiming.without is None
    assert move.pattern.what.startswith("shared-memory loads moved up past")
    assert move.deed.startswith(f"LDSM at {16 * good:#06x} up ")
    assert move.in_order == move.alone == move.without == move.share > 0
    marked = [line for line in move.lines if line is not None and line.mark != " "]
    assert sorted(line.mark for line in marked) == ["+", "-"]
    assert len({line.text for line in marked}) == 1
    assert marked[0].address < marked[1].address == 16 * good


def test_an_explanation_is_the_same_again() -> None:
    again = explain(traced("gemm_leaky_relu"), planted()[2], timer("gemm_leaky_relu"))
    assert again == explained()
    found = json.loads(json.dumps(again.as_dict()))
    assert len(found["moves"]) == len(again.moves)
    assert found["moves"][0]["pattern"]["where"] == "in the loop"


def test_what_is_not_faster_has_nothing_to_explain() -> None:
    softmax = traced("softmax")
    found = explain(softmax, softmax.original, timer("softmax"))
    assert found.moves == ()
    assert "there is nothing to explain" in story(found)[-1]
    assert lesson(rules_of([found]), 1)[1:] == ["  nothing that is faster"]


def test_rules_over_several_runs() -> None:
    one = explained()
    other = replace(one, kernel="other", moves=one.moves[1:])
    twice = {rule.pattern: rule for rule in rules_of([one, other])}
    alone = {rule.pattern: rule for rule in rules_of([one])}
    retiming, move = (step.pattern for step in one.moves)
    assert (twice[move].moves, twice[move].runs, len(twice[move].kernels)) == (2, 2, 2)
    assert twice[move].saved == pytest.approx(alone[move].saved)
    assert twice[retiming] == alone[retiming]
    assert "2 moves in 2 runs on 2 kernels save" in twice[move].text
    assert alone[retiming].text.startswith("stall counts brought to the smallest, in the loop: 1 move ")
    total = sum(rule.runs * rule.saved for rule in twice.values())
    saved = 100 * sum(move.share for move in (*one.moves, *other.moves)) / one.original
    assert total == pytest.approx(saved)


def test_edits_in_words() -> None:
    board = Board(traced("gemm_leaky_relu").listing)
    scenery, before = Scenery(board), board.schedule()
    product = next(i for i, kind in enumerate(scenery.kinds) if kind == "tensor product" and board.reuse(i))
    said = {}
    edits = SetStall(product, 9), SetYield(product, True), SetReuse(product, False)
    for change in (*edits, Retime(board.block_of[product])):
        step = Step((change,), before, before)
        said[type(change)] = deed(step, scenery), scenery.pattern(step).what
    place = f"HMMA at {16 * product:#06x}"
    assert said[SetStall][0].startswith(f"{place} gets stall count 9 instead of ")
    assert said[SetYield] == (f"{place} yields now, in the loop", "yield hint given to tensor products")
    assert said[SetReuse] == (
        f"{place} loses its reuse flags, in the loop",
        "reuse flags dropped at tensor products",
    )
    assert said[Retime][1] == "stall counts brought to the smallest"


def test_moves_are_ranked_by_a_policy_among_all_that_were_possible() -> None:
    """By the odds that it gives them, and only those that went somewhere."""

    class LikesOne:
        """Gives one instruction the better odds the farther up it goes, and all others none to speak of."""

        def __init__(self, liked: int) -> None:
            self.liked = liked

        def look(self, board: Board, profile: Profile) -> "LikesOne":
            self.position = np.array(board.position)
            return self

        def odds(self, instructions: Int, targets: Int) -> Float:
            up = self.position[instructions] - targets
            return np.where(instructions == self.liked, up, -10).astype(np.float32)

    original, winner = traced("gemm_leaky_relu").original, planted()[2]
    moved = [i for p, i in enumerate(winner.order) if original.order[p] != i]
    places = {i: p for p, i in enumerate(winner.order)}
    up = max(moved, key=lambda i: i - places[i])
    opinion = Opinion(traced("gemm_leaky_relu"), Scoreboards.KEPT, LikesOne(up))
    best = opinion.rank(original, winner, {up})
    rest = opinion.rank(original, winner, set(moved) - {up})
    assert best is not None
    assert rest is not None
    assert best > 0.9 > rest
    assert opinion.rank(original, winner, set()) is None
    assert opinion.rank(original, original, set(moved)) is None
    told = [move.policy for move in explained().moves]
    assert any(share is not None for share in told)
    assert all(share is None or 0 <= share <= 1 for share in told)
