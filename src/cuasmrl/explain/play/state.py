"""A game as data for a browser: what never changes, and what a move changes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from cuasmrl.binary.sass import Control, Pipe
from cuasmrl.explain.play.game import SharedGame, Step
from cuasmrl.explain.play.stopwatch import Stopwatch, reason_names
from cuasmrl.explain.waits.regions import hottest
from cuasmrl.gpu.traced import TracedKernel
from cuasmrl.schedule import Board, Schedule

_SHOWN_STEPS = 60


def kernel_data(kernel: TracedKernel, board: Board, watch: Stopwatch) -> dict[str, Any]:
    """Of the kernel; lists go by the number of an instruction in the original listing."""
    code, original = kernel.listing.instructions, watch.original
    spent = [
        sum(waits[1::2]) + issued for waits, issued in zip(original.waits, watch.executions, strict=True)
    ]
    region = hottest(board.blocks, spent)
    return {
        "name": kernel.name,
        "config": kernel.config,
        "kernel": kernel.listing.kernel.name,
        "sizes": dict(kernel.sizes),
        "chip": kernel.chip.name,
        "clock": watch.scope.sentence,
        "divisor": watch.divisor,
        "original": original.as_dict(),
        "reasons": reason_names(),
        "text": [i.text for i in code],
        "opcode": [i.opcode for i in code],
        "main": [int(_is_main(i.declaration.pipe if i.declaration else None)) for i in code],
        "pinned": [int(pinned or board.is_opaque) for pinned in board.fixed],
        "executions": watch.executions,
        "blocks": [[block.start, block.end] for block in board.blocks],
        "region": [block.number for block in region.blocks],
        "is_loop": region.is_loop,
        "iterations": watch.executions[region.head.start],
    }


def _is_main(pipe: Pipe | None) -> bool:
    return pipe is not None and str(pipe) in ("tensor", "memory")


def schedule_data(schedule: Schedule) -> dict[str, Any]:
    """By position."""
    bits = schedule.bits[schedule.indices].tolist()
    return {"order": list(schedule.order), "control": [_control(each) for each in bits]}


@cache
def _control(bits: int) -> str:
    """Few different ones occur."""
    return str(Control.of(bits))


def game_data(game: SharedGame) -> dict[str, Any]:
    with game.lock:
        here, best = game.here, game.best
        first = max(0, len(game.steps) - _SHOWN_STEPS)
        return {
            "version": game.version,
            "pulse": game.pulse,
            **schedule_data(here.schedule),
            **here.reading.as_dict(),
            "gain": game.gain(here.reading),
            "best": {"cycles": best.reading.cycles, "gain": game.gain(best.reading)},
            "touched": here.instruction,
            "first": first,
            "cursor": game.cursor,
            "history": history_data(game, game.steps[first:]),
            **game.notes,
        }


def history_data(game: SharedGame, steps: Sequence[Step]) -> list[dict[str, Any]]:
    return [
        {"words": step.words, "cycles": step.reading.cycles, "gain": game.gain(step.reading)}
        for step in steps
    ]
