"""Operations under way in one block.

What is known of an operation has two parts that change by themselves: which scoreboards vouch for it, and
which of its registers nobody has overwritten yet. So there is a set of operations for each state of the
scoreboards and one for each register, however many operations are under way. What a block does not change it
hands on as it came.
"""

from collections.abc import Mapping
from typing import NamedTuple

from cuasmrl.binary.sass import Hazard
from cuasmrl.checker.operations import BOARDS, Tables, places_of
from cuasmrl.checker.program import Arrangement

Guards = tuple[int, ...]
"""Per scoreboard: the fewest times it was raised again since it vouches for an operation, -1 if not."""
Groups = dict[int, dict[Guards, int]]
"""By number of kind, then by what vouches for them: operations."""
Touching = dict[int, int]
"""By register: operations that have still to write it, or to read it."""


class State(NamedTuple):
    """Operations under way. States share their parts, which nobody changes."""

    groups: Groups
    results: Touching
    sources: Touching

    def __bool__(self) -> bool:
        return bool(self.groups)


NOTHING = State({}, {}, {})


class Visit:
    """One run over a block, from the operations under way at its head."""

    def __init__(
        self, tables: Tables, arrangement: Arrangement, number: int, entry: State, asked: Mapping[int, int]
    ):
        self._tables, self._arrangement, self._program = tables, arrangement, tables.program
        self._number, self._entry, self._asked = number, entry, asked
        self.unprotected: list[tuple[Hazard, int, int, int]] = []
        """Hazard, consumer, register and operations."""
        self.settled: dict[int, int] = {}
        self.under_way: dict[int, int] = {}
        self.unordered: dict[int, int] = {}
        self._groups: Groups = {kind: dict(groups) for kind, groups in entry.groups.items()}
        self._results, self._sources = dict(entry.results), dict(entry.sources)
        """Those that are over are still in these sets; when such an operation begins again, it has all its
        registers anew."""
        self._alive = self._begun = self._of_kinds(entry.groups)
        self._lost: list[tuple[bool, int, int]] = []
        """Overwritten since `_bury`: whether results, the register, and operations that had it."""
        self._is_ordered = any(tables.kinds[kind].is_ordering for kind in entry.groups)
        """May something be under way that orders what comes behind it?"""

    def _of_kinds(self, kinds: Mapping[int, object] | list[int]) -> int:
        found = 0
        for kind in kinds:
            for operations in self._groups.get(kind, {}).values():
                found |= operations
        return found

    def _bury(self) -> None:
        """End operations of which all registers were overwritten."""
        dead = 0
        for written, register, operations in self._lost:
            touching = self._results if written else self._sources
            left = operations & self._alive
            for other in self._tables.companions[written][register]:
                if not left:
                    break
                if other in touching:
                    left ^= left & touching[other]
            dead |= left
        self._lost.clear()
        if dead:
            self._remove(dead)

    def _remove(self, operations: int) -> None:
        """Operations that are under way no longer are."""
        self._alive ^= operations
        for groups in self._groups.values():
            for guards, held in list(groups.items()):
                if held & operations:
                    _take(groups, guards, held & operations)

    def step(self, i: int) -> None:
        tables = self._tables
        waits = self._arrangement.waits[i]
        if waits or tables.watched[i]:
            self._wait(i, waits)
        self._meet(i)
        if self._is_ordered:
            self._note_unordered(i)
        self._raise(i)
        self._begin(i)

    def _wait(self, i: int, waits: tuple[tuple[int, int], ...]) -> None:
        tables = self._tables
        if tables.watched[i]:
            self._bury()
        before = self._alive
        for board, count in waits:
            self._end(board, count)
        if tables.blocking[i]:
            # Behind it, memory instructions have read their sources.
            for kind, groups in self._groups.items():
                if tables.kinds[kind].queue.memory and not tables.kinds[kind].written:
                    self._alive ^= self._of_kinds([kind])
                    groups.clear()
        if tables.watched[i]:
            self.settled[i] = before ^ self._alive
            asked = self._asked.get(i, 0)
            if asked:
                self.under_way[i] = asked & self._alive

    def _end(self, board: int, count: int) -> None:
        """What the scoreboard vouches for is over if it was raised at least `count` times since."""
        for groups in self._groups.values():
            for guards in [guards for guards in groups if guards[board] >= count]:
                self._alive ^= groups.pop(guards)

    def _meet(self, i: int) -> None:
        program = self._program
        for r in program.uses[i]:
            if r in self._results:
                self._note_unprotected(Hazard.RAW, i, r, self._results[r] & self._alive)
        for r in program.defs[i]:
            if r in self._results:
                self._overwrite(i, r, True)
            if r in self._sources:
                self._overwrite(i, r, False)

    def _overwrite(self, i: int, register: int, written: bool) -> None:
        tables = self._tables
        touching = self._results if written else self._sources
        met = unprotected = touching[register] & self._alive
        if met and tables.variable[i]:
            unprotected &= ~tables.passed_by(tables.queue[i], written)
        self._note_unprotected(Hazard.WAW if written else Hazard.WAR, i, register, unprotected)
        if self._program.certain[i]:
            del touching[register]
            if met:
                self._lost.append((written, register, met))

    def _note_unprotected(self, hazard: Hazard, i: int, register: int, operations: int) -> None:
        if operations:
            self.unprotected.append((hazard, i, register, operations))

    def _note_unordered(self, i: int) -> None:
        """Some waits are there for more than registers: for memory behind a fence, for more registers."""
        self._bury()
        kinds = self._tables.kinds
        ordering = [kind for kind, groups in self._groups.items() if groups and kinds[kind].is_ordering]
        self._is_ordered = bool(ordering)
        if self._tables.free[i]:
            ordering = [kind for kind in ordering if kinds[kind].is_barring]
        elif not self._tables.overwriting[i]:
            ordering = [kind for kind in ordering if not kinds[kind].settles]
        if ordering:
            self.unordered[i] = self._of_kinds(ordering)

    def _raise(self, i: int) -> None:
        control = self._arrangement.controls[i]
        for board in {control.write_barrier, control.read_barrier}:
            if board is not None and board < BOARDS and self._tables.most[board]:
                self._count(board)
        for board, result in ((control.write_barrier, True), (control.read_barrier, False)):
            if board is not None and board < BOARDS:
                self._vouch(i, board, result)

    def _count(self, board: int) -> None:
        """The scoreboard is raised once more since it vouches for what it vouches for."""
        most = self._tables.most[board]
        for groups in self._groups.values():
            # The highest first, so that no group is met again where it has moved to.
            for guards in sorted((guards for guards in groups if 0 <= guards[board] < most), reverse=True):
                _put(groups, _with(guards, board, guards[board] + 1), groups.pop(guards))

    def _vouch(self, i: int, board: int, result: bool) -> None:
        """The scoreboard now vouches for all that is over when this is written, or these sources are read."""
        tables = self._tables
        for kind in tables.kinds_over(tables.queue[i], result):
            groups = self._groups.get(kind)
            if not groups:
                continue
            is_certain = not (tables.kinds[kind].written and tables.conditional[i])
            for guards in [guards for guards in groups if guards[board] < 0]:
                over = groups[guards] if is_certain else self._surely_before(i, groups[guards])
                if over:
                    _take(groups, guards, over)
                    _put(groups, _with(guards, board, 0), over)

    def _surely_before(self, i: int, operations: int) -> int:
        """Those of them that are skipped if this instruction is; of other blocks that is not known."""
        tables, found = self._tables, 0
        for place in places_of(operations & tables.of_block(self._number)):
            if tables.surely_follows(tables.instruction_of[place], i):
                found |= 1 << place
        return found

    def _begin(self, i: int) -> None:
        tables, control = self._tables, self._arrangement.controls[i]
        write, read = control.write_barrier, control.read_barrier
        if not tables.variable[i] and write is None and read is None:
            return
        registers, late = self._program.defs[i], tables.late[i]
        if registers or write is not None:
            self._take_off(tables.result_place[i], _guards(write), registers, self._results)
        if late:
            self._take_off(tables.source_place[i], _guards(write, read), late, self._sources)
        elif read is not None:
            self._take_off(tables.source_place[i], _guards(read), (), self._sources)

    def _take_off(self, place: int, guards: Guards, registers: tuple[int, ...], touching: Touching) -> None:
        assert place >= 0, "the fields of an instruction are examined before its scoreboards"
        kind, operation = self._tables.kind_of[place], 1 << place
        if self._alive & operation:
            self._remove(operation)
        self._alive |= operation
        self._begun |= operation
        _put(self._groups.setdefault(kind, {}), guards, operation)
        for r in registers:
            touching[r] = touching.get(r, 0) | operation
        self._is_ordered |= self._tables.kinds[kind].is_ordering

    def leaving(self) -> State:
        """Operations under way at the end of the block."""
        self._bury()
        entry, over = self._entry, self._begun ^ self._alive
        groups = {kind: groups for kind, groups in self._groups.items() if groups}
        results, sources = _without(self._results, over), _without(self._sources, over)
        return State(
            entry.groups if groups == entry.groups else groups,
            entry.results if results == entry.results else results,
            entry.sources if sources == entry.sources else sources,
        )


