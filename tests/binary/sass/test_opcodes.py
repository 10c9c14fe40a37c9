"""The declarations: consistent in themselves, and with what ptxas does with scoreboards."""

from collections import Counter

import pytest

from cuasmrl.binary.sass import OPCODES, File, Order, Pipe, file_of
from cuasmrl.binary.sass.opcodes import ALL_ARCHS, Shape, Widths
from cuasmrl.binary.sass.widths import _RULES
from tests.binary.sass.conftest import Sample, Samples


def test_every_rule_is_used_and_exists() -> None:
    assert set(_RULES) == set(Widths)
    assert {opcode.widths for opcode in OPCODES.values()} == set(Widths)
    assert {opcode.shape for opcode in OPCODES.values()} == set(Shape)


def test_scoreboards_and_queues() -> None:
    for opcode in OPCODES.values():
        assert opcode.variable <= ALL_ARCHS
        assert opcode.by_assembler <= opcode.variable
        if opcode.order is not Order.PINNED and not opcode.fence:
            assert bool(opcode.variable) == bool(opcode.queue), opcode.name


def test_a_queue_holds_one_kind_of_pipe() -> None:
    """Only the synchronisation part of shared memory and the special functions reach across."""
    pipes: dict[str, set[Pipe]] = {}
    for opcode in OPCODES.values():
        if opcode.queue:
            pipes.setdefault(opcode.queue, set()).add(opcode.pipe)
    mixed = {queue: found for queue, found in pipes.items() if len(found) > 1}
    assert set(mixed) <= {"shared", "xu", "fp64", "barrier"}


def test_memory_instructions_name_their_space() -> None:
    for opcode in OPCODES.values():
        assert (opcode.order is Order.MEMORY) == bool(opcode.reads or opcode.writes), opcode.name


@pytest.mark.parametrize(
    "opcode", ["LDG", "LDS", "LDSM", "SHFL", "MUFU", "F2I", "I2F", "S2R", "LDC", "ATOMG", "REDUX", "MATCH"]
)
def test_what_is_declared_variable_is_announced(one_of_each: Sample, opcode: str) -> None:
    """Most results of such opcodes have a scoreboard of their own (the rest rely on a later one)."""
    found = [i for i in one_of_each.instructions if i.opcode == opcode and i.defs]
    announced = Counter(i.control.write_barrier is not None for i in found)
    assert announced[True] * 4 >= len(found)


def test_the_predicate_of_a_generic_atomic_comes_with_the_read_barrier(samples: Samples) -> None:
    """It says whether the address was in shared memory after all, which is known before memory answers."""
    found = 0
    for listing in samples("atomics", "sm_90a").listings.values():
        for i in listing.instructions:
            written = {access.register for access in i.defs if file_of(access.register) is File.P}
            if i.opcode != "ATOM" or not written:
                continue
            reader = next(
                r for r in listing.instructions[i.index + 1 :] if written & {a.register for a in r.uses}
            )
            waited = {
                k for r in listing.instructions[i.index + 1 : reader.index + 1] for k in r.control.waits
            }
            assert i.control.read_barrier in waited
            found += i.control.write_barrier not in waited
    assert found
    assert [o.name for o in OPCODES.values() if o.predicate_with_sources] == ["ATOM"]
