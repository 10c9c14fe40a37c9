"""What a broken optimiser might do to a whole block or kernel."""

import random
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import accumulate, pairwise

from cuasmrl.binary.sass import Hazard, Instruction, Order, name_of, without_control
from cuasmrl.checker import Refusal, Rule
from tests.checker.plants.base import Named, Plant, Site, both, consumer, either, kind, move
from tests.checker.plants.scoreboards import announced_results, queue_of
from tests.checker.squeezing import least_stall, with_stall
from tests.checker.subjects import Subject

_DATA_FLOW = frozenset((Rule.DATA_FLOW,))


def _register_between(subject: Subject) -> Named:
    """Two instructions and a register that they do share."""

    def named(refusal: Refusal) -> bool:
        p, c = refusal.producer, refusal.consumer
        if p is None or c is None:
            return False
        return refusal.register in {name_of(pair.register) for pair in subject.hazards(p, c)}

    return named


# ---- order ----


def _runs(subject: Subject) -> Iterator[range]:
    """Movable instructions in a row, in one region."""
    start = 0
    for i in range(len(subject.code) + 1):
        is_movable = i < len(subject.code) and subject.is_movable(i)
        if not is_movable or subject.region[i] != subject.region[start]:
            if i - start >= 3:
                yield range(start, i)
            start = i if is_movable else i + 1


def _are_dependent(subject: Subject, run: range) -> bool:
    return not any(subject.twins[i] for i in run) and any(subject.hazards(a, b) for a, b in pairwise(run))


@kind("instructions in a row turned round")
def turned_round(subject: Subject) -> Iterator[Site]:
    for run in _runs(subject):
        for start in range(run.start, run.stop - 3):
            part = range(start, min(start + 6, run.stop))
            if _are_dependent(subject, part):
                yield partial(_turn_round, subject, part)


def _turn_round(subject: Subject, run: range, _: random.Random) -> Plant:
    order = list(range(len(subject.code)))
    order[run.start : run.stop] = reversed(run)
    story = f"turned round from {subject.code[run[0]]} to {subject.code[run[-1]]}"
    return Plant(subject.build(order), _DATA_FLOW, _register_between(subject), story)


@kind("distant instructions exchanged")
def distant_exchanged(subject: Subject) -> Iterator[Site]:
    for run in _runs(subject):
        for a in run:
            for b in range(a + 2, min(a + 12, run.stop)):
                if subject.hazards(a, b) and not subject.twins[a] and not subject.twins[b]:
                    yield partial(_exchange, subject, a, b)


def _exchange(subject: Subject, a: int, b: int, _: random.Random) -> Plant:
    order = list(range(len(subject.code)))
    order[a], order[b] = b, a
    story = f"{subject.code[a]} and {subject.code[b]} exchanged"
    return Plant(subject.build(order), _DATA_FLOW, _register_between(subject), story)


@kind("producer put behind its consumer")
def put_behind_its_consumer(subject: Subject) -> Iterator[Site]:
    """As far down as nothing keeps it, and one further."""
    for p in range(len(subject.code) - 2):
        for c in range(p + 1, len(subject.code) - 1) if subject.is_movable(p) else ():
            movable = subject.is_movable(c) and subject.is_movable(c + 1)
            if not movable or subject.region[c + 1] != subject.region[p]:
                break
            pairs = subject.hazards(p, c)
            if any(x.hazard is Hazard.RAW for x in pairs) and subject.code[p].text != subject.code[c].text:
                yield partial(move, subject, p, c + 1, _DATA_FLOW, both(p, c), "put behind its consumer")
            if pairs or subject.may_be_ordered(p, c):
                break


@kind("access moved across a fence")
def moved_across_a_fence(subject: Subject) -> Iterator[Site]:
    for fence in subject.code[1:-1]:
        if fence.declaration is None or not fence.declaration.fence:
            continue
        f, rules = fence.index, frozenset((Rule.PINNED, Rule.SYNC_ORDER, Rule.PADDING))
        for other in (f - 1, f + 1):
            if subject.code[other].order is Order.MEMORY and subject.block[other] == subject.block[f]:
                first = min(f, other)
                named = either(first, first + 1)
                yield partial(move, subject, first + 1, first, rules, named, "moved across a fence")


@kind("operations that are counted exchanged")
def counted_exchanged(subject: Subject) -> Iterator[Site]:
    """`DEPBAR.LE SB0, 1` lets the last one run on: which one that is must not change."""
    counted = {i.depbar[0] for i in subject.code if i.depbar is not None and i.depbar[1]}
    raisers = [i for i in subject.code if counted & set(i.control.sets)]
    for a, b in pairwise(raisers):
        rules = frozenset((Rule.SYNC_ORDER, Rule.MEMORY_ORDER, Rule.DATA_FLOW))
        together = subject.region[a.index] == subject.region[b.index]
        between = subject.code[a.index + 1 : b.index]
        apart = not any(subject.hazards(i.index, b.index) or i.order is not Order.FREE for i in between)
        if together and apart and a.text != b.text and subject.is_movable(a.index):
            yield partial(move, subject, b.index, a.index, rules, both(a.index, b.index), "exchanged")


# ---- control bits ----


