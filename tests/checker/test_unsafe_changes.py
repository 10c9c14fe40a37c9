"""Changes that were certified once although no compiler makes them, on every chip that has them.

Each is made by hand in a kernel of our own and refused by the name of what it breaks. The board makes none.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from cuasmrl.binary.cubin import Cubin
from cuasmrl.binary.sass import (
    GUARD,
    File,
    Hazard,
    Instruction,
    Order,
    file_of,
    name_of,
)
from cuasmrl.checker import Checker, Refusal, Rule
from tests.checker.conftest import CHIPS, Examined, each
from tests.checker.plants.base import waiting, without
from tests.checker.plants.branches import FLOORS
from tests.checker.plants.ordering import Awaited, atomics, fences, reservations, strong_loads
from tests.checker.plants.queues import first_touch
from tests.checker.squeezing import squeezed, with_stall
from tests.checker.subjects import Subject, Timed


def _refusal(checker: Checker, candidate: Cubin) -> Refusal:
    with pytest.raises(Refusal) as caught:
        checker.check(candidate)
    return caught.value


# ---- too close ----


def _squeeze_all(
    examined: Examined, source: str, chip: str, chosen: Callable[[Instruction, Instruction, Timed], bool]
) -> list[int]:
    """Bring every chosen dependence that can be a cycle too close; the cycles that each of them needs."""
    checker, subjects = examined(source, chip)
    needed = []
    for subject in subjects.values():
        for found in subject.kept_by_time:
            p, c = found.pair.producer, found.pair.consumer
            if found.needed < 2 or not chosen(subject.code[p], subject.code[c], found):
                continue
            controls = squeezed(subject, p, c, found.needed - 1)
            if controls is None:
                continue
            refusal = _refusal(checker, subject.build(controls=controls))
            assert refusal.rule is Rule.DISTANCE
            assert (refusal.producer, refusal.consumer) == (p, c)
            assert refusal.register in {name_of(pair.register) for pair in subject.hazards(p, c)}
            assert refusal.found == found.needed - 1
            needed.append(found.needed)
    return needed


def _reads_predicate(opcode: str) -> Callable[[Instruction, Instruction, Timed], bool]:
    def chosen(_: Instruction, consumer: Instruction, found: Timed) -> bool:
        reads = found.pair.hazard is Hazard.RAW and file_of(found.pair.register) is File.P
        return reads and consumer.opcode == opcode and found.pair.consumer_role != GUARD

    return chosen


@each(*CHIPS, soon=("sm_80", "sm_90"))
def test_a_vote_reads_its_predicate_later_than_a_select(chip: str, examined: Examined) -> None:
    """Compilers leave 13 cycles (12 on sm_75) in front of a vote, and 4 or 5 in front of a select."""
    votes = _squeeze_all(examined, "lanes", chip, _reads_predicate("VOTE"))
    assert votes
    assert min(votes) >= (12 if chip == "sm_75" else 13)


@each(*CHIPS)
def test_lanes_exchange_values_that_are_there(chip: str, examined: Examined) -> None:
    for opcode in ("SHFL", "MATCH") if chip == "sm_75" else ("SHFL", "MATCH", "REDUX"):

        def chosen(_: Instruction, consumer: Instruction, found: Timed, opcode: str = opcode) -> bool:
            return consumer.opcode == opcode and found.pair.hazard is Hazard.RAW

        assert _squeeze_all(examined, "lanes", chip, chosen), opcode


@pytest.mark.slow
@pytest.mark.parametrize("opcode", ["P2R", "PLOP3", "SEL"])
def test_predicates_are_packed_combined_and_chosen_by_when_they_are_there(
    opcode: str, examined: Examined
) -> None:
    """Not on every chip is there a pair that stalls alone can bring closer."""
    pairs = [n for chip in CHIPS for n in _squeeze_all(examined, "lanes", chip, _reads_predicate(opcode))]
    assert len(pairs) >= 3


@each("sm_80", "sm_86", "sm_89", "sm_90", "sm_120", soon=("sm_80", "sm_120"))
@pytest.mark.parametrize("opcode", ["HMMA", "IMMA"])
def test_a_matrix_product_has_read_its_sources(chip: str, opcode: str, examined: Examined) -> None:
    """Loads overwrite them from the next cycle on, as they write late; arithmetic 6 cycles later at best."""

    def chosen(producer: Instruction, consumer: Instruction, found: Timed) -> bool:
        fixed = found.pair.hazard is Hazard.WAR and not consumer.is_variable
        return fixed and producer.opcode == opcode and consumer.opcode != opcode

    overwritten = _squeeze_all(examined, "overwritten", chip, chosen)
    assert overwritten
    assert min(overwritten) >= 6


def test_a_64_bit_sum_is_read_late(examined: Examined) -> None:
    def chosen(producer: Instruction, consumer: Instruction, found: Timed) -> bool:
        compared = producer.mnemonic == "IADD.64" and consumer.opcode == "ISETP"
        return compared and found.pair.hazard is Hazard.RAW

    sums = _squeeze_all(examined, "overwritten", "sm_120", chosen)
    assert sums
    assert min(sums) >= 6


@each(*CHIPS)
def test_both_halves_of_a_wide_product_are_waited_for(chip: str, examined: Examined) -> None:
    def chosen(producer: Instruction, _: Instruction, found: Timed) -> bool:
        return producer.mnemonic.startswith("IMAD.WIDE") and found.pair.hazard is Hazard.RAW

    assert len(_squeeze_all(examined, "overwritten", chip, chosen)) >= 2


# ---- waits for more than registers ----


def _drop_all(
    examined: Examined, source: str, chip: str, operations: Callable[[Subject], Iterator[Awaited]]
) -> Counter[str]:
    """Drop every wait for one of these operations; by opcode of who waited."""
    checker, subjects = examined(source, chip)
    dropped = Counter[str]()
    for subject in subjects.values():
        for found in operations(subject):
            waiter = subject.code[found.waiter]
            control = without(waiter.control, found.board)
            refusal = _refusal(checker, subject.build(controls={found.waiter: control}))
            setters = {i.index for i in subject.code if found.board in i.control.sets}
            if waiter.order.is_strict:
                assert (refusal.rule, refusal.consumer) == (Rule.BARRIER, found.waiter)
            else:
                assert refusal.rule is Rule.SCOREBOARD
                assert refusal.producer in setters
            if refusal.rule is Rule.SCOREBOARD and waiter.order is Order.MEMORY:
                assert refusal.consumer == found.waiter
            dropped[waiter.opcode] += 1
    return dropped


@each("sm_90", "sm_100", soon=("sm_90", "sm_100"))
def test_what_is_behind_a_fence_waits_for_it(chip: str, examined: Examined) -> None:
    """The fence raises a scoreboard and the next access waits for it, though no register is involved."""
    dropped = _drop_all(examined, "ordered", chip, fences)
    assert {"STG", "LDG", "ATOMG"} <= set(dropped)


@each("sm_90", "sm_100", soon=("sm_90", "sm_100"))
def test_a_dropped_wait_for_a_fence_is_named(chip: str, examined: Examined) -> None:
    checker, subjects = examined("ordered", chip)
    subject = subjects["release"]
    fence, board, store = next(iter(fences(subject)))
    assert subject.code[fence].opcode == "MEMBAR"
    assert subject.code[store].opcode == "STG"
    refusal = _refusal(checker, subject.build(controls={store: without(subject.code[store].control, board)}))
    assert (refusal.rule, refusal.producer, refusal.consumer) == (Rule.SCOREBOARD, fence, store)
    assert str(refusal) == (
        f"kernel release: {subject.code[store]} no longer waits for {subject.code[fence]}, "
        "which orders what comes behind it"
    )


@each("sm_90", "sm_100", soon=("sm_90", "sm_100"))
def test_a_load_does_not_go_in_front_of_the_wait_for_a_fence(chip: str, examined: Examined) -> None:
    """A pure change of order: LDS, which does not wait itself, overtakes LDG, which waits for all."""
    checker, subjects = examined("ordered", chip)
    subject = subjects["acquire"]
    fence, _, waiter = next(iter(fences(subject)))
    load = next(i.index for i in subject.code[waiter:] if i.opcode == "LDS")
    assert not any(subject.hazards(j, load) for j in range(waiter, load))
    refusal = _refusal(checker, subject.build(subject.moved(load, waiter)))
    assert (refusal.rule, refusal.producer, refusal.consumer) == (Rule.SCOREBOARD, fence, load)


@each("sm_90", "sm_100", "sm_120", soon=("sm_90", "sm_100"))
def test_nothing_is_in_front_of_the_wait_for_registers(chip: str, examined: Examined) -> None:
    assert _drop_all(examined, "ordered", chip, reservations)


@each(*CHIPS)
@pytest.mark.parametrize("operations", [strong_loads, atomics])
def test_strong_accesses_are_waited_for(
    chip: str, operations: Callable[[Subject], Iterator[Awaited]], examined: Examined
) -> None:
    dropped = _drop_all(examined, "ordered", chip, operations)
    assert set(dropped) & {"LDG", "LD", "STG", "ST", "STS", "CCTL"}


@each(*CHIPS)
def test_an_access_does_not_go_in_front_of_the_wait_for_a_strong_load(chip: str, examined: Examined) -> None:
    """Both read through an address that a strong load found; the second leaves the waiting to the first."""
    checker, subjects = examined("ordered", chip)
    subject = subjects["chased"]
    strong, _, waiter = next(iter(strong_loads(subject)))
    follower = waiter + 1
    assert subject.code[waiter].opcode == subject.code[follower].opcode == "LD"
    refusal = _refusal(checker, subject.build(subject.moved(follower, waiter)))
    assert (refusal.rule, refusal.producer, refusal.consumer) == (Rule.SCOREBOARD, strong, follower)


# ---- results in any order ----


@each(*CHIPS)
def test_a_load_is_not_announced_by_a_later_one(chip: str, examined: Examined) -> None:
    checker, subjects = examined("queued", chip)
    planted = Counter[str]()
    for subject in subjects.values():
        for p in subject.code:
            own, found = p.control.write_barrier, first_touch(subject, p.index)
            if p.opcode not in ("LDG", "LDL", "ATOMG", "LDC", "S2R") or own is None or found is None:
                continue
            reader = found[1]
            for later in subject.code[p.index + 1 : reader]:
                other = later.control.write_barrier
                same = later.opcode == p.opcode and not later.is_conditional
                if not same or other in (None, own) or subject.code[reader].order is Order.PINNED:
                    continue
                waits = subject.code[reader].control
                controls = {
                    p.index: replace(p.control, write_barrier=None),
                    reader: waiting(waits, other or 0),
                }
                refusal = _refusal(checker, subject.build(controls=controls))
                assert refusal.rule in (Rule.SCOREBOARD, Rule.BARRIER)
                if refusal.rule is Rule.SCOREBOARD:
                    # In a loop it is the first to overwrite its own result.
                    assert refusal.producer == p.index
                    assert refusal.consumer in (p.index, reader)
                    assert refusal.register in {name_of(access.register) for access in p.defs}
                planted[p.opcode] += 1
    assert planted["LDG"] >= 3
    assert planted["ATOMG"] >= 1


# ---- branches ----


@each(*CHIPS)
def test_a_live_branch_keeps_its_stall(chip: str, examined: Examined) -> None:
    checker, subjects = examined("branching", chip)
    seen = Counter[str]()
    for subject in subjects.values():
        for i in subject.code:
            for stall in range(min(i.control.stall, FLOORS.get(i.opcode, 0))):
                control = with_stall(subject, i.index, stall)
                refusal = _refusal(checker, subject.build(controls={i.index: control}))
                assert (refusal.rule, refusal.consumer, refusal.found) == (Rule.STALL, i.index, stall)
                assert refusal.needed is not None
                assert refusal.needed >= min(i.control.stall, FLOORS[i.opcode])
                seen[i.opcode] += 1
    assert set(FLOORS) <= set(seen)


def _floor(i: Instruction) -> int:
    """What libraries never go below: a `__syncwarp()` that became a NOP, a fence, a call."""
    turing = i.arch < 80
    if i.opcode == "NOP" and i.arch < 90:
        return 5 if turing else 6
    if i.opcode == "MEMBAR":
        return 5 if turing else 6
    return 5 if i.opcode == "CALL" and not i.is_conditional else 0


@each(*CHIPS)
def test_fences_calls_and_lanes_that_meet_keep_their_stall(chip: str, examined: Examined) -> None:
    tried, certified = Counter[str](), set[str]()
    for source in ("kernels", "ordered", "branching"):
        checker, subjects = examined(source, chip)
        for subject in subjects.values():
            for i in subject.code:
                for stall in range(1, min(i.control.stall, _floor(i))):
                    tried[i.opcode] += 1
                    try:
                        checker.check(subject.build(controls={i.index: with_stall(subject, i.index, stall)}))
                    except Refusal:
                        continue
                    certified.add(i.opcode)
    assert {"MEMBAR", "CALL"} <= set(tried)
    assert not certified
