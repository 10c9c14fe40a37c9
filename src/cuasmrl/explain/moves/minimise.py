"""Leaving out what does nothing: the fewest changes that are as good as all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cuasmrl.explain.moves.changes import Change, Relocate, Retime
from cuasmrl.explain.moves.decompose import Built, Decomposition
from cuasmrl.explain.moves.judge import Judge


@dataclass(frozen=True)
class Minimum:
    """No single change of it can be left out, but for retimings that relocations imply."""

    changes: frozenset[Change]
    built: Built
    tried: int
    """Selections of changes that were looked at."""


def minimise(whole: Decomposition, judge: Judge, quick: Judge) -> Minimum:
    """The smaller of two such sets, found going through the code downwards and upwards."""
    searches = [_search(whole, ranked, judge, quick) for ranked in (whole.changes, whole.changes[::-1])]
    best = min(searches, key=lambda search: (len(search.kept), judge.time(search.built.schedule)))
    changes = _with_retiming(whole, best.kept)
    return Minimum(changes, Built(best.built.schedule, changes), sum(search.tried for search in searches))


def _search(whole: Decomposition, ranked: Sequence[Change], judge: Judge, quick: Judge) -> _Search:
    """A quick judge goes first; what it leaves is taken on if the judge agrees, else all begins anew."""
    first = _Search(whole, quick)
    first.eliminate(ranked)
    search = _Search(whole, judge)
    search.tried = first.tried + 1
    if judge.is_as_good(first.built.schedule):
        search.built = first.built
    search.eliminate(ranked)
    return search


class _Search:
    def __init__(self, whole: Decomposition, judge: Judge) -> None:
        self.whole = whole
        self.judge = judge
        built = whole.build(whole.changes)
        assert built is not None, "a decomposition leads to its winner"
        self.built = built
        self.tried = 0

    @property
    def kept(self) -> frozenset[Change]:
        return self.built.changes

    def eliminate(self, ranked: Sequence[Change]) -> None:
        """Drop all changes, else halves of them, and so on down to single ones, until none can go."""
        size = len(ranked)
        while size > 1:
            present = [change for change in ranked if change in self.kept]
            for start in range(0, len(present), size):
                self._drop_if_as_good(present[start : start + size])
            size = (size + 1) // 2
        before = -1
        while len(self.kept) != before:
            before = len(self.kept)
            for change in ranked:
                self._drop_if_as_good([change])

    def _drop_if_as_good(self, changes: Sequence[Change]) -> bool:
        """Leave out changes, and those that are not legal without them."""
        if self.kept.isdisjoint(changes):
            return False
        built = self.whole.build(self.kept.difference(changes))
        self.tried += 1
        if built is None or not self.judge.is_as_good(built.schedule):
            return False
        self.built = built
        return True


def _with_retiming(whole: Decomposition, kept: frozenset[Change]) -> frozenset[Change]:
    """Relocations recompute the stalls of their block anyway; named apart, each cycle has one cause."""
    blocks = {change.block for change in kept if isinstance(change, Relocate)}
    implied = {Retime(block) for block in blocks if not whole.plans[block].is_carried}
    return kept | implied
