"""Which neighbours may change places with their control codes, kept up to date from slacks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from cuasmrl.binary.sass import MAX_STALL
from cuasmrl.schedule.blocks import Block

if TYPE_CHECKING:
    from cuasmrl.schedule.board import Board


class Exchanges:
    """Slacks of a board's instructions, and the swaps they allow. Made when asked for, block by block."""

    def __init__(self, board: Board) -> None:
        self.board = board
        n = len(board.code)
        self.slack_in = [0] * n
        """Cycles by which an instruction could come sooner as far as those before it are concerned."""
        self.slack_out = [0] * n
        """Cycles by which it could come later as far as those behind it are concerned."""
        self._mask = bytearray(n)
        self._stale = {block.number for block in board.blocks}

    @property
    def mask(self) -> bytearray:
        """Positions whose instruction may change places with the next."""
        self._settle()
        return self._mask

    def forget(self, block: Block) -> None:
        """A block has changed."""
        self._stale.add(block.number)

    def _settle(self) -> None:
        for number in self._stale:
            self._refresh(self.board.blocks[number])
        self._stale.clear()

    def _refresh(self, block: Block) -> None:
        """Recompute slacks and the swap mask of one block."""
        for i in self.board.order[block.start : block.end]:
            self._update_slack(i)
        for p in range(block.start, block.end):
            self._mask[p] = self._can_swap(p)

    def _update_slack(self, i: int) -> None:
        self._update_slack_in(i)
        self._update_slack_out(i)

    def _update_slack_in(self, i: int) -> None:
        board = self.board
        time, now = board.time, board.time[i]
        slack = now - board.bounds.limits[i].head
        for p, need in board.bounds.incoming[i]:
            found = now - time[p] - need
            slack = min(slack, found)
        self.slack_in[i] = slack

    def _update_slack_out(self, i: int) -> None:
        board = self.board
        time, now = board.time, board.time[i]
        slack = board.length[board.block_of[i]] - now - board.bounds.limits[i].tail
        for c, need in board.bounds.outgoing[i]:
            found = time[c] - now - need
            slack = min(slack, found)
        self.slack_out[i] = slack

    def _can_swap(self, p: int) -> bool:
        board = self.board
        if p + 1 >= len(board.order):
            return False
        a, b = board.order[p], board.order[p + 1]
        if board.fixed[a] or board.fixed[b] or board.block_of[a] != board.block_of[b]:
            return False
        if board.reassigns(board.block_of[a]):
            return False
        if a in board.glued or b in board.glued or b in board.graphs[board.block_of[a]].successors[a]:
            return False
        return self._has_time(p)

    def has_time(self, p: int) -> bool:
        """Do only dependences forbid the exchange of p and p + 1?"""
        self._settle()
        return self._has_time(p)

    def _has_time(self, p: int) -> bool:
        """Would every distance hold if p and p + 1 changed places with their control codes?"""
        board = self.board
        a, b = board.order[p], board.order[p + 1]
        if self.slack_in[b] < board.stall[a] or self.slack_out[a] < board.stall[b]:
            return False
        if not self._on_leash(a, b):
            return False
        start = board.time[a]
        same = board.bounds.pipe[a] == board.bounds.pipe[b]
        if same and board.stall[b] < board.bounds.limits[b].spacing:
            return False
        before = self._neighbour(p - 1, -1, board.bounds.pipe[b], start)
        if before is not None and start - board.time[before] < board.bounds.limits[before].spacing:
            return False
        later = start + board.stall[b]
        after = self._neighbour(p + 2, 1, board.bounds.pipe[a], later)
        return after is None or board.time[after] - later >= board.bounds.limits[a].spacing

    def _on_leash(self, a: int, b: int) -> bool:
        """Slacks are about one of the two moving, but both do: b ends up ahead of a by its own stall."""
        stall = self.board.stall[b]
        return all(first != a or -stall >= cycles for first, cycles in self.board.bounds.incoming[b])

    def _neighbour(self, position: int, step: int, pipe: str, time: int) -> int | None:
        """The nearest instruction of a pipe in the block, looking no farther than a spacing can matter."""
        board = self.board
        order, times, pipes, number = (
            board.order,
            board.time,
            board.bounds.pipe,
            board.block_of,
        )
        home = number[order[position - step]]
        while 0 <= position < len(order):
            i = order[position]
            if number[i] != home or abs(times[i] - time) > board.bounds.longest_spacing:
                return None
            if pipes[i] == pipe:
                return i
            position += step
        return None

    def after_swap(self, a: int, b: int, p: int) -> None:
        board = self.board
        touched = {a, b}
        for i in (a, b):
            self._update_slack(i)
            for c, _ in board.bounds.outgoing[i]:
                self._update_slack_in(c)
                touched.add(c)
            for q, _ in board.bounds.incoming[i]:
                self._update_slack_out(q)
                touched.add(q)
        positions = {board.position[i] for i in touched}
        positions |= {position - 1 for position in positions}
        positions |= set(self._window(p))
        for position in positions:
            if position >= 0:
                self._mask[position] = self._can_swap(position)

    def _window(self, p: int) -> Iterator[int]:
        """Positions whose pipe spacing the pair at p can influence."""
        board = self.board
        now, number = board.time[board.order[p]], board.block_of[board.order[p]]
        block = board.blocks[number]
        # A neighbour's own exchange shifts it by up to a stall count.
        reach = board.bounds.longest_spacing + 2 * MAX_STALL
        for step in (-1, 1):
            position = p
            while (
                block.start <= position < block.end and abs(board.time[board.order[position]] - now) <= reach
            ):
                yield position
                position += step
