"""Taking an instruction far along a block together with whatever its dependences tie to it."""

from collections.abc import Mapping, Sequence

from cuasmrl.schedule.dependences import Graph


def dragged(
    window: Sequence[int], here: int, to: int, graph: Graph, glued: Mapping[int, int], fixed: Sequence[bool]
) -> list[int] | None:
    """The order of a block after an instruction went from one position to another; None if it cannot.

    On its way up it takes along what it depends on, on its way down what depends on it; padding units come
    whole. All others keep their order, so if the order was legal, the new one is. Nothing passes a pinned
    instruction.
    """
    if to == here:
        return None
    is_up = to < here
    low, high = min(to, here), max(to, here)
    span = window[low : high + 1]
    if any(fixed[i] for i in span):
        return None
    neighbours = graph.successors if is_up else graph.predecessors
    taken: set[int] = set()
    for i in reversed(span) if is_up else span:
        if i == window[here] or not taken.isdisjoint(neighbours[i]) or _is_tied(i, taken, glued):
            taken.add(i)
    moved, rest = [i for i in span if i in taken], [i for i in span if i not in taken]
    new = [*window[:low], *(moved + rest if is_up else rest + moved), *window[high + 1 :]]
    return new if _keeps_units(new, glued) else None


def _is_tied(i: int, taken: set[int], glued: Mapping[int, int]) -> bool:
    """Does its padding unit come along? Units are met from either end."""
    if i not in glued:
        return False
    return glued[i] in taken or (i - 1 in taken and glued.get(i - 1) == i)


def _keeps_units(window: Sequence[int], glued: Mapping[int, int]) -> bool:
    """A unit of which only a part was met on the way would be torn."""
    return not any(
        glued.get(a, a) != a and glued[a] != b for a, b in zip(window, [*window[1:], -1], strict=True)
    )
