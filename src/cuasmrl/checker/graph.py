"""Paths between blocks, and the order in which analyses walk them."""

from collections.abc import Sequence
from heapq import heapify, heappop, heappush


class Graph:
    """Nodes 0 to n-1 are the blocks; the rest are junctions, which hold no instructions.

    Where many blocks go on to the same many places (every RET to every call), a junction between them stands
    for all the edges: there are as many as both sides have members, not as many as there are pairs.
    """

    def __init__(self, own: Sequence[tuple[int, ...]], shared: Sequence[tuple[int, ...]]):
        """Per block: successors of its own, and those it shares with others."""
        self.blocks = len(own)
        junctions: dict[tuple[int, ...], int] = {}
        paths = []
        for mine, ours in zip(own, shared, strict=True):
            joined = (junctions.setdefault(ours, self.blocks + len(junctions)),) if ours else ()
            paths.append(mine + joined)
        self.paths: list[tuple[int, ...]] = paths + list(junctions)
        self.rank = _ranks(self.paths)

    def __len__(self) -> int:
        return len(self.paths)

    def predecessors(self) -> list[list[int]]:
        found: list[list[int]] = [[] for _ in self.paths]
        for node, following in enumerate(self.paths):
            for other in following:
                found[other].append(node)
        return found


class Worklist:
    """Nodes still to be visited, each at most once in a sweep over the graph in reverse postorder.

    What lies in front of the node just visited waits for the next sweep. So a junction that a thousand blocks
    lead to is passed on once for all of them, and a loop costs a sweep and not a visit of all that it feeds.
    """

    def __init__(self, graph: Graph):
        """All nodes are waiting."""
        self._rank = graph.rank
        self._node = [0] * len(graph)
        for node, rank in enumerate(graph.rank):
            self._node[rank] = node
        self._waits = bytearray(b"\1" * len(graph))
        self._sweep = list(range(len(graph)))
        self._next: list[int] = []
        self._at = -1

    def __bool__(self) -> bool:
        return bool(self._sweep or self._next)

    def pop(self) -> int:
        if not self._sweep:
            self._sweep, self._next = self._next, []
            heapify(self._sweep)
        self._at = heappop(self._sweep)
        self._waits[self._at] = 0
        return self._node[self._at]

    def push(self, node: int) -> None:
        rank = self._rank[node]
        if not self._waits[rank]:
            self._waits[rank] = 1
            if rank > self._at:
                heappush(self._sweep, rank)
            else:
                self._next.append(rank)


def _ranks(paths: Sequence[tuple[int, ...]]) -> list[int]:
    """Position of each node in reverse postorder, the unreachable ones behind the rest."""
    state = bytearray(len(paths))
    ranks = [0] * len(paths)
    finished: list[list[int]] = []
    for root in range(len(paths)):
        if state[root]:
            continue
        state[root] = 1
        left: list[int] = []
        stack = [(root, iter(paths[root]))]
        while stack:
            node, rest = stack[-1]
            following = next((other for other in rest if not state[other]), None)
            if following is None:
                left.append(node)
                stack.pop()
            else:
                state[following] = 1
                stack.append((following, iter(paths[following])))
        finished.append(left[::-1])
    for rank, node in enumerate(node for part in finished for node in part):
        ranks[node] = rank
    return ranks
