"""Pipes that instructions of another one keep busy: behind a DMMA, double precision has to wait."""

from collections.abc import Iterator

from cuasmrl.binary.sass import Distances, Instruction
from cuasmrl.checker.answers import FOREVER
from cuasmrl.checker.program import Arrangement, Program
from cuasmrl.checker.spacing import Backwards, Kind, Talk, closest
from cuasmrl.checker.verdict import Fault, Rule


class Sharing:
    """Cycles from each instruction that shares a pipe to the next one of that pipe."""

    def __init__(self, program: Program, table: Distances, original: Arrangement):
        self.program, self.table = program, table
        code = program.instructions
        shared = [_shared(i) for i in code]
        self._is_needed = any(shared)
        own = [() if i.declaration is None or i.never_executes else (i.declaration.pipe,) for i in code]
        self._talk = Talk(own, shared, [i.timing_key for i in code])
        self._least: dict[tuple[Kind, str], int] = {}
        """By timing keys: the smallest distance in the original."""
        for (first, second), distance in self._closest(original).items():
            key = first, code[second].timing_key
            self._least[key] = min(self._least.get(key, FOREVER), distance)

    def faults(self, candidate: Arrangement) -> Iterator[Fault]:
        back = Backwards(self.program, candidate, self._talk)
        for second in sorted({second for _, second in self._closest(candidate)}):
            for first, distance in back.speakers(second, FOREVER).items():
                needed = self._needed(self.program.instructions[first], self.program.instructions[second])
                if distance < needed:
                    message = f"{{c}} follows {{p}}, which shares its pipe, after {distance} cycles, but "
                    message += f"needs {needed}"
                    yield Fault(Rule.SPACING, second, message, first, needed=needed, found=distance)

    def _closest(self, arrangement: Arrangement) -> dict[tuple[Kind, int], int]:
        return closest(self.program, arrangement, self._talk) if self._is_needed else {}

    def _needed(self, first: Instruction, second: Instruction) -> int:
        declaration = first.declaration
        assert declaration is not None
        known = self.table.spacing(first, declaration.shares)
        seen = self._least.get((first.timing_key, second.timing_key), FOREVER)
        return seen if known is None else min(known, seen)


def _shared(i: Instruction) -> tuple[str, ...]:
    declaration = i.declaration
    if declaration is None or declaration.shares is None or i.never_executes:
        return ()
    return (declaration.shares,)
