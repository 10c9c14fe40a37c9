"""Which neighbours may change places on a plain board: slacks and swaps, worked out afresh each time."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.schedule.plain_board import PlainBoard


class PlainExchanges:
    """Slacks of a board's instructions as it stands, and the swaps they allow."""

    def __init__(self, board: PlainBoard) -> None:
        self.board = board
        n = len(board.order)
        self.slack_in = [0] * n
        """Cycles by which an instruction could come sooner as far as those before it are concerned."""
        self.slack_out = [0] * n
        """Cycles by which it could come later as far as those behind it are concerned."""
        for i in range(n):
            if not board.reassigns(board.block_of[i]):
                self._update_slack(i)
        self.mask = [self._can_swap(p) for p in range(n)]

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
        return self.has_time(p)

    def has_time(self, p: int) -> bool:
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
