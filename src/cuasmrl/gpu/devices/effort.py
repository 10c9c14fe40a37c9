"""How much of a kernel a search has to replay: measured on the kernel itself before play.

Fewer iterations of its loops and fewer conditions make a search faster, until its scores no longer rank
schedules as whole kernels do. How many that takes differs by kernel: one block on an SM runs alike under
every seed, several fall in and out of step. So a short climb collects schedules of the kind that a search
has to tell apart, and they are timed in full and in part.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from math import ceil

import numpy as np

from cuasmrl.gpu.devices.panel import Condition, Ratios
from cuasmrl.gpu.profile import Profile
from cuasmrl.schedule import Board, Schedule, Shift, play

ITERATIONS = (4, 8, 12)
"""Of each loop: numbers that are tried."""
_SAMPLE = 24
_TRIES = 20 * _SAMPLE
_MOVES = (1, 1, 2, 4, 8)
"""That lead from a rival to a candidate: a search also has to see that large changes are bad."""
COMPARED = 12
"""Conditions under which the sample is timed."""
_NEAR = 0.02
"""How much slower than its rival a candidate may be to say something about small differences."""
_AGREEMENT = 0.9
"""Rank correlation with whole kernels that is good enough not to look for more."""
_WORTH = 0.05
"""Rank correlation that more iterations must bring to be worth their time."""
_RELIABILITY = 0.9
"""Correlation of a score with that over endlessly many conditions."""
FEWEST, MOST = 6, 24
"""Conditions."""
EQUAL, _SOON_EQUAL = 4, 2
"""With fewer than four, climbs drift to where other conditions are slower, but for kernels most of whose
moves change nothing anywhere."""
_HIDDEN = 0.02
"""Share of the differences that one condition does not show and another does, for that to be so."""
_STEADY = 0.05
"""How much conditions differ about the smallest changes in a steady kernel, as a share of how much they do
about any. Chosen on pairs of schedules of four matrix products that climbs compared."""
_WORKERS = 2


@dataclass(frozen=True)
class Pair:
    """A candidate that a climb met, and the schedule it had to beat."""

    candidate: Schedule
    rival: Schedule


@dataclass(frozen=True)
class Effort:
    """What is replayed to score one schedule, and why that is enough."""

    iterations: int
    """Of each loop; half of them at its end."""
    conditions: int
    noise: float
    """How much conditions differ about a change: standard deviation of the relative time."""
    agreement: float | None
    """Spearman's rank correlation of such scores with whole kernels; None if there was nothing to compare."""
    sample: int
    """Schedules that were compared."""
    equal: int = EQUAL
    """Conditions that have to show no difference, so that two schedules are taken to be equally fast."""

    @property
    def least_noise(self) -> float:
        """How much conditions differ about the smallest changes.

        Where few of them tell schedules apart, that is next to nothing; where it takes many, as when blocks
        on an SM fall in and out of step, they differ as much about a small change as about a large one.
        """
        return self.noise * (_STEADY + (1 - _STEADY) * self._unsteadiness)

    @property
    def margin(self) -> float:
        """Standard errors behind its rival that are enough to give a schedule up: one where conditions agree,
        two where it takes many of them."""
        return 1 + self._unsteadiness

    @property
    def _unsteadiness(self) -> float:
        return max(0.0, (self.conditions - FEWEST) / (MOST - FEWEST))

    @property
    def sentence(self) -> str:
        told = f"{self.iterations} iterations of each loop under {self.conditions} conditions"
        if self.agreement is None:
            return told
        return f"{told}; on {self.sample} schedules they rank as whole kernels do with {self.agreement:.2f}"


def climb(board: Board, profile: Profile, cycles: Callable[[Schedule], int], seed: int) -> list[Pair]:
    """Random moves where the time goes, kept if they are not slower; what was met on the way."""
    rng = random.Random(seed)
    spent = profile.spent
    movable = [i for i in range(len(board.code)) if not board.fixed[i] and i not in board.glued and spent[i]]
    if not movable:
        return []
    weights = [float(spent[i]) for i in movable]
    rival = board.schedule()
    time, seen = cycles(rival), {rival.key}
    pairs: list[Pair] = []
    for _ in range(_TRIES):
        if len(pairs) == _SAMPLE:
            break
        for i in rng.choices(movable, weights, k=rng.choice(_MOVES)):
            play(board, Shift(i, rng.choice(board.span(i))))
        candidate = board.schedule()
        if candidate.key not in seen:
            seen.add(candidate.key)
            now = cycles(candidate)
            pairs.append(Pair(candidate, rival))
            if now <= time:
                rival, time = candidate, now
        board.restore(rival)
    return pairs


