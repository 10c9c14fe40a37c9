"""Moves worth a look: what a policy says, or what replays say, and that it is said which."""

import math

import numpy as np
import pytest

from cuasmrl.agents.ranking import Float, Int, Outlook
from cuasmrl.errors import CuasmrlError
from cuasmrl.explain.play.game import SharedGame, StaleError
from cuasmrl.explain.play.hints import Adviser
from cuasmrl.gpu.profile import Profile
from cuasmrl.schedule import Board, Drag, play


class LikesLoads:
    """A ranker that wants shared-memory loads early."""

    def look(self, board: Board, profile: Profile) -> Outlook:
        class View:
            def odds(self, instructions: Int, targets: Int) -> Float:
                found = [
                    (board.position[i] - to) / 10 if board.code[i].opcode == "LDSM" else -9.0
                    for i, to in zip(instructions.tolist(), targets.tolist(), strict=True)
                ]
                return np.array(found, np.float32)

        return View()


def test_a_policy_is_asked_about_every_place_and_shown_with_its_odds(game: SharedGame) -> None:
    advice = Adviser(game, LikesLoads).advise(0)
    assert advice.source.startswith("the policy's best of ")
    assert len(advice.hints) == len({hint.instruction for hint in advice.hints}) == 5
    for hint in advice.hints:
        by = game.board.position[hint.instruction] - hint.position
        assert game.board.code[hint.instruction].opcode == "LDSM"
        assert hint.odds == pytest.approx(1 / (1 + math.exp(-by / 10)), rel=1e-5)
        assert hint.gain is None
        assert play(Board(game.kernel.listing), Drag(hint.instruction, hint.position))
    odds = [hint.odds or 0 for hint in advice.hints]
    assert odds == sorted(odds, reverse=True)


def test_without_a_policy_replays_are_made_and_it_is_said(game: SharedGame) -> None:
    advice = Adviser(game, lambda: None).advise(0)
    assert advice.source.startswith("no policy is installed, so ")
    assert advice.hints
    for hint in advice.hints:
        board = Board(game.kernel.listing)
        assert play(board, Drag(hint.instruction, hint.position))
        assert hint.gain == game.watch.original.cycles / game.watch.time(board.schedule()) - 1
        assert hint.gain > 0
        assert hint.odds is None
    assert game.board.schedule() == game.kernel.original


def test_a_policy_that_cannot_be_asked_is_no_obstacle(game: SharedGame) -> None:
    def broken() -> None:
        raise CuasmrlError("its weights need safetensors")

    assert (
        Adviser(game, broken)
        .advise(0)
        .source.startswith("no policy can be asked (its weights need safetensors), so ")
    )
    with pytest.raises(StaleError):
        Adviser(game, broken).advise(3)