def _without(touching: Touching, over: int) -> Touching:
    """Sets that hold nothing of what is over stay the very same, so that they are quick to compare."""
    if not over:
        return touching
    found = {}
    for register, operations in touching.items():
        gone = operations & over
        if gone != operations:
            found[register] = operations ^ gone if gone else operations
    return found


def _guards(*boards: int | None) -> Guards:
    """Just raised, for an operation that begins."""
    return tuple(0 if board in boards else -1 for board in range(BOARDS))


def _with(guards: Guards, board: int, count: int) -> Guards:
    return (*guards[:board], count, *guards[board + 1 :])


def _put(groups: dict[Guards, int], guards: Guards, operations: int) -> None:
    groups[guards] = groups.get(guards, 0) | operations


def _take(groups: dict[Guards, int], guards: Guards, operations: int) -> None:
    groups[guards] ^= operations
    if not groups[guards]:
        del groups[guards]


def joined(known: State, arriving: State) -> State:
    """With what arrives on one more path; the very state that was known if that is nothing new."""
    groups = _joined_groups(known.groups, arriving.groups)
    results = _joined_touching(known.results, arriving.results)
    sources = _joined_touching(known.sources, arriving.sources)
    if groups is known.groups and results is known.results and sources is known.sources:
        return known
    return State(groups, results, sources)


