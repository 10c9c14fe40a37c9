"""Stall counts that bring two instructions too close together, and nothing else.

What the two lose is given back in front of them, so that everything around keeps its distance and a
refusal has to name exactly this dependence.
"""

from collections import defaultdict
from dataclasses import replace

from cuasmrl.binary.sass import MAX_STALL, Control, Pipe
from cuasmrl.binary.sass.control import LONGEST_STALL_WITHOUT_YIELD
from tests.checker.subjects import Subject


def squeezed(subject: Subject, p: int, c: int, cycles: int) -> dict[int, Control] | None:
    """Control bits that put `c` so many cycles behind `p`; None if something else would come too close."""
    at = _times(subject, p, c, cycles)
    if at is None:
        return None
    lost = max(subject.cycle[j] - subject.cycle[p] - at[j] for j in range(p + 1, c + 1))
    if _loses_a_wait(subject, at, lost):
        return None
    stalls = {j: at[j + 1] - at[j] for j in range(p, c)}
    if lost and p and subject.block[p - 1] == subject.block[p]:
        stalls[p - 1] = subject.code[p - 1].control.stall + lost
    elif lost and p:
        return None
    if max(stalls.values()) > MAX_STALL:
        return None
    return {j: with_stall(subject, j, stall) for j, stall in stalls.items()}


def with_stall(subject: Subject, i: int, stall: int) -> Control:
    control = subject.code[i].control
    if 0 < stall <= LONGEST_STALL_WITHOUT_YIELD:
        return replace(control, stall=stall)
    return replace(control, stall=stall, yield_=True, reuse=0)


def least_stall(subject: Subject, i: int) -> int:
    """What it must stall at least."""
    old, known = subject.compiled(i).stall, subject.table.minimum_stall(subject.code[i])
    return old if known is None else min(old, known)


def _times(subject: Subject, p: int, c: int, cycles: int) -> dict[int, int] | None:
    """When each of them issues, counted from `p`, with everything but `c` in time."""
    at = {p: 0}
    least = {j: max(least_stall(subject, j), 1) for j in range(p, c)}
    for j in range(p + 1, c + 1):
        bounds = [at[j - 1] + least[j - 1]]
        for q in range(p, j):
            if (q, j) != (p, c):
                bounds += [at[q] + found.needed for found in subject.between(q, j)]
            if _runs_beside(subject, q) and subject.hazards(q, j):
                bounds.append(at[q] + subject.cycle[j] - subject.cycle[q])
        at[j] = max(bounds)
    if at[c] > cycles:
        return None
    at[c] = cycles
    for j in range(c - 1, p, -1):
        # Later is never too close, as long as the next one comes late enough.
        at[j] = max(at[j], at[j + 1] - MAX_STALL)
    fit = all(least[j] <= at[j + 1] - at[j] <= MAX_STALL for j in range(p, c))
    return at if fit else None


def _runs_beside(subject: Subject, i: int) -> bool:
    """An engine beside the warp: nobody knows how late it reads what no scoreboard announces."""
    declaration = subject.code[i].declaration
    return declaration is None or declaration.pipe is Pipe.ASYNC


def _loses_a_wait(subject: Subject, at: dict[int, int], lost: int) -> bool:
    """Does another dependence rely on a wait for something that, seen from its producer, is now earlier?"""
    p, c = min(at), max(at)

    def time(i: int) -> int:
        return at[i] if i >= p else subject.cycle[i] - subject.cycle[p] - lost

    setters = _setters(subject, p, c)
    for q in range(p, c):
        for j in range(q + 1, c):
            known = [found.known or subject.longest(q) for found in subject.between(q, j)]
            for w in range(q + 1, j + 1) if max(known, default=0) > at[j] - at[q] else ():
                if any(time(s) - time(q) < subject.was(q, s) for s in setters[w]):
                    return True
    return False


def _setters(subject: Subject, p: int, c: int) -> dict[int, list[int]]:
    """Who in the block raised what each of these instructions waits for."""
    found: dict[int, list[int]] = defaultdict(list)
    start = next(i for i in range(len(subject.code)) if subject.block[i] == subject.block[p])
    for w in range(p, c):
        boards = set(subject.waits_of(w))
        found[w] = [s for s in range(start, w) if boards & set(subject.code[s].control.sets)]
    return found
