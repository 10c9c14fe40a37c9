"""Tensor memory, and the orders to the tensor core that work on it: out of order, or too early."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

from cuasmrl.binary.sass import Instruction, Order, Space
from cuasmrl.checker import Rule
from tests.checker.plants.base import Kind, Site, both, consumer, edit, kind, move
from tests.checker.plants.products import exchanged
from tests.checker.subjects import Subject

Rules = frozenset[Rule]

NAMES: list[str] = []
"""Kinds of faults that only code with tensor memory has room for."""
_ORDER = frozenset((Rule.SYNC_ORDER,))
_MEMORY = frozenset((Rule.MEMORY_ORDER,))
_MOVED = frozenset((Rule.SYNC_ORDER, Rule.DATA_FLOW))


def _is_product(i: Instruction) -> bool:
    return i.opcode in ("UTCHMMA", "UTCQMMA", "UTCIMMA", "UTCOMMA")


def _is_copy(i: Instruction) -> bool:
    return i.opcode == "UTCCP"


def _tells(i: Instruction) -> bool:
    return i.opcode == "UTCBAR"


def _loads(i: Instruction) -> bool:
    return i.opcode == "LDTM"


def _stores(i: Instruction) -> bool:
    return i.opcode == "STTM"


def _is_barrier(i: Instruction) -> bool:
    return i.opcode in ("BAR", "SYNCS")


def _waits_for_stores(i: Instruction) -> bool:
    return i.opcode == "FENCE" and i.modifiers[-1:] == ("T",)


def _fills(i: Instruction) -> bool:
    return i.declaration is not None and i.declaration.writes is Space.SHARED


def _takes(i: Instruction) -> bool:
    return i.declaration is not None and i.declaration.reads is Space.SHARED and not i.is_dummy_load


def _kind(name: str) -> Callable[[Kind], Kind]:
    NAMES.append(name)
    return kind(name)


def _exchanged(name: str, chosen: Callable[[Instruction, Instruction], bool], rules: Rules = _ORDER) -> None:
    NAMES.append(name)
    exchanged(name, chosen, rules)


_exchanged("products of the tensor core exchanged", lambda p, c: _is_product(p) and _is_product(c), _MOVED)
_exchanged("product in front of a copy to tensor memory", lambda p, c: _is_copy(p) and _is_product(c), _MOVED)
_exchanged("copy to tensor memory in front of a product", lambda p, c: _is_product(p) and _is_copy(c), _MOVED)
_exchanged("copies to tensor memory exchanged", lambda p, c: _is_copy(p) and _is_copy(c), _MOVED)
_exchanged("UTCBAR in front of what it tells of", lambda p, c: (_is_product(p) or _is_copy(p)) and _tells(c))
_exchanged("order to the tensor core in front of a UTCBAR",
          lambda p, c: _tells(p) and (_is_product(c) or _is_copy(c)))  # fmt: skip
_exchanged("UTCBARs exchanged", lambda p, c: _tells(p) and _tells(c), _MOVED)
_exchanged("order to the tensor core in front of a barrier",
          lambda p, c: _is_barrier(p) and (_is_product(c) or _is_copy(c)))  # fmt: skip
_exchanged("barrier in front of an order to the tensor core",
          lambda p, c: (_is_product(p) or _is_copy(p)) and _is_barrier(c))  # fmt: skip
_exchanged("UTCBAR in front of a barrier", lambda p, c: _is_barrier(p) and _tells(c))
_exchanged("barrier in front of a UTCBAR", lambda p, c: _tells(p) and _is_barrier(c))
_exchanged("shared memory written in front of an order that reads it",
          lambda p, c: (_is_product(p) or _is_copy(p) or _tells(p)) and _fills(c))  # fmt: skip
_exchanged("order to the tensor core in front of a write to shared memory",
          lambda p, c: _fills(p) and (_is_product(c) or _is_copy(c) or _tells(c)))  # fmt: skip
_exchanged("shared memory read on the other side of an order to the tensor core",
          lambda p, c: (_takes(p) and _is_product(c)) or (_is_product(p) and _takes(c)))  # fmt: skip
_exchanged("load from tensor memory in front of a barrier", lambda p, c: _is_barrier(p) and _loads(c))
_exchanged("barrier in front of a load from tensor memory", lambda p, c: _loads(p) and _is_barrier(c))
_exchanged("store to tensor memory in front of a barrier", lambda p, c: _is_barrier(p) and _stores(c))
_exchanged("barrier in front of a store to tensor memory", lambda p, c: _stores(p) and _is_barrier(c))
_exchanged("fence in front of the store that it waits for", lambda p, c: _stores(p) and _waits_for_stores(c))
_exchanged("access to tensor memory in front of the fence",
          lambda p, c: _waits_for_stores(p) and (_loads(c) or _stores(c)))  # fmt: skip
_exchanged("fence in front of a load from tensor memory", lambda p, c: _loads(p) and _waits_for_stores(c))
_exchanged("stores to tensor memory exchanged", lambda p, c: _stores(p) and _stores(c), _MEMORY)
_exchanged("store to tensor memory in front of a load", lambda p, c: _loads(p) and _stores(c), _MEMORY)
_exchanged("load from tensor memory in front of a store", lambda p, c: _stores(p) and _loads(c), _MEMORY)


@_kind("barrier in front of the wait for a load from tensor memory")
def _unsettled(subject: Subject) -> Iterator[Site]:
    """An ordinary instruction waits for the load; the barrier behind it goes in front of that."""
    name = "barrier in front of the wait for a load from tensor memory"
    for p, first in enumerate(subject.code):
        board = first.control.write_barrier
        if not _loads(first) or board is None:
            continue
        waiter: int | None = None
        for c in range(p + 1, len(subject.code)):
            code = subject.code[c]
            if subject.region[c] != subject.region[p]:
                break
            if waiter is None and board in subject.waits_of(c):
                if code.order is not Order.FREE:
                    break
                waiter = c
            elif waiter is not None and code.order is not Order.FREE:
                clear = not any(subject.hazards(j, c) for j in range(waiter, c))
                was_behind = subject.was_behind(waiter, c) and board in subject.compiled(waiter).waits
                if _is_barrier(code) and clear and was_behind and board not in subject.waits_of(c):
                    yield partial(move, subject, c, waiter, frozenset((Rule.SCOREBOARD,)), both(p, c), name)
                break


@_kind("order to the tensor core without its read barrier")
def _unread(subject: Subject) -> Iterator[Site]:
    """Its uniform registers are read late; it must not keep silent about that."""
    name = "order to the tensor core without its read barrier"
    for i in subject.code:
        if (_is_product(i) or _tells(i) or _is_copy(i)) and i.control.read_barrier is not None:
            control = replace(i.control, read_barrier=None)
            yield partial(edit, subject, i.index, control, Rule.BARRIER, consumer(i.index), name)
