"""A consumer is moved in front of the nearest instruction it depends on."""

from collections.abc import Callable, Iterator
from functools import partial

from cuasmrl.binary.sass import ADDRESS, DESCRIPTOR, GUARD, File, Hazard, file_of, name_of
from cuasmrl.checker import Refusal, Rule
from tests.checker.plants.base import Named, Site, both, kind, move
from tests.checker.subjects import Pair, Subject

Choice = Callable[[Subject, list[Pair]], bool]


def _declare(name: str, chosen: Choice) -> None:
    @kind(name)
    def sites(subject: Subject) -> Iterator[Site]:
        for c, p in enumerate(subject.obstacles):
            pairs = [] if p is None else subject.hazards(p, c)
            if p is None or subject.code[p].text == subject.code[c].text:
                continue
            if pairs and chosen(subject, pairs):
                names = {name_of(pair.register) for pair in pairs}
                yield partial(move, subject, c, p, frozenset((Rule.DATA_FLOW,)), _edge(p, c, names), name)


def _edge(p: int, c: int, registers: set[str]) -> Named:
    def named(refusal: Refusal) -> bool:
        return both(p, c)(refusal) and refusal.register in registers

    return named


def _reads(file: File, *roles: str) -> Choice:
    def chosen(_: Subject, pairs: list[Pair]) -> bool:
        return any(
            pair.hazard is Hazard.RAW
            and file_of(pair.register) is file
            and (not roles or pair.consumer_role in roles)
            for pair in pairs
        )

    return chosen


def _reads_hidden_descriptor(subject: Subject, pairs: list[Pair]) -> bool:
    return any(
        pair.hazard is Hazard.RAW
        and pair.consumer_role == DESCRIPTOR
        and name_of(pair.register) not in subject.code[pair.consumer].text
        for pair in pairs
    )


def _reads_carry(subject: Subject, pairs: list[Pair]) -> bool:
    return any(
        pair.hazard is Hazard.RAW
        and file_of(pair.register) is File.P
        and pair.consumer_role != GUARD
        and "X" in subject.code[pair.consumer].modifiers
        for pair in pairs
    )


_declare("read of a register", _reads(File.R))
_declare("read of an address register", _reads(File.R, ADDRESS))
_declare("read of a predicate", _reads(File.P))
_declare("read of a guard", _reads(File.P, GUARD))
_declare("read of a carry", _reads_carry)
_declare("read of a uniform register", _reads(File.UR))
_declare("read of a uniform predicate", _reads(File.UP))
_declare("read of a hidden descriptor", _reads_hidden_descriptor)
_declare("overwrite of a source", lambda _, pairs: all(pair.hazard is Hazard.WAR for pair in pairs))
_declare("overwrite of a result", lambda _, pairs: any(pair.hazard is Hazard.WAW for pair in pairs))
