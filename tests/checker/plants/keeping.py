"""What a schedule has lost of an original: distances, waits and stalls, looked up without the checker."""

from collections.abc import Callable, Iterator

from cuasmrl.binary.sass import Instruction, Order
from cuasmrl.schedule import Schedule
from tests.checker.plants.branches import FLOORS
from tests.checker.plants.ordering import Awaited, atomics, fences, reservations, strong_loads
from tests.checker.plants.queues import ANY_ORDER, first_touch
from tests.checker.plants.scoreboards import queue_of
from tests.checker.subjects import Subject


def lost(subject: Subject, schedule: Schedule) -> list[str]:
    return [
        *_lost_distances(subject, schedule),
        *_lost_order(subject, schedule),
        *_lost_waits(subject, schedule),
        *_lost_stalls(subject, schedule),
    ]


def _lost_distances(subject: Subject, schedule: Schedule) -> Iterator[str]:
    times, time = dict[int, int](), 0
    for i in schedule.order:
        times[i] = time
        time += schedule.controls[i].stall
    for found in subject.kept_by_time:
        p, c = found.pair.producer, found.pair.consumer
        if times[c] - times[p] < found.needed:
            cycles = f"{times[c] - times[p]} of {found.needed} cycles"
            yield f"{subject.code[c]} only {cycles} behind {subject.code[p]}"


def _lost_order(subject: Subject, schedule: Schedule) -> Iterator[str]:
    """Whatever stood behind a wait for more than registers still does."""
    for operations, is_ordered in (
        (fences, _touches_memory),
        (strong_loads, _touches_memory),
        (atomics, _touches_memory),
        (reservations, lambda _: True),
    ):
        was_awaited = _awaited_as_compiled(subject, operations)
        for found in operations(subject):
            boards = _boards(subject, schedule, found)
            for i in subject.code[found.waiter :]:
                if subject.block[i.index] != subject.block[found.starter]:
                    break
                behind = _is_behind_a_wait(subject, schedule, found.starter, boards, i.index)
                if is_ordered(i) and not behind and was_awaited(found.starter, i.index):
                    yield f"{i} may be issued before {subject.code[found.starter]} is over"


def _awaited_as_compiled(
    subject: Subject, operations: Callable[[Subject], Iterator[Awaited]]
) -> Callable[[int, int], bool]:
    """Did an instruction stand behind the wait as compiled? A legal move may have put it there since."""
    if subject.origin is None:
        return lambda _, __: True
    compiled, indices = subject.origin
    waiters = {found.starter: found.waiter for found in reversed(list(operations(compiled)))}

    def was_awaited(starter: int, i: int) -> bool:
        waiter = waiters.get(indices[starter])
        return waiter is not None and indices[i] >= waiter

    return was_awaited


def _touches_memory(i: Instruction) -> bool:
    return i.order is not Order.FREE


def _boards(subject: Subject, schedule: Schedule, found: Awaited) -> set[int]:
    """Its scoreboard, or those of later ones where results come back in order."""
    control, old = schedule.controls[found.starter], subject.code[found.starter].control
    own = control.write_barrier if old.write_barrier == found.board else control.read_barrier
    boards = set() if own is None else {own}
    if queue_of(subject, found.starter) == "shared":
        later = schedule.order[schedule.order.index(found.starter) :]
        mates = [i for i in later if queue_of(subject, i) == "shared"]
        boards |= {k for i in mates if (k := schedule.controls[i].write_barrier) is not None}
    return boards


def _is_behind_a_wait(subject: Subject, schedule: Schedule, starter: int, boards: set[int], i: int) -> bool:
    """Does somebody behind the starter, at or in front of `i`, wait for one of these scoreboards?"""
    start, end = schedule.order.index(starter), schedule.order.index(i)
    between = schedule.order[start + 1 : end + 1]
    return any(boards & set(_awaited(subject, schedule, j)) for j in between)


def _awaited(subject: Subject, schedule: Schedule, i: int) -> tuple[int, ...]:
    first, _, others = subject.code[i].depbar or (None, 0, ())
    return (*schedule.controls[i].waits, *(() if first is None else (first, *others)))


def _lost_waits(subject: Subject, schedule: Schedule) -> Iterator[str]:
    """What comes back in any order has a scoreboard of its own, and whoever needs it waits for that."""
    for p in subject.code:
        touched = first_touch(subject, p.index) if p.opcode in ANY_ORDER else None
        if touched is not None and p.control.write_barrier is not None:
            own = schedule.controls[p.index].write_barrier
            boards = set() if own is None else {own}
            if not _is_behind_a_wait(subject, schedule, p.index, boards, touched[1]):
                yield f"{subject.code[touched[1]]} does not wait for {p}"


def _lost_stalls(subject: Subject, schedule: Schedule) -> Iterator[str]:
    for i in subject.code:
        stall = schedule.controls[i.index].stall
        if stall < min(subject.compiled(i.index).stall, FLOORS.get(i.opcode, 0)):
            yield f"{i} stalls {stall} cycles only"
