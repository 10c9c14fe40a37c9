"""The text of an explanation. Its numbers are made up, so that it does not change with the chip's."""

import io
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from rich.console import Console

from cuasmrl.explain.comparison import ReasonChange
from cuasmrl.explain.moves import ExplainedMove, Explanation, rules_of
from cuasmrl.explain.moves.changes import Change, Relocate, Retime, instructions_of
from cuasmrl.explain.moves.excerpts import excerpt
from cuasmrl.explain.moves.patterns import Scenery
from cuasmrl.explain.moves.story import Step
from cuasmrl.explain.moves.table import lesson, print_summary, story, summary
from cuasmrl.explain.moves.words import deed
from cuasmrl.gpu.timing.uncertainty import Gain
from cuasmrl.schedule import Board, Schedule, SetYield
from tests.traced_kernels import traced

KERNEL = "gemm_leaky_relu"


def moves() -> tuple[tuple[ExplainedMove, ...], Schedule]:
    """The loop retimed, a load to the top, a product to the bottom, one that yields."""
    board = Board(traced(KERNEL).listing)
    scenery = Scenery(board)
    loop = next(block for block in board.blocks if block.number in block.successors and len(block) > 1)
    inside = range(loop.start, loop.end)
    loads = [i for i in inside if board.code[i].opcode == "LDSM"]
    load = max(loads, key=lambda i: i - min(board.reach(i)))
    product = next(i for i in inside if board.code[i].opcode == "HMMA" and max(board.reach(i)) > i + 30)
    hint = next(i for i in inside if 0 < board.stall[i] < 8 and not board.yields[i] and not board.fixed[i])
    made: list[tuple[Sequence[Change], Schedule, Schedule]] = []

    def carry_out(change: Change, play: Callable[[], bool]) -> None:
        before = board.schedule()
        assert play()
        made.append(((change,), before, board.schedule()))

    carry_out(Retime(loop.number), lambda: board.retime(loop.number))
    carry_out(Relocate(loop.number, (load,)), lambda: board.move(load, min(board.reach(load))))
    carry_out(
        Relocate(loop.number, (product,)),
        lambda: any(board.move(product, to) for to in reversed(board.reach(product))),
    )
    carry_out(SetYield(hint, True), lambda: board.set_yield(hint, True))
    found = [
        _explained(Step(tuple(changes), before, after), scenery, number)
        for number, (changes, before, after) in enumerate(made)
    ]
    return tuple(found), board.schedule()


def _explained(step: Step, scenery: Scenery, number: int) -> ExplainedMove:
    saved = (-40.0, 500.0, 120.5, 0.0)[number]
    return ExplainedMove(
        scenery.pattern(step),
        deed(step, scenery),
        (f"HMMA at 0x1234 waits {1000 * number:,} warp cycles less (short scoreboard)",),
        in_order=saved,
        share=saved + 10,
        alone=(-40.0, 500.0, None, 3.0)[number],
        without=(None, 480.0, 120.5, 9.0)[number],
        needed_by=(0, 1, 0, 0)[number],
        reasons=(ReasonChange("short scoreboard", 900.0, 890.0 - saved), ReasonChange("stall", 10.0, 20.0)),
        way=scenery.way(step),
        lines=excerpt(
            step.before,
            step.after,
            scenery.board.blocks[scenery.block_of(step.changes[0])],
            {i for change in step.changes for i in instructions_of(change)},
        ),
        block=scenery.block_of(step.changes[0]),
        instructions=(),
        policy=(None, 0.974, None, None)[number],
    )


def explanation() -> Explanation:
    told, schedule = moves()
    return Explanation(
        KERNEL, "m64n64k32_w4_s3", "virtual:a100", "modelled cycles",
        changes=(("Relocate", 40), ("Retime", 1), ("SetYield", 2)), replaced=1,
        original=10_000.0, winner=9_400.0, minimal=9_419.5, tolerance=30.0, tried=77,
        gain=Gain(0.06, 0.04, -0.01, 0.07, 0.9, (0.06,)), moves=told, schedule=schedule,
    )  # fmt: skip


def with_idle(count: int) -> Explanation:
    """With so many more moves that save nothing where they stand, in no order, and not alone."""
    found = explanation()
    idle = replace(found.moves[-1], in_order=0.0, share=0.04, alone=None, without=320.0)
    return replace(found, moves=(*found.moves[:1], *(count * [idle]), *found.moves[1:]))


def test_text(golden: Callable[[str, str], None]) -> None:
    found = explanation()
    lines = [*story(found), "", *lesson(rules_of([found]), 1), "", *lesson(rules_of([found, found]), 2)]
    golden("replay.txt", "\n".join(lines) + "\n")


def test_summary(golden: Callable[[str, str], None]) -> None:
    found = with_idle(3)
    golden("summary.txt", "\n".join(summary(found, rules_of([found]))) + "\n")


def test_a_summary_holds_five_rules_and_five_moves() -> None:
    found = explanation()
    best = found.moves[1]
    many = replace(found, moves=tuple(replace(best, share=100.0 + n) for n in range(8)))
    rules = [replace(rules_of([many])[0], saved=saved) for saved in (3.0, 2.0, 1.0, 0.9, 0.8, 0.7, 0.01)]
    lines = summary(many, rules)
    assert sum(line.startswith("     saves ") for line in lines) == 5
    assert next(line for line in lines if line.startswith("     saves ")).startswith("     saves 107.0 ")
    assert "  and 1 more; --all shows them" in lines
    assert lines[-1] == "and 3 more moves; --all shows every move with its lines of SASS"


@pytest.mark.parametrize(
    ("count", "said"),
    [
        (1, "1 move saves nothing by itself, but others need it"),
        (37, "37 moves save nothing by themselves, but others need them"),
    ],
)
def test_moves_that_save_nothing_are_one_line(count: int, said: str) -> None:
    lines = story(with_idle(count))
    assert len(lines) == len(story(explanation())) + 2
    assert said in lines
    assert any(line.startswith(f"{count + 2}. LDSM") for line in lines)


def test_a_terminal_gets_lines_that_fit() -> None:
    text, found = io.StringIO(), explanation()
    terminal = Console(file=text, force_terminal=True, color_system=None, width=70)
    print_summary(terminal, found, rules_of([found]))
    lines = text.getvalue().splitlines()
    assert max(map(len, lines)) <= 70
    assert any(line.startswith("     ") for line in lines)
