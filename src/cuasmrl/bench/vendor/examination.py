"""One kernel examined: written unchanged, checked against itself, linted, rescheduled at random."""

import random
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType

from cuasmrl.bench.vendor.closeness import too_close, vendor_minima
from cuasmrl.binary.cubin import Cubin
from cuasmrl.binary.sass import Listing
from cuasmrl.checker import Certificate, Checker, Refusal
from cuasmrl.schedule import Board, Scoreboards
from cuasmrl.schedule.lint import Finding, lint
from cuasmrl.schedule.random_moves import random_moves


@dataclass(frozen=True)
class Depth:
    """How thoroughly."""

    schedules: int = 2
    """Random schedules in each scoreboard mode."""
    tries: int = 100
    """Random moves tried for each."""
    seconds: float = 60
    """Of processor time; a kernel that takes longer is slow."""


@dataclass
class Examined:
    """What was found so far; `stage` says how far it went."""

    kernel: str
    instructions: int
    stage: str = "writing"
    unchanged: bool = True
    unknown: Counter[str] = field(default_factory=Counter)
    refused: str = ""
    unexplained: int = 0
    """Dependences that the checker finds no protection for in the original."""
    hazards: list[Finding] = field(default_factory=list)
    moves: int = 0
    schedules: int = 0
    refused_schedules: list[str] = field(default_factory=list)
    too_close: list[str] = field(default_factory=list)
    """Pairs of these schedules that stand closer than five places in libraries show."""
    slow: bool = False
    failed: str = ""
    """An error that is no verdict."""


def examine(cubin: Cubin, listing: Listing, depth: Depth, rng: random.Random) -> Examined:
    """`cubin` shows only the one kernel."""
    found = Examined(listing.kernel.name, len(listing.instructions))
    try:
        with _limit(depth.seconds):
            _examine(found, cubin, listing, depth, rng)
    except _TimeLimit:
        found.slow = True
    except Exception as error:  # any error at all is what a campaign looks for; it is reported by kernel
        found.failed = f"{type(error).__name__}: {error}"
    return found


def _examine(found: Examined, cubin: Cubin, listing: Listing, depth: Depth, rng: random.Random) -> None:
    found.unknown.update(i.opcode for i in listing.unknown)
    found.unchanged = cubin.with_words(listing.kernel, listing.kernel.words, {}).data == cubin.data
    found.stage = "self-check"
    checker = Checker(cubin, {listing.kernel.name: listing})
    verdict = _verdict(checker, cubin)
    if isinstance(verdict, Refusal):
        found.refused = _words(verdict)
    else:
        found.unexplained = verdict.proved[listing.kernel.name].get("unprotected in the original", 0)
    found.stage = "lint"
    found.hazards = [finding for finding in lint(listing) if finding.is_hazard]
    # What is refused as it is, is refused in any order.
    for mode in Scoreboards if not found.refused else ():
        found.stage = f"board, scoreboards {mode.value}"
        _reschedule(found, checker, Board(listing, scoreboards=mode), depth, rng)
    found.stage = "done"


def _reschedule(found: Examined, checker: Checker, board: Board, depth: Depth, rng: random.Random) -> None:
    mode = f"scoreboards {board.scoreboards.value}"
    for number in range(depth.schedules):
        found.stage = f"moves, {mode}"
        found.moves += random_moves(board, depth.tries, rng).total()
        found.stage = f"check, {mode}"
        schedule = board.schedule()
        verdict = _verdict(checker, schedule.apply(checker.original))
        found.schedules += 1
        found.too_close += too_close(schedule, vendor_minima(checker.original.arch))
        if isinstance(verdict, Refusal):
            found.refused_schedules.append(f"{mode}, schedule {number}: {_words(verdict)}")


def _verdict(checker: Checker, candidate: Cubin) -> Certificate | Refusal:
    try:
        return checker.check(candidate)
    except Refusal as refusal:
        return refusal


def _words(refusal: Refusal) -> str:
    return f"{refusal.rule}: {refusal}"


class _TimeLimit(BaseException):
    """Above all errors, so that nobody on the way takes it for one."""


@contextmanager
def _limit(seconds: float) -> Iterator[None]:
    """Processor time of this process, so that the load of the machine decides little."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise _TimeLimit

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
