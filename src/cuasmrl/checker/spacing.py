"""Minimum spacing of pairs that need no common register: in one pipe, and on one scoreboard."""

from collections.abc import Generator, Iterator, Sequence
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from cuasmrl.binary.sass import Distances
from cuasmrl.checker.answers import FOREVER
from cuasmrl.checker.graph import Worklist
from cuasmrl.checker.program import Arrangement, Program
from cuasmrl.checker.verdict import Fault, Rule

_RELEASE = 2
"""A scoreboard raised at issue is visible two cycles later (measured on sm_86 by Huerta et al.)."""

Channel = str | int
"""A pipe, or a scoreboard."""
Kind = str | int
"""A timing key, or the cycles that a setter needs before a wait."""
Talking = dict[Channel, dict[Kind, int]]


class Talk(NamedTuple):
    """Who speaks to whom. An instruction speaks on some channels and hears on some; who hears also silences.

    Where one does both on a channel, it hears first.
    """

    heard: Sequence[Sequence[Channel]]
    """By instruction."""
    spoken: Sequence[Sequence[Channel]]
    kind: Sequence[Kind]
    """Speakers of one kind are treated alike."""


def closest(program: Program, arrangement: Arrangement, talk: Talk) -> dict[tuple[Kind, int], int]:
    """{(kind of speaker, next one that hears it): shortest distance over all paths, at most FOREVER}"""
    found: dict[tuple[Kind, int], int] = {}
    graph = program.graph
    entry: list[Talking] = [{} for _ in graph.paths]
    work = Worklist(graph)
    while work:
        node = work.pop()
        talking: Talking = {
            channel: {kind: -elapsed for kind, elapsed in kinds.items()}
            for channel, kinds in entry[node].items()
        }
        total = 0
        if node < graph.blocks:
            block, total = program.blocks[node], arrangement.total[node]
            for i in arrangement.order[block.start : block.end]:
                at = arrangement.start[i]
                for channel in talk.heard[i]:
                    if channel in talking:
                        for kind, since in talking.pop(channel).items():
                            found[kind, i] = min(at - since, found.get((kind, i), FOREVER))
                for channel in talk.spoken[i]:
                    talking.setdefault(channel, {})[talk.kind[i]] = at
        for following in graph.paths[node]:
            if _pass_on(talking, total, entry[following]):
                work.push(following)
    return found


def _pass_on(talking: Talking, total: int, entry: Talking) -> bool:
    """Was any of it new, or closer than before?"""
    changed = False
    for channel, found in talking.items():
        for kind, since in found.items():
            elapsed = total - since
            if elapsed < FOREVER and elapsed < entry.get(channel, {}).get(kind, FOREVER):
                entry.setdefault(channel, {})[kind] = elapsed
                changed = True
    return changed


class Backwards:
    """Looks up one by one, against the order of execution, who is heard."""

    def __init__(self, program: Program, arrangement: Arrangement, talk: Talk):
        self._program, self._arrangement, self._talk = program, arrangement, talk
        self._before = program.graph.predecessors()

    def speakers(self, hearer: int, limit: int) -> dict[int, int]:
        """{speaker: shortest distance} for those that are heard less than `limit` cycles later."""
        found: dict[int, int] = {}
        for channel in self._talk.heard[hearer]:
            for speaker, distance in self._on(channel, hearer, limit):
                found[speaker] = min(found.get(speaker, FOREVER), distance)
        return found

    def _on(self, channel: Channel, hearer: int, limit: int) -> Iterator[tuple[int, int]]:
        arrangement, blocks = self._arrangement, self._program.blocks
        number = self._program.block_of[hearer]
        start, position = arrangement.start[hearer], arrangement.position[hearer]
        silenced = yield from self._walk(channel, limit, start, blocks[number].start, position)
        work = [] if silenced else [(start, node) for node in self._before[number]]
        heapify(work)
        done: set[int] = set()
        while work:
            # Cycles from the end of this node to the hearer, the fewest first.
            distance, node = heappop(work)
            if node in done or distance >= limit:
                continue
            done.add(node)
            if node < len(blocks):
                total, block = arrangement.total[node], blocks[node]
                silenced = yield from self._walk(channel, limit, total + distance, block.start, block.end)
                if silenced:
                    continue
                distance += total
            for previous in self._before[node]:
                heappush(work, (distance, previous))

    def _walk(
        self, channel: Channel, limit: int, hearer: int, head: int, position: int
    ) -> Generator[tuple[int, int], None, bool]:
        """Speakers from a position up to the head of its block. Is it silenced there, or the rest too far?

        The hearer issues `hearer` cycles after the head of that block.
        """
        talk, arrangement = self._talk, self._arrangement
        for p in range(position - 1, head - 1, -1):
            i = arrangement.order[p]
            away = hearer - arrangement.start[i]
            if away >= limit:
                return True
            if channel in talk.spoken[i]:
                yield i, away
            if channel in talk.heard[i]:
                return True
        return False


