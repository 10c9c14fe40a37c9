"""Where time goes: every cycle in a replay, loops in a guess."""

from cuasmrl.gpu.profile import guessed, replayed
from cuasmrl.gpu.timing import Reason
from cuasmrl.schedule import Board
from tests.traced_kernels import rescheduled, traced


def test_a_replayed_profile_accounts_for_every_cycle_of_the_warps() -> None:
    part, schedule = traced("gemm_leaky_relu").part(2), rescheduled("gemm_leaky_relu")
    profile = replayed(part, schedule, 1)
    replay = part.simulate(schedule, 1, part.resident)
    assert profile.executions.sum() == replay.instructions
    assert profile.spent.sum() == replay.warp_reasons.sum()
    assert not profile.waits[:, Reason.ISSUED].any()


def test_a_guess_has_most_of_the_time_in_the_innermost_loop() -> None:
    kernel = traced("gemm_leaky_relu")
    profile, board = guessed(Board(kernel.listing)), Board(kernel.listing)
    replay = replayed(kernel.part(4), kernel.original, 1)
    hottest = max(board.blocks, key=lambda block: replay.spent[block.start : block.end].sum())
    assert profile.executions[hottest.start] == profile.executions.max()
    assert profile.executions[0] == 1
    assert not profile.waits.any()