@kind("control bits left behind")
def control_left_behind(subject: Subject) -> Iterator[Site]:
    """Two neighbours change places, and each finds the control bits of the other."""
    for a, b in pairwise(subject.code):
        movable = subject.is_movable(a.index) and subject.is_movable(b.index)
        together = subject.region[a.index] == subject.region[b.index]
        if not movable or not together or a.text == b.text or subject.hazards(a.index, b.index):
            continue
        if subject.may_be_ordered(a.index, b.index):
            continue
        for loser, finder in ((a, b), (b, a)):
            if loser.control.write_barrier is not None and not finder.is_variable and finder.declaration:
                yield partial(_leave_control, subject, a, b)


def _leave_control(subject: Subject, a: Instruction, b: Instruction, _: random.Random) -> Plant:
    controls = {a.index: replace(b.control, reuse=0), b.index: replace(a.control, reuse=0)}
    broken = subject.build(subject.moved(b.index, a.index), controls)
    story = f"control bits of {a} and {b} stay in their places"
    return Plant(broken, frozenset((Rule.BARRIER, Rule.STALL)), either(a.index, b.index), story)


@kind("waits of two readers exchanged")
def waits_exchanged(subject: Subject) -> Iterator[Site]:
    for (p, first, board), (q, second, other) in pairwise(announced_results(subject)):
        readers = [subject.code[first], subject.code[second]]
        if first >= second or board == other or subject.block[first] != subject.block[second]:
            continue
        if any(i.order.is_strict for i in readers):
            continue
        if {board, other} <= set(readers[0].control.waits) or {board, other} <= set(readers[1].control.waits):
            continue
        if any(board in subject.waits_of(j) for j in range(p + 1, first)):
            continue
        yield partial(_exchange_waits, subject, (p, first), (q, second))


def _exchange_waits(
    subject: Subject, upper: tuple[int, int], lower: tuple[int, int], _: random.Random
) -> Plant:
    a, b = subject.code[upper[1]], subject.code[lower[1]]
    controls = {
        a.index: replace(a.control, wait_mask=b.control.wait_mask),
        b.index: replace(b.control, wait_mask=a.control.wait_mask),
    }
    boards = set(a.control.waits) | set(b.control.waits)
    setters = {i.index for i in subject.code if boards & set(i.control.sets)}
    # Earlier ones of a queue may have been announced with them.
    queues = {queue_of(subject, i) for i in setters}

    def named(refusal: Refusal) -> bool:
        p = refusal.producer
        return p is not None and (p in setters or queue_of(subject, p) in queues)

    story = f"waits of {a} and {b} exchanged"
    return Plant(subject.build(controls=controls), frozenset((Rule.SCOREBOARD,)), named, story)


@kind("kernel without waits")
def kernel_without_waits(subject: Subject) -> Iterator[Site]:
    if any(i.control.wait_mask for i in subject.code):
        yield partial(_drop_all, subject)


def _drop_all(subject: Subject, _: random.Random) -> Plant:
    controls = {i.index: replace(i.control, wait_mask=0) for i in subject.code if i.control.wait_mask}
    waiting = set(controls)
    setters = {i.index for i in subject.code if i.control.sets}

    def named(refusal: Refusal) -> bool:
        if refusal.rule is Rule.BARRIER:
            return refusal.consumer in waiting
        return refusal.producer in setters

    rules = frozenset((Rule.BARRIER, Rule.SCOREBOARD))
    return Plant(subject.build(controls=controls), rules, named, "every wait dropped")


@kind("kernel with the smallest stalls")
def kernel_with_smallest_stalls(subject: Subject) -> Iterator[Site]:
    if any(found.needed > 2 * (found.pair.consumer - found.pair.producer) for found in subject.kept_by_time):
        yield partial(_hurry, subject)


def _hurry(subject: Subject, _: random.Random) -> Plant | None:
    controls = {
        i.index: with_stall(subject, i.index, min(i.control.stall, max(1, least_stall(subject, i.index))))
        for i in subject.code
    }
    times = [0, *accumulate(control.stall for control in controls.values())]
    close = (f for f in subject.kept_by_time if times[f.pair.consumer] - times[f.pair.producer] < f.needed)
    if not any(close):
        return None
    registers = _register_between(subject)

    def named(refusal: Refusal) -> bool:
        return registers(refusal) and (refusal.found or 0) < (refusal.needed or 0)

    return Plant(subject.build(controls=controls), frozenset((Rule.DISTANCE,)), named, "every stall cut")


# ---- words ----


@kind("word of another kernel")
def word_of_another_kernel(subject: Subject) -> Iterator[Site]:
    own = {without_control(i.word) for i in subject.code}
    for kernel in subject.cubin.kernels:
        for word in kernel.words if kernel.name != subject.listing.kernel.name else ():
            if without_control(word) not in own:
                yield partial(_put_word, subject, word)


def _put_word(subject: Subject, word: bytes, rng: random.Random) -> Plant:
    place = rng.randrange(len(subject.code))
    words = [i.word for i in subject.code]
    words[place] = word
    broken = subject.cubin.with_words(subject.listing.kernel, tuple(words), {})
    story = f"a word of another kernel in place of {subject.code[place]}"
    return Plant(broken, frozenset((Rule.WORD,)), consumer(place), story)
