"""Words, records and other bytes of the file."""

import random
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import pairwise

from cuasmrl.binary.cubin import Cubin
from cuasmrl.binary.sass import MAX_STALL, without_control
from cuasmrl.checker import Rule
from tests.checker.plants.base import Plant, Site, consumer, edit, either, kind, move, one_of
from tests.checker.subjects import Subject


def _patch(subject: Subject, position: int, value: bytes) -> Cubin:
    data = bytearray(subject.cubin.data)
    data[position : position + len(value)] = value
    return replace(subject.cubin, data=bytes(data))


@kind("bit of an operand flipped")
def bit_of_an_operand_flipped(subject: Subject) -> Iterator[Site]:
    for i in range(len(subject.code)):
        yield partial(_flip, subject, i)


def _flip(subject: Subject, i: int, rng: random.Random) -> Plant:
    bit = rng.randrange(105)
    word = (int.from_bytes(subject.code[i].word, "little") ^ 1 << bit).to_bytes(16, "little")
    broken = _patch(subject, subject.listing.kernel.text.offset + 16 * i, word)
    rules = frozenset((Rule.WORD, Rule.BLOCK, Rule.PINNED))
    places = {i, *_twins(subject, word)}
    story = f"bit {bit} of {subject.code[i]} flipped"
    return Plant(broken, rules, lambda refusal: refusal.consumer in places, story)


def _twins(subject: Subject, word: bytes) -> list[int]:
    """Where the same word stands already: of two copies the second is the odd one, wherever it stands."""
    return [i.index for i in subject.code if without_control(i.word) == without_control(word)]


@kind("word replaced by another")
def word_replaced_by_another(subject: Subject) -> Iterator[Site]:
    for i in range(len(subject.code)):
        yield partial(_replace, subject, i)


def _replace(subject: Subject, i: int, rng: random.Random) -> Plant | None:
    j = rng.randrange(len(subject.code))
    twins = _twins(subject, subject.code[j].word)
    if i in twins:
        return None
    broken = _patch(subject, subject.listing.kernel.text.offset + 16 * i, subject.code[j].word)
    rules = frozenset((Rule.BLOCK, Rule.PINNED))
    story = f"{subject.code[i]} replaced by {subject.code[j]}"
    return Plant(broken, rules, lambda refusal: refusal.consumer in (i, *twins), story)


@kind("record left behind")
def record_left_behind(subject: Subject) -> Iterator[Site]:
    for offset in set(subject.listing.kernel.record_offsets().values()):
        for first in (offset // 16 - 1, offset // 16):
            second = first + 1
            if first < 0 or second >= len(subject.code) or subject.region[first] != subject.region[second]:
                continue
            movable = subject.is_movable(first) and subject.is_movable(second)
            if movable and subject.code[first].text != subject.code[second].text:
                yield partial(_leave_record, subject, first)


def _leave_record(subject: Subject, first: int, _: random.Random) -> Plant:
    broken = subject.build(subject.moved(first + 1, first), follow=False)
    return Plant(broken, frozenset((Rule.RECORD,)), either(first, first + 1), "record left behind")


@kind("record wrong")
def record_wrong(subject: Subject) -> Iterator[Site]:
    for slot, offset in subject.listing.kernel.record_offsets().items():
        for delta in (-16, 16, 4):
            if offset + delta >= 0:
                yield partial(_spoil_record, subject, slot, offset, delta)


def _spoil_record(subject: Subject, slot: int, offset: int, delta: int, _: random.Random) -> Plant:
    broken = _patch(subject, slot, (offset + delta).to_bytes(4, "little"))
    return Plant(
        broken, frozenset((Rule.RECORD,)), consumer(offset // 16), f"record at {slot:#x} off by {delta}"
    )


@kind("anything changed in a kernel that leads outside", leads_outside=True)
def anything_changed(subject: Subject) -> Iterator[Site]:
    for i in subject.code:
        old = i.control
        slower = replace(old, stall=min(old.stall + 1, MAX_STALL), yield_=True, reuse=0)
        for control in (slower, replace(old, wait_mask=63), replace(old, yield_=not old.yield_, reuse=0)):
            if control != old:
                yield partial(edit, subject, i.index, control, Rule.RECORD, consumer(i.index), "changed")
    for a, b in pairwise(range(len(subject.code))):
        free = subject.is_movable(a) and subject.is_movable(b) and not subject.hazards(a, b)
        if free and subject.region[a] == subject.region[b] and subject.code[a].text != subject.code[b].text:
            # Who stood in front of them loses its reuse flag.
            rules, named = frozenset((Rule.RECORD,)), one_of(a - 1, a, b)
            yield partial(move, subject, b, a, rules, named, "exchanged")


@kind("byte elsewhere changed")
def byte_elsewhere_changed(subject: Subject) -> Iterator[Site]:
    editable: set[int] = set()
    for kernel in subject.cubin.kernels:
        editable |= set(range(kernel.text.offset, kernel.text.offset + kernel.text.size))
        editable |= {slot + k for slot in kernel.record_offsets() for k in range(4)}
    places = [n for n in range(len(subject.cubin.data)) if n not in editable]
    for _ in range(64):
        yield partial(_spoil, subject, places)


def _spoil(subject: Subject, places: list[int], rng: random.Random) -> Plant:
    place = rng.choice(places)
    broken = _patch(subject, place, bytes([subject.cubin.data[place] ^ 1 << rng.randrange(8)]))
    rules = frozenset((Rule.CONTAINER,))
    return Plant(broken, rules, lambda refusal: f"{place:#x}" in str(refusal), f"byte {place:#x} changed")
