"""AssemblyGame-v0: the game as published, on sound rules."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from cuasmrl.binary.sass import BARRIERS, Instruction, Kind, Operand
from cuasmrl.binary.sass.control import MAX_STALL
from cuasmrl.errors import CuasmrlError
from cuasmrl.game.clock import BudgetSpentError
from cuasmrl.game.game import Game
from cuasmrl.schedule import Swap

Observation: TypeAlias = npt.NDArray[np.float32]

GLOBAL = ("LDG", "LDGSTS", "STG")
SHARED = ("LDS", "LDSM")
HORIZON = 32
FAILURE = -1.0
_FIRST_OPERAND = 12


class PublishedGame(gym.Env[Observation, np.int64]):
    """The assembly game of CuAsmRL (He and Yoneki, CGO 2025).

    ## Description
    The board is a kernel's schedule. A move exchanges a memory instruction with its neighbour; control codes
    travel with their instructions and are never edited. The player wants the kernel to run faster.

    ## Action Space
    `Discrete(2 k + 1)` for k movable instructions, numbered in their present order: `2 n` moves the n-th up
    by one, `2 n + 1` down by one, `2 k` stops the episode. `action_masks()` says which are legal: the rules
    are those of `schedule.Board`, not the published heuristics, and stopping is always legal.

    ## Observation Space
    `Box(-1, 1, (instructions, 13 + most sources))`, one row per instruction in present order: wait mask (six
    columns: scoreboard / 6, or -1), read barrier and write barrier (same scale), yield, stall / 16,
    predicated, opcode class among the movable opcodes (index / their number, or -1), destination and sources
    as index / size of a table of operands in the order they first occur, padded with -1.

    ## Rewards
    100 x (time before - time now) / time at the start; the sum over an episode is the gain in percent of the
    start. A move that turns out to be impossible, or that the device cannot time, gives -1 and ends the
    episode.

    ## Starting State
    The compiler's schedule.

    ## Episode End
    Terminated: the player stops, or no move is legal. Truncated: after 32 moves, or when the clock's
    budget is spent (`info["budget_spent"]`).

    ## Arguments
    * `new_game`: makes the game to play on; vectorised environments call it once each.
    * `shared`: also move loads from shared memory (LDS, LDSM).

    ## Version History
    * v0: first version.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012 - Gymnasium's own spelling

    def __init__(self, new_game: Callable[[], Game], shared: bool = False) -> None:
        self.game = new_game()
        self.game.keep_scoreboards()
        board = self.game.board
        opcodes = GLOBAL + SHARED if shared else GLOBAL
        self._movable = [i.opcode in opcodes and not board.fixed[i.index] for i in board.code]
        count = sum(self._movable)
        if not count:
            raise CuasmrlError(
                f"kernel {board.listing.kernel.name} has none of {', '.join(opcodes)} that can move; "
                "AssemblyGame-v1 moves every instruction"
            )
        self._rows = _rows(board.code, opcodes)
        self.stop = 2 * count
        self.action_space = spaces.Discrete(2 * count + 1)
        self.observation_space = spaces.Box(-1.0, 1.0, self._rows.shape, np.float32)
        self._time = 0.0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        super().reset(seed=seed)
        self.game.back_to(self.game.original)
        self._time = self.game.clock.start
        return self._observe(), self._info()

    def step(self, action: np.int64) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        if int(action) == self.stop:
            return self._observe(), 0.0, True, False, self._info()
        position = self._positions()[int(action) // 2] - (1 if int(action) % 2 == 0 else 0)
        if position < 0 or not self.game.play(Swap(position)):
            return self._observe(), FAILURE, True, False, self._info()
        before = self._time
        try:
            time = self.game.time()
        except BudgetSpentError:
            self.game.play(Swap(position))
            return self._observe(), 0.0, False, True, self._info() | {"budget_spent": True}
        if math.isinf(time):
            self.game.play(Swap(position))
            return self._observe(), FAILURE, True, False, self._info()
        self._time = time
        reward = 100 * (before - self._time) / self.game.clock.start
        nothing_left = not self.action_masks()[:-1].any()
        return self._observe(), reward, nothing_left, False, self._info()

    def action_masks(self) -> npt.NDArray[np.bool_]:
        """Which actions are legal now."""
        swaps = np.frombuffer(self.game.board.mask, np.uint8).astype(bool)
        positions = np.array(self._positions())
        mask = np.ones(self.stop + 1, bool)
        mask[0:-1:2] = np.where(positions > 0, swaps[positions - 1], False)
        mask[1:-1:2] = swaps[positions]
        return mask

    def _positions(self) -> list[int]:
        return [p for p, i in enumerate(self.game.board.order) if self._movable[i]]

    def _observe(self) -> Observation:
        return self._rows[self.game.board.order]

    def _info(self) -> dict[str, Any]:
        return {"time": self._time, "best_time": self.game.clock.best_time}


def _rows(code: tuple[Instruction, ...], opcodes: tuple[str, ...]) -> Observation:
    """Rows by instruction; nothing in them changes when instructions move."""
    names: dict[str, int] = {}
    operands = [[names.setdefault(_name(o), len(names)) for o in i.operands] for i in code]
    widest = max(len(i.operands) - min(i.destinations, 1) for i in code)
    rows = np.full((len(code), _FIRST_OPERAND + 1 + widest), -1, np.float32)
    for row, i, indices in zip(rows, code, operands, strict=True):
        control = i.control
        for board in control.waits:
            row[board] = board / BARRIERS
        if control.read_barrier is not None:
            row[6] = control.read_barrier / BARRIERS
        if control.write_barrier is not None:
            row[7] = control.write_barrier / BARRIERS
        row[8] = control.yield_
        row[9] = control.stall / (MAX_STALL + 1)
        row[10] = i.is_conditional
        if i.opcode in opcodes:
            row[11] = opcodes.index(i.opcode) / len(opcodes)
        first = _FIRST_OPERAND if i.destinations else _FIRST_OPERAND + 1
        row[first : first + len(indices)] = [index / len(names) for index in indices]
    return rows


def _name(operand: Operand) -> str:
    """What tells operands apart: signs and suffixes of a register do not."""
    register = operand.register if operand.kind is Kind.REGISTER else None
    return operand.text if register is None else f"{register.file}{register.index}"
