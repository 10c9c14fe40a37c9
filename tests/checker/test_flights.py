"""Sets of operations by scoreboards and by register, against looking at every operation by itself."""

import random
from collections.abc import Callable

import pytest

from cuasmrl.binary.sass import Hazard, Listing
from cuasmrl.checker.dependences import Edge
from cuasmrl.checker.flights import Guards, State, joined
from cuasmrl.checker.operations import BOARDS, Tables, places_of
from cuasmrl.checker.program import Program
from cuasmrl.checker.unprotected import Unprotected

Alone = dict[int, tuple[int, Guards, frozenset[int]]]
"""By place: kind, what vouches for it, its registers."""
_PLACES, _KINDS, _REGISTERS = 40, 3, 6


def _drawn(rng: random.Random) -> Alone:
    """Some operations under way. Those of kind 0 touch no register; what is odd is written."""
    found = {}
    for place in rng.sample(range(_PLACES), rng.randrange(_PLACES)):
        kind = place % _KINDS
        guards = tuple(rng.choice((-1, -1, 0, 1)) for _ in range(BOARDS))
        registers = rng.sample(range(_REGISTERS), rng.randint(1, 3)) if kind else []
        found[place] = kind, guards, frozenset(registers)
    return found


def _together(alone: Alone) -> State:
    state = State({}, {}, {})
    for place, (kind, guards, registers) in alone.items():
        groups = state.groups.setdefault(kind, {})
        groups[guards] = groups.get(guards, 0) | 1 << place
        touching = state.results if kind == 1 else state.sources
        for r in registers:
            touching[r] = touching.get(r, 0) | 1 << place
    return state


def _met(one: Alone, other: Alone) -> Alone:
    """Under way if on either path; a scoreboard vouches only if it does on both."""
    found = one | other
    for place in one.keys() & other.keys():
        kind, guards, registers = one[place]
        _, others, more = other[place]
        found[place] = kind, tuple(map(min, guards, others)), registers | more
    return found


@pytest.mark.parametrize("seed", range(50))
def test_where_paths_meet_each_operation_is_joined_by_itself(seed: int) -> None:
    rng = random.Random(seed)
    one, other = _drawn(rng), _drawn(rng)
    # Some are the same on both paths, as behind a branch.
    other |= {place: one[place] for place in rng.sample(sorted(one), len(one) // 2)}
    known, arriving = _together(one), _together(other)
    both = joined(known, arriving)
    assert both == _together(_met(one, other))
    assert (known, arriving) == (_together(one), _together(other)), "states share their parts"
    assert (both is known) == (_met(one, other) == one)
    assert joined(both, arriving) is both
    assert joined(both, known) is both


@pytest.mark.parametrize("count", [0, 1, 8, 9, 500])
def test_a_set_gives_its_places_back(count: int) -> None:
    places = sorted(random.Random(count).sample(range(3000), count))
    assert places_of(sum(1 << place for place in places)) == places


def test_operations_that_the_same_accesses_meet_are_alike(
    listed: Callable[[str], dict[str, Listing]],
) -> None:
    rng = random.Random(0)
    tables = Tables(Program(max(listed("sm_80").values(), key=lambda listing: len(listing.instructions))))
    writing = [i for i, place in enumerate(tables.result_place) if place >= 0]
    reading = [i for i, place in enumerate(tables.source_place) if place >= 0]
    found, edges = Unprotected(tables), set[Edge]()
    for _ in range(60):
        hazard, consumer, register = rng.choice(list(Hazard)), rng.randrange(9), rng.randrange(2)
        places = tables.source_place if hazard is Hazard.WAR else tables.result_place
        # A few patterns, so that some producers have the same.
        met = (reading if hazard is Hazard.WAR else writing)[rng.randrange(3) :: rng.choice((2, 4))]
        found.add(hazard, consumer, register, sum(1 << places[p] for p in met))
        edges |= {Edge(hazard, p, consumer, register) for p in met}
    assert len(found) == len(edges)
    assert set(found.beyond(Unprotected(tables))) == edges
    assert not list(found.beyond(found))
    assert set(found.producers()) == {edge.producer for edge in edges}
    assert all(edge in found for edge in edges)
    assert Edge(Hazard.RAW, writing[0], 99, 0) not in found
    for register, written in ((0, True), (0, False), (1, True), (1, False)):
        columns: dict[frozenset[tuple[Hazard, int]], set[int | None]] = {}
        for p in writing if written else reading:
            column = frozenset(
                (edge.hazard, edge.consumer)
                for edge in edges
                if edge.producer == p
                and edge.register == register
                and (edge.hazard is not Hazard.WAR) == written
            )
            columns.setdefault(column, set()).add(found.alike(p, register, written))
        assert all(len(names) == 1 for names in columns.values())
        assert len(set.union(*columns.values())) == len(columns)
        assert columns.get(frozenset(), {None}) == {None}
