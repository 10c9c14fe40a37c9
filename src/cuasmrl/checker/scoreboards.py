"""Variable latencies: an abstract machine with six scoreboards finds every dependence left unprotected.

An instruction with write barrier k raises scoreboard k until its result is written, with read barrier k
until its sources are read; a wait for k holds until k is zero. For each operation still under way the
machine knows which scoreboards vouch for it: its own, and those raised later in the same in-order queue.
It follows all paths at once; where two meet, an operation is under way if it is on either, and a
scoreboard vouches for it only if it does on both. So blocks are run again until no more changes, and what
counts is what the last run of each finds.
"""

from collections.abc import Mapping
from typing import NamedTuple

from cuasmrl.checker.flights import NOTHING, Visit, joined
from cuasmrl.checker.graph import Worklist
from cuasmrl.checker.operations import Tables
from cuasmrl.checker.program import Arrangement, Program
from cuasmrl.checker.unprotected import Unprotected


class Findings(NamedTuple):
    """What the machine saw over all paths; sets of operations are bits, which `Tables` can name."""

    unprotected: Unprotected
    """Dependences on a variable-latency instruction that no scoreboard and no queue keeps, on some path."""
    settled: dict[int, int]
    """By synchronising or pinned instruction: operations that its waits end."""
    under_way: dict[int, int]
    """The same: which of the operations asked for are under way behind its waits on some path."""
    unordered: dict[int, int]
    """By instruction that they order: operations that order memory, or more, and are under way there."""


def run(
    program: Program,
    tables: Tables,
    arrangement: Arrangement,
    asked: Mapping[int, int] | None = None,
) -> Findings:
    """`asked`: by instruction, operations of which is to be known whether they are under way there."""
    findings = Findings(Unprotected(tables), {}, {}, {})
    graph = program.graph
    entries = [NOTHING for _ in graph.paths]
    work = Worklist(graph)
    while work:
        node = work.pop()
        state = entries[node]
        if node < graph.blocks:
            block = program.blocks[node]
            visit = Visit(tables, arrangement, node, state, asked or {})
            for i in arrangement.order[block.start : block.end]:
                visit.step(i)
            for one in visit.unprotected:
                findings.unprotected.add(*one)
            findings.settled.update(visit.settled)
            findings.under_way.update(visit.under_way)
            findings.unordered.update(visit.unordered)
            state = visit.leaving() if graph.paths[node] else NOTHING
        for following in graph.paths[node] if state else ():
            known = entries[following]
            entries[following] = joined(known, state)
            if entries[following] is not known:
                work.push(following)
    return findings
