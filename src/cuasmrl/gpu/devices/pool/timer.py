"""A timer whose questions are answered by a pool of workers."""

from __future__ import annotations

import contextlib
import select
import time
import weakref
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.devices.device import CandidateError, Rival, Timer, time_or_never
from cuasmrl.gpu.devices.pool.crew import Crew, Seat
from cuasmrl.gpu.devices.pool.messages import (
    Broken,
    Forget,
    Question,
    Ready,
    Reply,
    Told,
    code_digest,
    numbers,
    packed,
    ratios,
    receive,
    send,
)
from cuasmrl.gpu.devices.pool.replica import Replica
from cuasmrl.gpu.timing.uncertainty import Gain
from cuasmrl.schedule import Schedule

ATTEMPTS = 4
"""Workers that one candidate may cost."""
PATIENCE = 120.0
"""Seconds without an answer before a worker counts as hung."""
STARTING = 300.0
"""Seconds that a worker may take to come and open its device."""
_AHEAD = 2
"""Questions that a worker has at a time, so that it never waits for the next one."""
_REMEMBERED = 256
_LOOK = 0.5
"""Seconds between two looks at who is gone."""


@dataclass(eq=False)
class _Asked:
    number: int
    schedule: Schedule
    rival: Rival | None
    attempts: int = 0
    """Workers that it was given to."""
    answer: float | CandidateError | None = None
    wanted: bool = True


@dataclass(eq=False)
class _Member:
    """A worker that has been recruited."""

    seat: Seat
    since: float
    """When it was recruited, or gave its last answer, or was given a question after having none."""
    told: bool = False
    """Does it know which device to open?"""
    ready: bool = False
    questions: OrderedDict[int, _Asked] = field(default_factory=OrderedDict)
    answered: int = 0


