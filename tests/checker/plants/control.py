"""Control bits that no compiler emits, and flags that no longer fit."""

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

from cuasmrl.binary.sass import Control, Instruction
from cuasmrl.checker import Rule
from tests.checker.plants.base import Plant, Site, consumer, edit, kind
from tests.checker.subjects import Subject


def _declare(name: str, rule: Rule, change: Callable[[Subject, Instruction], Control | None]) -> None:
    @kind(name)
    def sites(subject: Subject) -> Iterator[Site]:
        for i in subject.code:
            control = change(subject, i)
            if control is not None:
                yield partial(edit, subject, i.index, control, rule, consumer(i.index), name)


def _below_minimum(subject: Subject, i: Instruction) -> Control | None:
    least = subject.table.minimum_stall(i)
    if not least or min(i.control.stall, subject.compiled(i.index).stall) < least:
        return None
    return replace(i.control, stall=least - 1, yield_=True, reuse=0)


_declare("stall 13 without yield", Rule.ENCODING, lambda _, i: replace(i.control, stall=13, yield_=False))
_declare(
    "stall 0 without yield",
    Rule.ENCODING,
    lambda _, i: replace(i.control, stall=0, yield_=False) if i.control.stall else None,
)
_declare("stall below the minimum", Rule.STALL, _below_minimum)
_declare(
    "yield beside a reuse flag",
    Rule.ENCODING,
    lambda _, i: replace(i.control, yield_=True) if i.control.reuse else None,
)
_declare(
    "invented reuse flag",
    Rule.REUSE,
    lambda s, i: None if s.compiled(i.index).reuse or i.control.yield_ else replace(i.control, reuse=1),
)
_declare(
    "write barrier 6",
    Rule.BARRIER,
    lambda _, i: None if i.is_variable else replace(i.control, write_barrier=6),
)
_declare(
    "write barrier 6 of a load",
    Rule.ENCODING,
    lambda _, i: (
        replace(i.control, write_barrier=6)
        if i.opcode in ("LDG", "LDS", "LDSM") and i.control.write_barrier in (4, 5)
        else None
    ),
)


@kind("stale reuse flag")
def stale_reuse_flag(subject: Subject) -> Iterator[Site]:
    """What followed a flagged instruction changes places with its own successor, and the flag stays."""
    for i in subject.code[:-2]:
        a, b = i.index + 1, i.index + 2
        movable = subject.is_movable(a) and subject.is_movable(b) and subject.region[a] == subject.region[b]
        if i.control.reuse and movable and not subject.hazards(a, b):
            yield partial(_leave_flag, subject, i.index)


def _leave_flag(subject: Subject, i: int, _: random.Random) -> Plant:
    broken = subject.build(subject.moved(i + 2, i + 1), {i: subject.code[i].control})
    return Plant(broken, frozenset((Rule.REUSE,)), consumer(i), f"flag left on {subject.code[i]}")
