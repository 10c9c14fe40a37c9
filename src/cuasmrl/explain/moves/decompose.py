"""The way from the compiler's schedule to another as changes, whoever found it and however."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate

from cuasmrl.binary.sass.control import LONGEST_STALL_WITHOUT_YIELD
from cuasmrl.errors import CuasmrlError
from cuasmrl.explain.moves.changes import Change, Relocate, Replace, Retime
from cuasmrl.explain.moves.rearrangement import Rearrangement
from cuasmrl.schedule import Block, Board, Schedule, Scoreboards, SetReuse, SetStall, SetYield


@dataclass(frozen=True)
class Plan:
    """What a winner does to one block."""

    block: Block
    order: Rearrangement
    is_carried: bool
    """Stall counts travel with their instructions, as in swaps; else they are recomputed."""
    changes: tuple[Change, ...]


@dataclass(frozen=True)
class Built:
    """A selection of changes carried out."""

    schedule: Schedule
    changes: frozenset[Change]
    """Those of the selection that were legal, given that others are missing."""


class Decomposition:
    """A winning schedule taken apart; `build` puts any selection of its changes together again."""

    def __init__(self, original: Schedule, winner: Schedule) -> None:
        if original.listing.kernel.words != winner.listing.kernel.words:
            raise CuasmrlError("a schedule can be taken apart only beside the one it was made from")
        self.original = original
        self.winner = winner
        self.board = Board(original.listing, scoreboards=_scoreboards(original, winner))
        self._built: dict[frozenset[Change], Built | None] = {}
        self.plans: dict[int, Plan] = {}
        for block in self.board.blocks:
            self._forget_other_iterations(block)
            if self._differs(block, original):
                self.plans[block.number] = self._plan(block)
        whole = self.build(self.changes)
        if whole is None or whole.schedule.key != winner.key:
            raise CuasmrlError(
                f"kernel {original.listing.kernel.name}: no legal changes lead to this schedule; "
                "was it found by another version?"
            )

    @cached_property
    def changes(self) -> tuple[Change, ...]:
        """In the order of the code; of a block first its retiming, then relocations, then edits of bits."""
        return tuple(change for plan in self.plans.values() for change in plan.changes)

    @property
    def replaced(self) -> tuple[int, ...]:
        """Blocks that could not be taken apart."""
        return tuple(change.block for change in self.changes if isinstance(change, Replace))

    def plan_of(self, change: Change) -> Plan:
        if isinstance(change, SetStall | SetYield | SetReuse):
            return self.plans[self.board.block_of[change.instruction]]
        return self.plans[change.block]

    def build(self, chosen: Iterable[Change]) -> Built | None:
        """The schedule with these changes only; None if stall counts cannot express it."""
        key = frozenset(chosen)
        if key not in self._built:
            self._built[key] = self._build(key)
        return self._built[key]

    def _build(self, chosen: frozenset[Change]) -> Built | None:
        self.board.restore(self.original)
        done: set[Change] = set()
        for plan in self.plans.values():
            here = [change for change in plan.changes if change in chosen]
            if here:
                legal = self._carry_out(plan, here)
                if legal is None:
                    return None
                done |= legal
        return Built(self.board.schedule(), frozenset(done))

    # ---- taking apart ----

    def _differs(self, block: Block, schedule: Schedule) -> bool:
        here = slice(block.start, block.end)
        return (
            schedule.order[here] != self.winner.order[here]
            or schedule.controls[here] != self.winner.controls[here]
        )

    def _plan(self, block: Block) -> Plan:
        order = Rearrangement.of(self.board, block, self.winner)
        movers = tuple(Relocate(block.number, unit) for unit in order.movers)
        inside = range(block.start, block.end)
        keeps_stalls = all(self.winner.controls[i].stall == self.board.code[i].control.stall for i in inside)
        first = () if keeps_stalls else (Retime(block.number),)
        plan = Plan(block, order, keeps_stalls, (*first, *movers))
        edited = self._with_edits(plan)
        return edited or replace(plan, changes=(Replace(block.number),))

    def _with_edits(self, plan: Plan) -> Plan | None:
        """The same with the edits of bits that are missing; None if that does not lead to the winner."""
        for kind in (SetStall, SetYield, SetReuse):
            self.board.restore(self.original)
            if self._carry_out(plan, plan.changes) is None:
                return None
            edits = tuple(edit for edit in self._edits(plan.block) if isinstance(edit, kind))
            plan = replace(plan, changes=(*plan.changes, *edits))
        self.board.restore(self.original)
        done = self._carry_out(plan, plan.changes)
        reached = done == set(plan.changes) and not self._differs(plan.block, self.board.schedule())
        return plan if reached else None

    def _edits(self, block: Block) -> Iterable[SetStall | SetYield | SetReuse]:
        """From the board's control bits to the winner's."""
        for i in range(block.start, block.end):
            now, then = self.board.controls[i], self.winner.controls[i]
            if now.stall != then.stall:
                yield SetStall(i, then.stall)
            if now.yield_ != then.yield_:
                yield SetYield(i, then.yield_)
            if now.reuse != then.reuse:
                yield SetReuse(i, then.reuse != 0)

    # ---- putting together ----

    def _carry_out(self, plan: Plan, chosen: Collection[Change]) -> set[Change] | None:
        """Bring a block from the original to what these changes make of it; which of them were legal."""
        if any(isinstance(change, Replace) for change in chosen):
            self._take_block(plan.block, self.winner)
            return set(chosen)
        done: set[Change] = {change for change in chosen if isinstance(change, Retime)}
        movers = [change for change in chosen if isinstance(change, Relocate)]
        if movers:
            self._take_over_waits(plan.block)
            movers, window = self._in_order(plan, movers)
            done |= set(movers)
            if not movers:
                self._take_block(plan.block, self.original)
        else:
            window = plan.order.window(())
        if done:
            if not self.board.reorder(plan.block.number, window):
                return None
            if plan.is_carried and not self._keep_stalls(plan.block):
                return None
        return done | self._edit(plan.block, chosen)

    def _in_order(self, plan: Plan, movers: list[Relocate]) -> tuple[list[Relocate], list[int]]:
        """Relocations that hurt no dependence, and the order they lead to."""
        graph = self.board.graphs[plan.block.number]
        while True:
            window = plan.order.window([change.unit for change in movers])
            position = {i: p for p, i in enumerate(window)}
            # Chosen ones are in order among themselves, so one of a wrong pair is not chosen.
            wrong = {
                j for i in window for c in graph.successors[i] if position[c] < position[i] for j in (i, c)
            }
            if not wrong:
                return movers, window
            right = [change for change in movers if wrong.isdisjoint(change.unit)]
            if len(right) == len(movers):
                # The winner itself has this pair in another order: the board will refuse it.
                return movers, window
            movers = right

    def _keep_stalls(self, block: Block) -> bool:
        """The compiler's stall counts, or where the order needs more, that."""
        board = self.board
        compiled = {i: board.code[i].control.stall for i in range(block.start, block.end)}
        needed = {i: max(stall, board.stall[i]) for i, stall in compiled.items()}
        return self._set_stalls(block, compiled) or self._set_stalls(block, needed)

    def _set_stalls(self, block: Block, stalls: Mapping[int, int]) -> bool:
        """Several stall counts at once: two that bound each other from above cannot change one by one."""
        board = self.board
        window = board.order[block.start : block.end]
        new = {i: stalls.get(i, board.stall[i]) for i in window}
        if not board.bounds.hold(block, window, list(accumulate((new[i] for i in window), initial=0))):
            return False
        controls = list(board.controls)
        for i, stall in new.items():
            yields = board.code[i].control.yield_ or not 0 < stall <= LONGEST_STALL_WITHOUT_YIELD
            controls[i] = replace(controls[i], stall=stall, yield_=yields)
        board.restore(Schedule(board.listing, tuple(board.order), tuple(controls)))
        for i in window:
            board.set_reuse(i, True)
        return True

    def _edit(self, block: Block, chosen: Collection[Change]) -> set[Change]:
        board = self.board
        stalls = [change for change in chosen if isinstance(change, SetStall)]
        done: set[Change] = set(stalls)
        if stalls and not self._set_stalls(block, {edit.instruction: edit.stall for edit in stalls}):
            done = {edit for edit in stalls if board.set_stall(edit.instruction, edit.stall)}
        yields = {change.instruction: change for change in chosen if isinstance(change, SetYield)}
        for i in range(block.start, block.end):
            edit = yields.get(i)
            # A long stall on the way here may have left its mark.
            wanted = board.code[i].control.yield_ if edit is None else edit.yields
            if board.set_yield(i, wanted) and edit is not None:
                done.add(edit)
        for change in chosen:
            if isinstance(change, SetReuse) and board.set_reuse(change.instruction, change.keep):
                done.add(change)
        return done

    def _take_over_waits(self, block: Block) -> None:
        """Waits that instructions copied to leave the shelter of others: more of them hurt nobody."""
        if self.board.reassigns(block.number):
            return
        controls = list(self.board.controls)
        for i in range(block.start, block.end):
            if controls[i].wait_mask != self.winner.controls[i].wait_mask:
                controls[i] = replace(controls[i], wait_mask=self.winner.controls[i].wait_mask)
        self.board.restore(Schedule(self.board.listing, tuple(self.board.order), tuple(controls)))
        self._forget_other_iterations(block)

    def _forget_other_iterations(self, block: Block) -> None:
        """Drop what must precede something the compiler has above it: it is of the previous iteration."""
        graph = self.board.graphs[block.number]
        for i in range(block.start, block.end):
            for earlier in [c for c in graph.successors.get(i, ()) if c < i]:
                del graph.successors[i][earlier]
                del graph.predecessors[earlier][i]

    def _take_block(self, block: Block, schedule: Schedule) -> None:
        """All of a block as a schedule has it."""
        order, controls = list(self.board.order), list(self.board.controls)
        order[block.start : block.end] = schedule.order[block.start : block.end]
        controls[block.start : block.end] = schedule.controls[block.start : block.end]
        self.board.restore(Schedule(self.board.listing, tuple(order), tuple(controls)))


def _scoreboards(original: Schedule, winner: Schedule) -> Scoreboards:
    """On which board it was found: where they are kept, all raise the same ones and wait for no fewer."""
    kept = all(
        (now.write_barrier, now.read_barrier) == (was.write_barrier, was.read_barrier)
        and not was.wait_mask & ~now.wait_mask
        for was, now in zip(original.controls, winner.controls, strict=True)
    )
    return Scoreboards.KEPT if kept else Scoreboards.REASSIGNED