class PooledTimer:
    """The timer that it stands for picks and confirms; what a search asks goes to workers.

    A worker that dies or hangs is replaced, and what it was asked is asked again of another.
    """

    def __init__(
        self, local: Timer, crew: Crew, replica: Callable[[], Replica], patience: float = PATIENCE
    ) -> None:
        """`replica` is called once, when the first question is asked; workers start before."""
        self.local = local
        self.crew = crew
        self.patience = patience
        self.lost = 0
        """Workers that died or hung."""
        self._make = replica
        self._replica: Replica | None = None
        self._waiting: deque[_Asked] = deque()
        self._begun: dict[tuple[bytes, bytes | None], _Asked] = {}
        self._known: OrderedDict[bytes, Told] = OrderedDict()
        """Ratios of schedules, as far as workers have said."""
        self._asked = 0
        self._looked = time.monotonic()
        self._members: list[_Member] = []
        self._lines: dict[int, _Member] = {}
        """Workers that have come, by the number of the file that their line is."""
        self._speaking = select.poll()
        self._close = weakref.finalize(self, _dismiss, self._members)
        for number in range(crew.width):
            self._hire(number)

    @property
    def device(self) -> str:
        return self.local.device

    @property
    def unit(self) -> str:
        return self.local.unit

    @property
    def cost(self) -> float:
        return self.local.cost

    @property
    def finalists(self) -> int:
        return self.local.finalists

    @property
    def workers(self) -> dict[int, int]:
        """Answers that each of the present ones has given, by its number."""
        return {member.seat.number: member.answered for member in self._members}

    @property
    def processes(self) -> list[int]:
        """Of this machine."""
        return [member.seat.pid for member in self._members if member.seat.pid is not None]

    def gather(self) -> None:
        """Wait until every worker has opened its device."""
        while not all(member.ready for member in self._members):
            self._step()

    def forget(self) -> None:
        """What has been replayed, here and by the workers."""
        self._known.clear()
        self._begun.clear()
        for member in self._members:
            if member.seat.line is not None:
                send(member.seat.line, Forget(None))

    def time(self, schedule: Schedule, rival: Rival | None = None) -> float:
        asked = self._begun.pop(_pair(schedule, rival), None) or self._ask(schedule, rival)
        while asked.answer is None:
            self._step()
        if isinstance(asked.answer, CandidateError):
            raise asked.answer
        return asked.answer

    def times(self, schedules: Sequence[Schedule], rival: Rival | None = None) -> list[float]:
        for schedule in schedules:
            self.announce(schedule, rival)
        return [time_or_never(self, schedule, rival) for schedule in schedules]

    @property
    def ahead(self) -> int:
        return max(1, len(self._members)) + 1

    def announce(self, schedule: Schedule, rival: Rival | None = None) -> None:
        pair = _pair(schedule, rival)
        if pair not in self._begun:
            self._begun[pair] = self._ask(schedule, rival)

    def withdraw(self, schedules: Sequence[Schedule]) -> None:
        keys = {schedule.key for schedule in schedules}
        for pair in [pair for pair in self._begun if pair[0] in keys]:
            self._begun.pop(pair).wanted = False
        self._waiting = deque(asked for asked in self._waiting if asked.wanted)
        for member in self._members:
            gone = tuple(asked.number for asked in member.questions.values() if not asked.wanted)
            if gone and member.seat.line is not None:
                # Whoever has died meanwhile is found where its answers are waited for.
                with contextlib.suppress(OSError):
                    send(member.seat.line, Forget(gone))

    def pick(self, old: Schedule, candidates: Sequence[Schedule]) -> Schedule:
        return self.local.pick(old, candidates)

    def confirm(self, old: Schedule, new: Schedule) -> Gain:
        return self.local.confirm(old, new)

    def close(self) -> None:
        """Dismiss the workers; the crew may recruit others for another kernel."""
        self._close()

    def _ask(self, schedule: Schedule, rival: Rival | None) -> _Asked:
        self._asked += 1
        asked = _Asked(self._asked, schedule, rival)
        self._waiting.append(asked)
        self._give()
        return asked

    def _step(self) -> None:
        """Wait for answers once, and look after the workers."""
        self._give()
        for number, _ in self._speaking.poll(1000 * _LOOK):
            member = self._lines[number]
            try:
                self._hear(member, receive(member.seat.line))  # type: ignore[arg-type]
            except (EOFError, OSError):
                self._replace(member, member.seat.ending() or "ended")
        now = time.monotonic()
        if now - self._looked > _LOOK:
            self._looked = now
            self._look(now)

    def _look(self, now: float) -> None:
        """Who died before it spoke, or has been silent for too long?"""
        for member in list(self._members):
            ending = member.seat.ending()
            patience = self.patience if member.ready else STARTING
            if ending is not None:
                self._replace(member, ending)
            elif (member.questions or not member.ready) and now - member.since > patience:
                self._replace(member, f"gave no answer in {patience:.0f} s")

    def _give(self) -> None:
        """Questions to those who have fewest; a device to those who have just come."""
        for member in self._members:
            if not member.told and member.seat.line is not None:
                member.told = True
                self._lines[member.seat.line.fileno()] = member
                self._speaking.register(member.seat.line.fileno(), select.POLLIN)
                with contextlib.suppress(OSError):
                    send(member.seat.line, self._device())
        while self._waiting:
            able = [m for m in self._members if m.ready and len(m.questions) < _AHEAD]
            if not able:
                return
            member = min(able, key=lambda m: len(m.questions))
            asked = self._waiting.popleft()
            if not member.questions:
                member.since = time.monotonic()
            member.questions[asked.number] = asked
            asked.attempts += 1
            with contextlib.suppress(OSError):
                send(member.seat.line, self._question(asked))  # type: ignore[arg-type]

    def _device(self) -> Replica:
        if self._replica is None:
            self._replica = self._make()
        return self._replica

    def _question(self, asked: _Asked) -> Question:
        rival = asked.rival
        if rival is None:
            return Question(asked.number, packed(asked.schedule), None, 0.0, b"")
        known = self._known.get(rival.schedule.key)
        return Question(
            asked.number, packed(asked.schedule), packed(rival.schedule), rival.time,
            b"" if known is None else numbers(known),
        )  # fmt: skip

    def _hear(self, member: _Member, message: Reply | Ready | Broken) -> None:
        member.since = time.monotonic()
        match message:
            case Ready(code):
                if code != code_digest():
                    raise CuasmrlError(
                        f"worker {member.seat.number} runs other code of cuasmrl than this process; install "
                        "the same on every node, and start again"
                    )
                member.ready = True
            case Broken(reason):
                raise CuasmrlError(f"a worker cannot go on: {reason}")
            case Reply(number, found, own, rivals):
                member.answered += 1
                asked = member.questions.pop(number)
                if asked.rival is not None and rivals:
                    self._learn(asked.rival.schedule, rivals)
                if own:
                    self._learn(asked.schedule, own)
                if isinstance(found, str):
                    asked.answer = CandidateError(found, asked.schedule.key)
                elif found is not None:
                    asked.answer = found
                elif asked.wanted:
                    raise AssertionError(f"question {number} was not answered")

    def _learn(self, schedule: Schedule, data: bytes) -> None:
        """Workers need not replay what another one has."""
        new, old = ratios(data), self._known.get(schedule.key)
        if old is not None:
            new = np.where(np.isnan(new), old, new)
            self._known.move_to_end(schedule.key)
        self._known[schedule.key] = new
        if len(self._known) > _REMEMBERED:
            self._known.popitem(last=False)

    def _hire(self, number: int) -> None:
        self._members.append(_Member(self.crew.recruit(number), time.monotonic()))

    def _replace(self, member: _Member, ending: str) -> None:
        """Its questions go first to others; the one it was at may have been what ended it."""
        self._members.remove(member)
        for number in [number for number, other in self._lines.items() if other is member]:
            self._speaking.unregister(number)
            del self._lines[number]
        member.seat.dismiss()
        self.lost += 1
        left = [asked for asked in member.questions.values() if asked.wanted]
        for asked in left[1:]:
            asked.attempts -= 1
        if not member.ready and self.lost >= ATTEMPTS and not any(m.ready for m in self._members):
            raise CuasmrlError(f"no worker starts: the last one {ending}; look at its message above")
        if left and left[0].attempts >= ATTEMPTS:
            raise CuasmrlError(
                f"{left[0].attempts} workers in turn were lost over schedule {left[0].schedule.digest[:12]}: "
                f"the last one {ending}"
            )
        self._waiting.extendleft(reversed(left))
        self._hire(member.seat.number)


def _pair(schedule: Schedule, rival: Rival | None) -> tuple[bytes, bytes | None]:
    return schedule.key, None if rival is None else rival.schedule.key


def _dismiss(members: list[_Member]) -> None:
    for member in members:
        member.seat.dismiss()
    members.clear()
