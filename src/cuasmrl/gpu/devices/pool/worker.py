"""A worker: opens the device it is told of, and answers questions until nobody asks any more."""

from __future__ import annotations

import select
from collections import OrderedDict, deque
from typing import Any

from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.devices.device import CandidateError, Rival, Timer
from cuasmrl.gpu.devices.pool.messages import (
    Arrays,
    Broken,
    Forget,
    Line,
    Question,
    Ready,
    Reply,
    code_digest,
    numbers,
    ratios,
    receive,
    send,
    unpacked,
)
from cuasmrl.gpu.devices.pool.replica import Replica
from cuasmrl.gpu.devices.virtual import VirtualTimer
from cuasmrl.schedule import Schedule

_RIVALS = 8


def serve(line: Line, seat: int) -> None:
    """The other side of a `PooledTimer`. Ends when the line does."""
    try:
        replica: Replica = receive(line)
        try:
            worker = Answering(line, replica, replica.open(seat))
        except CuasmrlError as error:
            send(line, Broken(str(error)))
            return
        send(line, Ready(code_digest()))
        worker.go_on()
    except (EOFError, OSError):
        # Nobody asks any more.
        return


class Answering:
    """Questions in turn; between two replays it looks whether the answer is still wanted."""

    def __init__(self, line: Line, replica: Replica, timer: Timer) -> None:
        self._line = line
        self._listing = replica.kernel.listing
        self._timer = timer
        self._waiting: deque[Question] = deque()
        self._forgotten: set[int] = set()
        self._rivals: OrderedDict[Arrays, Schedule] = OrderedDict()
        self._heard = select.poll()
        self._heard.register(line.fileno(), select.POLLIN)

    def go_on(self) -> None:
        while True:
            if not self._waiting:
                self._take(receive(self._line))
            self.listen()
            if self._waiting:
                question = self._waiting.popleft()
                reply = self._reply(question)
                self._forgotten.discard(question.number)
                send(self._line, reply)

    def listen(self) -> None:
        """Take in what has been said meanwhile."""
        while self._heard.poll(0):
            self._take(receive(self._line))

    def wants(self, number: int) -> bool:
        self.listen()
        return number not in self._forgotten

    def _take(self, message: Any) -> None:
        if isinstance(message, Question):
            self._waiting.append(message)
        elif isinstance(message, Forget) and message.numbers is not None:
            self._forgotten.update(message.numbers)
        elif isinstance(message, Forget) and isinstance(self._timer, VirtualTimer):
            self._timer.panel.forget()

    def _reply(self, question: Question) -> Reply:
        number = question.number
        if number in self._forgotten:
            return Reply(number, None, b"", b"")
        schedule = unpacked(question.schedule, self._listing)
        rival = None if question.rival is None else Rival(self._rival(question.rival), question.time)
        try:
            if not isinstance(self._timer, VirtualTimer):
                return Reply(number, self._timer.time(schedule, rival), b"", b"")
            panel = self._timer.panel
            if rival is not None and question.known:
                panel.learn(rival.schedule, ratios(question.known).tolist())
            time = panel.time(schedule, rival, _Withdrawn(self, number))
            rivals = b"" if rival is None else numbers(panel.known(rival.schedule))
            wanted = number not in self._forgotten
            return Reply(number, time if wanted else None, numbers(panel.known(schedule)), rivals)
        except CandidateError as error:
            return Reply(number, str(error), b"", b"")
        except CuasmrlError as error:
            send(self._line, Broken(str(error)))
            raise EOFError from error

    def _rival(self, arrays: Arrays) -> Schedule:
        """The same object each time, so that its key is made once."""
        found = self._rivals.get(arrays)
        if found is None:
            found = self._rivals[arrays] = unpacked(arrays, self._listing)
            if len(self._rivals) > _RIVALS:
                self._rivals.popitem(last=False)
        return found


class _Withdrawn:
    """What a race asks between two replays."""

    def __init__(self, worker: Answering, number: int) -> None:
        self._worker = worker
        self._number = number

    def is_set(self) -> bool:
        return not self._worker.wants(self._number)
