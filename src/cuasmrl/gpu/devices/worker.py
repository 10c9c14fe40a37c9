"""A process that owns the GPU's context, so that a candidate that faults or hangs takes nothing else with it.

After any failure the process is ended and the next question starts another one.
"""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from typing import Any, TypeAlias

from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.devices.bench import Bench, Ready, Sitting, Soak
from cuasmrl.gpu.devices.driver import ELSEWHERE, Bytes, Driver, DriverError
from cuasmrl.gpu.devices.packed import PackedLaunch
from cuasmrl.gpu.timing import L2

Connect: TypeAlias = Callable[[], Driver]
"""How the process gets its driver; a function that can be pickled."""

_ENDING = 10.0
"""Seconds a process gets to end; one that is killed waits for the driver to clear up after it."""


class WorkerError(CuasmrlError):
    """What ran on the GPU failed, or was ended because there was no answer; the sentence says why."""

    def __init__(self, sentence: str, is_elsewhere: bool = False) -> None:
        super().__init__(sentence)
        self.is_elsewhere = is_elsewhere
        """Is it something that no kernel can cause, such as memory that others took?"""


@dataclass(frozen=True)
class _Check:
    cubin: bytes = field(repr=False)


@dataclass(frozen=True)
class _Sit:
    cubins: tuple[bytes, ...] = field(repr=False)
    rounds: int
    seed: int
    l2: L2 | None


@dataclass(frozen=True)
class _Soak:
    cubin: bytes | None = field(repr=False)
    """None for the original, see `Bench.doubt`."""
    launches: int
    seconds: float


@dataclass(frozen=True)
class _Outputs:
    pass


@dataclass(frozen=True)
class _Open:
    connect: Connect
    ordinal: int
    packed: PackedLaunch
    original: bytes = field(repr=False)
    l2: L2


@dataclass(frozen=True)
class _Answer:
    value: Any


@dataclass(frozen=True)
class _Failure:
    reason: str
    is_launch: bool
    """Did the driver fail, or something that has nothing to do with what is launched?"""
    is_elsewhere: bool = False


class Worker:
    """This side of the process."""

    def __init__(
        self, connect: Connect, ordinal: int, packed: PackedLaunch, original: bytes, l2: L2 = L2.COLD
    ) -> None:
        self._opening = _Open(connect, ordinal, packed, original, l2)
        self._process: SpawnProcess | None = None
        self._connection: Connection[Any, Any] | None = None

    @property
    def is_open(self) -> bool:
        return self._process is not None

    def open(self, patience: float) -> Ready:
        """Start the process and let it prepare everything up to the first candidate."""
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=serve, args=(theirs,), name="cuasmrl-gpu", daemon=True)
        self._process.start()
        # Held open here as well, the end of the process would not show.
        theirs.close()
        answer: Ready = self._ask(self._opening, patience)
        return answer

    def check(self, cubin: bytes, patience: float) -> str | None:
        """See `Bench.check`; `patience` in seconds."""
        answer: str | None = self._ask(_Check(cubin), patience)
        return answer

    def sit(
        self, cubins: tuple[bytes, ...], rounds: int, seed: int, patience: float, l2: L2 | None = None
    ) -> Sitting:
        """See `Bench.sit`."""
        answer: Sitting = self._ask(_Sit(cubins, rounds, seed, l2), patience)
        return answer

    def soak(self, cubin: bytes | None, launches: int, seconds: float, patience: float) -> Soak:
        """See `Bench.soak`, and without a cubin `Bench.doubt`."""
        answer: Soak = self._ask(_Soak(cubin, launches, seconds), patience)
        return answer

    def outputs(self, patience: float) -> dict[int, Bytes]:
        """See `Bench.outputs`."""
        answer: dict[int, Bytes] = self._ask(_Outputs(), patience)
        return answer

    def close(self) -> None:
        process, connection = self._process, self._connection
        self._process = self._connection = None
        if connection is not None:
            connection.close()
        if process is None:
            return
        process.kill()
        process.join(_ENDING)
        if process.exitcode is None:
            raise CuasmrlError(
                f"process {process.pid} on the GPU does not end; reset the GPU by nvidia-smi --gpu-reset"
            )
        process.close()

    def _ask(self, request: object, patience: float) -> Any:
        """Wait for an answer this many seconds at most."""
        assert self._connection is not None
        try:
            self._connection.send(request)
            answered = self._connection.poll(patience)
            answer = self._connection.recv() if answered else None
        except (EOFError, OSError):
            raise WorkerError(self._death()) from None
        except BaseException:
            # Interrupted in the middle of an answer: what comes next would be taken for another one.
            self.close()
            raise
        if isinstance(answer, _Answer):
            return answer.value
        self.close()
        if not isinstance(answer, _Failure):
            raise WorkerError(f"no answer in {patience:.0f} s")
        if not answer.is_launch:
            raise CuasmrlError(answer.reason)
        raise WorkerError(answer.reason, answer.is_elsewhere)

    def _death(self) -> str:
        process = self._process
        assert process is not None
        process.join(_ENDING)
        status = process.exitcode
        self.close()
        if status is not None and status < 0:
            return f"the process on the GPU was ended by signal {-status}"
        return f"the process on the GPU ended with status {status}; its own message stands before"


def serve(connection: Connection[Any, Any]) -> None:
    """The other side: answer until nobody asks any more, or until something fails."""
    # An interrupt at the keyboard reaches both sides; the other one decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    bench: Bench | None = None
    while True:
        try:
            request = connection.recv()
        except (EOFError, OSError):
            return
        try:
            match request:
                case _Open():
                    bench = Bench(
                        request.connect(), request.ordinal, request.packed, request.original, request.l2
                    )
                    answer: Any = bench.ready
                case _Check() if bench is not None:
                    answer = bench.check(request.cubin)
                case _Sit() if bench is not None:
                    answer = bench.sit(request.cubins, request.rounds, request.seed, request.l2)
                case _Soak(cubin, launches, seconds) if bench is not None:
                    many = launches, seconds
                    answer = bench.doubt(*many) if cubin is None else bench.soak(cubin, *many)
                case _Outputs() if bench is not None:
                    answer = bench.outputs()
                case _:
                    raise AssertionError(request)
        except DriverError as error:
            connection.send(_Failure(str(error), True, error.code in ELSEWHERE))
            return
        except CuasmrlError as error:
            connection.send(_Failure(str(error), False))
            return
        connection.send(_Answer(answer))
