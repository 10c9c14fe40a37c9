"""What a plant is, and how kinds of plants are declared."""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import wraps

from cuasmrl.binary.cubin import Cubin
from cuasmrl.binary.sass import Control, Instruction
from cuasmrl.checker import Refusal, Rule
from tests.checker.subjects import Subject

Named = Callable[[Refusal], bool]


@dataclass(frozen=True)
class Plant:
    broken: Cubin
    rules: frozenset[Rule]
    """Rules of which one must be given as the reason."""
    named: Named
    """Does the refusal name what was planted?"""
    story: str


Site = Callable[[random.Random], Plant | None]
"""One place where a kind of fault can be planted; building the cubin waits until it is called."""
Kind = Callable[[Subject], Iterator[Site]]
KINDS: dict[str, Kind] = {}


def kind(name: str, leads_outside: bool = False) -> Callable[[Kind], Kind]:
    """In kernels that call no code outside of them, or only in those that do: there nothing may change."""

    def enter(sites: Kind) -> Kind:
        @wraps(sites)
        def found(subject: Subject) -> Iterator[Site]:
            return sites(subject) if subject.leads_outside is leads_outside else iter(())

        assert name not in KINDS
        KINDS[name] = found
        return sites

    return enter


# ---- what an instruction is ----


def is_atomic(i: Instruction) -> bool:
    return i.opcode in ("ATOM", "ATOMG", "ATOMS", "RED", "REDG")


def is_strong(i: Instruction) -> bool:
    return is_atomic(i) or "STRONG" in i.modifiers


# ---- control bits ----


def without(control: Control, board: int) -> Control:
    return replace(control, wait_mask=control.wait_mask & ~(1 << board))


def waiting(control: Control, board: int) -> Control:
    return replace(control, wait_mask=control.wait_mask | 1 << board)


# ---- what a refusal may name ----


def both(first: int, second: int) -> Named:
    return lambda refusal: {first, second} <= {refusal.producer, refusal.consumer}


def either(first: int, second: int) -> Named:
    return lambda refusal: bool({first, second} & {refusal.producer, refusal.consumer})


def consumer(index: int) -> Named:
    return lambda refusal: refusal.consumer == index


def producer(index: int) -> Named:
    return lambda refusal: refusal.producer == index


def one_of(*instructions: int) -> Named:
    def named(refusal: Refusal) -> bool:
        return refusal.producer in instructions or refusal.consumer in instructions

    return named


def raised(subject: Subject, board: int, *others: int) -> Named:
    """One of those that raise this scoreboard, or of these."""
    setters = {i.index for i in subject.code if board in i.control.sets}
    return lambda refusal: refusal.producer in setters or refusal.producer in others


# ---- ways to break a kernel; each takes the random source last, so that `partial` makes a site of it ----


def move(
    subject: Subject, i: int, before: int, rules: frozenset[Rule], named: Named, what: str, _: random.Random
) -> Plant:
    story = f"{what}: {subject.code[i]} put before {subject.code[before]}"
    return Plant(subject.build(subject.moved(i, before)), rules, named, story)


def edit(
    subject: Subject, i: int, control: Control, rule: Rule, named: Named, what: str, _: random.Random
) -> Plant:
    return Plant(
        subject.build(controls={i: control}), frozenset((rule,)), named, f"{what}: {subject.code[i]}"
    )


def is_too_close(refusal: Refusal) -> bool:
    """Does it name cycles that are missing?"""
    return refusal.found is not None and refusal.needed is not None and refusal.found < refusal.needed