class _Following(NamedTuple):
    """Of one block of the original."""

    firsts: dict[Channel, int]
    """By pipe: when the first instruction of that pipe issues."""
    nexts: dict[int, int]
    """By instruction: cycles to the next one in its pipe."""


class Spacings:
    """Two instructions that follow each other in one pipe, and setters and waiters of one scoreboard."""

    def __init__(self, program: Program, table: Distances, original: Arrangement):
        self.program, self.table, self.original = program, table, original
        code = program.instructions
        known: dict[Kind, int | None] = {}
        release: dict[str, int] = {}
        for i in code:
            if i.timing_key not in known:
                known[i.timing_key] = table.spacing(i)
                needed = table.release(i)
                release[i.timing_key] = _RELEASE if needed is None else needed
        self._known, self._release = known, [release[i.timing_key] for i in code]
        self._key = [i.timing_key for i in code]
        pipes: list[tuple[str, ...]] = [
            () if i.declaration is None or i.never_executes else (i.declaration.pipe,) for i in code
        ]
        self._pipes = Talk(pipes, pipes, self._key)
        self._least: dict[tuple[Kind, str], int] = {}
        """By timing keys: the smallest distance in the original."""
        for (first, second), distance in closest(program, original, self._pipes).items():
            key = first, self._key[second]
            self._least[key] = min(self._least.get(key, FOREVER), distance)
        self._blocks: dict[int, _Following] = {}

    def release_faults(self, candidate: Arrangement) -> Iterator[Fault]:
        """A scoreboard counts only from some cycles after it was raised; a wait before that sees nothing."""
        talk = self._boards(candidate)
        found = closest(self.program, candidate, talk)
        waiters = {waiter for (needed, waiter), distance in found.items() if distance < int(needed)}
        if not waiters:
            return
        limit = max(self._release)
        now = Backwards(self.program, candidate, talk)
        then = Backwards(self.program, self.original, self._boards(self.original))
        for waiter in waiters:
            before = then.speakers(waiter, limit)
            for setter, distance in now.speakers(waiter, limit).items():
                needed = self._release[setter]
                if distance < min(needed, before.get(setter, FOREVER)):
                    message = (
                        f"{{c}} waits {distance} cycles after {{p}} set the scoreboard, but needs {needed}"
                    )
                    yield Fault(Rule.RELEASE, waiter, message, setter, needed=needed, found=distance)

    def spacing_faults(self, candidate: Arrangement) -> Iterator[Fault]:
        found = closest(self.program, candidate, self._pipes)
        close = {
            second
            for (first, second), distance in found.items()
            if (needed := self._required(first, self._key[second])) is None or distance < needed
        }
        now = Backwards(self.program, candidate, self._pipes)
        for second in close:
            for first, distance in now.speakers(second, FOREVER).items():
                needed = self._needed(first, second)
                if distance < needed:
                    message = (
                        f"{{c}} follows {{p}} in the same pipe after {distance} cycles, but needs {needed}"
                    )
                    yield Fault(Rule.SPACING, second, message, first, needed=needed, found=distance)

    def _needed(self, first: int, second: int) -> int:
        needed = self._required(self._key[first], self._key[second])
        return self._shortest(first) if needed is None else needed

    def _required(self, first: Kind, second: str) -> int | None:
        """Cycles between instructions with these timing keys, if the table or the original tells."""
        known, seen = self._known[first], self._least.get((first, second))
        if known is not None and seen is not None:
            return min(known, seen)
        return seen if known is None else known

    def _shortest(self, first: int) -> int:
        """How soon in the original anything follows in its pipe; 1 if nothing does."""
        number = self.program.block_of[first]
        inside = self._following(number).nexts.get(first)
        if inside is not None:
            return inside
        (pipe,) = self._pipes.spoken[first]
        paths, total = self.program.graph.paths, self.original.total
        left = total[number] - self.original.start[first]
        work = [(left, node) for node in paths[number]]
        heapify(work)
        done: set[int] = set()
        shortest = None
        while work:
            elapsed, node = heappop(work)
            if node in done or elapsed >= FOREVER:
                continue
            done.add(node)
            is_block = node < len(total)
            head = self._following(node).firsts.get(pipe) if is_block else None
            if head is not None:
                shortest = min(elapsed + head, FOREVER if shortest is None else shortest)
                continue
            for following in paths[node]:
                heappush(work, (elapsed + total[node] if is_block else elapsed, following))
        return 1 if shortest is None else shortest

    def _following(self, number: int) -> "_Following":
        known = self._blocks.get(number)
        if known is None:
            block, start = self.program.blocks[number], self.original.start
            known = self._blocks[number] = _Following({}, {})
            for i in range(block.end - 1, block.start - 1, -1):
                for pipe in self._pipes.heard[i]:
                    if pipe in known.firsts:
                        known.nexts[i] = min(known.firsts[pipe] - start[i], FOREVER)
                    known.firsts[pipe] = start[i]
        return known

    def _boards(self, arrangement: Arrangement) -> Talk:
        heard = [tuple({board for board, _ in waits}) for waits in arrangement.waits]
        return Talk(heard, [control.sets for control in arrangement.controls], self._release)
