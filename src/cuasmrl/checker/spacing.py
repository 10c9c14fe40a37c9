"""Minimum spacing of pairs that need no common register: in one pipe, and on one scoreboard."""

from collections.abc import Callable, Iterable, Iterator

from cuasmrl.binary.sass import Distances
from cuasmrl.checker.latency import FOREVER
from cuasmrl.checker.program import Arrangement, Program, boards_waited
from cuasmrl.checker.verdict import Fault, Rule

_RELEASE = 2
"""A scoreboard raised at issue is visible two cycles later (measured on sm_86 by Huerta et al.)."""


def closest(
    program: Program,
    arrangement: Arrangement,
    heard: Callable[[int], Iterable[object]],
    spoken: Callable[[int], Iterable[object]],
) -> dict[tuple[int, int], int]:
    """The shortest distance, over all paths, from each instruction to the next one that hears it.

    An instruction speaks on some channels and hears on some; who hears a channel also silences it.
    """
    found: dict[tuple[int, int], int] = {}
    entry: list[dict[tuple[object, int], int]] = [{} for _ in program.blocks]
    work = list(range(len(program.blocks)))
    while work:
        number = work.pop()
        block, base = program.blocks[number], entry[number]
        talking = {key: -elapsed for key, elapsed in base.items()}
        for i in arrangement.order[block.start : block.end]:
            at = arrangement.start[i]
            for channel in heard(i):
                for key in [key for key in talking if key[0] == channel]:
                    pair = (key[1], i)
                    found[pair] = min(found.get(pair, FOREVER), at - talking.pop(key))
            for channel in spoken(i):
                talking[channel, i] = at
        total = arrangement.total[number]
        leaving = {key: total - at for key, at in talking.items() if total - at < FOREVER}
        for following in block.successors:
            target = entry[following]
            changed = [key for key, elapsed in leaving.items() if elapsed < target.get(key, FOREVER)]
            if changed:
                target.update((key, leaving[key]) for key in changed)
                work.append(following)
    return found


class Spacings:
    """Two instructions that follow each other in one pipe, and setters and waiters of one scoreboard."""

    def __init__(self, program: Program, table: Distances, original: Arrangement):
        self.program, self.table = program, table
        self._pipe_before = self._in_pipe(original)
        self._release_before = self._releases(original)
        self._least: dict[tuple[str, str], int] = {}
        self._own: dict[int, int] = {}
        for (first, second), distance in self._pipe_before.items():
            key = self._keys(first, second)
            self._least[key] = min(self._least.get(key, FOREVER), distance)
            self._own[first] = min(self._own.get(first, FOREVER), distance)

    def release_faults(self, candidate: Arrangement) -> Iterator[Fault]:
        """A scoreboard counts only from some cycles after it was raised; a wait before that sees nothing."""
        for (setter, waiter), found in self._releases(candidate).items():
            needed = self.table.release(self.program.instructions[setter])
            needed = _RELEASE if needed is None else needed
            before = self._release_before.get((setter, waiter), FOREVER)
            if found < min(needed, before):
                message = f"{{c}} waits {found} cycles after {{p}} set the scoreboard, but needs {needed}"
                yield Fault(Rule.RELEASE, waiter, message, setter, needed=needed, found=found)

    def spacing_faults(self, candidate: Arrangement) -> Iterator[Fault]:
        for (first, second), found in self._in_pipe(candidate).items():
            needed = self._needed(first, second)
            if found < needed:
                message = f"{{c}} follows {{p}} in the same pipe after {found} cycles, but needs {needed}"
                yield Fault(Rule.SPACING, second, message, first, needed=needed, found=found)

    def _needed(self, first: int, second: int) -> int:
        known = self.table.spacing(self.program.instructions[first])
        seen = self._least.get(self._keys(first, second))
        if known is not None:
            return known if seen is None else min(known, seen)
        return seen if seen is not None else self._own.get(first, 1)

    def _keys(self, first: int, second: int) -> tuple[str, str]:
        return self.program.instructions[first].timing_key, self.program.instructions[second].timing_key

    def _in_pipe(self, arrangement: Arrangement) -> dict[tuple[int, int], int]:
        def pipe(i: int) -> tuple[str, ...]:
            instruction = self.program.instructions[i]
            if instruction.declaration is None or instruction.never_executes:
                return ()
            return (instruction.declaration.pipe,)

        return closest(self.program, arrangement, pipe, pipe)

    def _releases(self, arrangement: Arrangement) -> dict[tuple[int, int], int]:
        return closest(
            self.program,
            arrangement,
            lambda i: {k for k, _ in boards_waited(self.program, arrangement, i)},
            lambda i: arrangement.controls[i].sets,
        )