def measure_effort(
    pairs: Sequence[Pair],
    original: Schedule,
    reference: Sequence[Condition],
    conditions: Callable[[int], Sequence[Condition]],
) -> Effort:
    """The cheapest effort whose scores agree with the reference.

    `conditions` gives those under which so many iterations are replayed.
    """
    schedules = [original, *dict.fromkeys(pair.candidate for pair in pairs)]
    if len(schedules) < 4:
        return Effort(ITERATIONS[0], FEWEST, 0.0, None, 0)
    truth = ratios(reference, schedules).mean(axis=1)
    tried: list[tuple[float, int, Ratios]] = []
    for iterations in ITERATIONS:
        found = ratios(conditions(iterations)[:COMPARED], schedules)
        tried.append((rank_correlation(found.mean(axis=1), truth), iterations, found))
        if tried[-1][0] >= _AGREEMENT:
            break
    best = max(agreement for agreement, *_ in tried)
    _, iterations, found = next(one for one in tried if one[0] >= best - _WORTH)
    differences = _differences(pairs, dict(zip(schedules, found, strict=True)))
    count, noise = _enough(differences)
    return Effort(
        iterations,
        count,
        noise,
        rank_correlation(found[:, :count].mean(axis=1), truth),
        len(schedules) - 1,
        _SOON_EQUAL if _hidden(differences) <= _HIDDEN else EQUAL,
    )


def ratios(conditions: Sequence[Condition], schedules: Sequence[Schedule]) -> Ratios:
    """Times relative to those of the first schedule: a row for each schedule, a column for each condition."""

    def column(condition: Condition) -> list[int]:
        return [condition.cycles(condition.model.table(schedule)) for schedule in schedules]

    with ThreadPoolExecutor(_WORKERS) as pool:
        cycles = np.array(list(pool.map(column, conditions)), np.float64).T
    return cycles / cycles[:1]


def rank_correlation(a: Ratios, b: Ratios) -> float:
    """Spearman's; 0 where all are alike."""
    first, second = _ranks(a), _ranks(b)
    if not (np.ptp(first) and np.ptp(second)):
        return 0.0
    return float(np.corrcoef(first, second)[0, 1])


def _ranks(values: Ratios) -> Ratios:
    """Equal values share the mean of their ranks."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    return (ends - (counts - 1) / 2)[inverse]


def _differences(pairs: Sequence[Pair], rows: dict[Schedule, Ratios]) -> Ratios:
    """A row for each candidate that has a rival in the sample."""
    return np.array([rows[p.candidate] - rows[p.rival] for p in pairs if p.rival in rows])


def _hidden(differences: Ratios) -> float:
    """How often another condition shows a difference where one shows none; a guess that errs above."""
    conditions = differences.shape[1]
    zeros = (differences == 0).sum(axis=1)
    shown = (zeros * (conditions - zeros)).sum() / (conditions - 1)
    return float((shown + 1) / (zeros.sum() + 1))


def _enough(differences: Ratios) -> tuple[int, float]:
    """Conditions for a reliable score of small differences, and how much conditions differ about them.

    The variance of the mean difference is that of true differences plus noise² / conditions.
    """
    means = differences.mean(axis=1)
    near = differences[np.abs(means) < _NEAR]
    if len(near) < 4:
        near = differences
    noise2 = float(near.var(axis=1, ddof=1).mean())
    true2 = float(near.mean(axis=1).var(ddof=1)) - noise2 / near.shape[1]
    if noise2 == 0:
        return FEWEST, 0.0
    wanted = _RELIABILITY**2 / (1 - _RELIABILITY**2) * noise2 / true2 if true2 > 0 else MOST
    return min(MOST, max(FEWEST, ceil(wanted))), float(np.sqrt(noise2))