def _joined_touching(known: Touching, arriving: Touching) -> Touching:
    if not arriving or known == arriving:
        return known
    if not known:
        return arriving
    found = known
    for register, operations in arriving.items():
        mine = known.get(register, 0)
        if mine is operations:
            continue
        both = mine | operations
        if both != mine:
            found = dict(known) if found is known else found
            found[register] = operations if both == operations else both
    return found


def _joined_groups(known: Groups, arriving: Groups) -> Groups:
    if known is arriving or not arriving:
        return known
    if not known:
        return arriving
    found = known
    for kind, groups in arriving.items():
        mine = known.get(kind, {})
        both = _joined_kind(mine, groups)
        if both is not mine:
            found = dict(known) if found is known else found
            found[kind] = both
    return found


def _joined_kind(known: dict[Guards, int], arriving: dict[Guards, int]) -> dict[Guards, int]:
    if known is arriving or not arriving:
        return known
    if not known:
        return arriving
    found = known
    for guards, operations in arriving.items():
        new = operations & ~found.get(guards, 0)
        for other, held in list(found.items()) if new else ():
            shared = new & held
            # A scoreboard that does not vouch counts -1, so that the smaller is always the more careful.
            careful = tuple(map(min, guards, other)) if shared else other
            new ^= shared
            if careful != other:
                found = dict(known) if found is known else found
                _take(found, other, shared)
                _put(found, careful, shared)
        if new:
            found = dict(known) if found is known else found
            _put(found, guards, new)
    return found
