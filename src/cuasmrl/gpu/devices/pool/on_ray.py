"""Workers on a Ray cluster. Ray finds each a place; questions and answers take a line of their own.

A candidate takes a millisecond or less, which is about what a task of Ray costs, so a worker is one task that
lasts as long as the game. It calls the head back by TCP, with a password that only this cluster was told.
"""

from __future__ import annotations

import secrets
import socket
import threading
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Connection, Listener
from typing import Any

from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.devices.pool.cluster import connected
from cuasmrl.gpu.devices.pool.crew import Seat, check_workers
from cuasmrl.gpu.devices.pool.messages import Line, receive, send

_BACKLOG = 64


class OnRay:
    """So many workers, or one for each processor (with `gpus`: each GPU) of the cluster, on any nodes."""

    def __init__(self, address: str | None = None, width: int | None = None, gpus: bool = False) -> None:
        self._address = address
        self._gpus = gpus
        self.own_gpus = gpus
        self._ray = connected(address)
        able = self._able
        if width is not None and width < 1:
            check_workers(width)
        if able < (width or 1):
            raise CuasmrlError(
                f"{width or 1} workers need as many {self._what}, and the Ray cluster has {able}; "
                + (f"give --workers {able}" if able else "add a node that has one")
            )
        self._width = width or able
        self._password = secrets.token_bytes(32)
        self._listener = Listener((self._ray.util.get_node_ip_address(), 0), backlog=_BACKLOG,
                                  authkey=self._password)  # fmt: skip
        self._lines: dict[int, Line] = {}
        """By a number that each seat has of its own."""
        self._seats = 0
        self._closed = False
        threading.Thread(target=self._welcome, name="cuasmrl-door", daemon=True).start()

    @property
    def width(self) -> int:
        return self._width

    def recruit(self, number: int) -> Seat:
        if not self._ray.is_initialized():
            # The node that this process was connected to is gone, and its tasks with it.
            self._ray = connected(self._address)
        self._seats += 1
        options: dict[str, Any] = {"max_retries": 0, "num_cpus": 1}
        if self._gpus:
            options["num_gpus"] = 1
        task = self._ray.remote(call_back).options(**options)
        reference = task.remote(self._listener.address, self._password, self._seats, number)
        return _Place(self, number, self._seats, reference)

    def line(self, seat: int) -> Line | None:
        return self._lines.get(seat)

    def ended(self, reference: Any) -> str | None:
        """Why a task is no more."""
        exceptions = self._ray.exceptions
        try:
            done, _ = self._ray.wait([reference], timeout=0)
            if not done:
                return None
            self._ray.get(reference)
        except exceptions.RayError as error:
            return f"was lost on Ray ({type(error).__name__})"
        return "ended"

    def cancel(self, seat: int, reference: Any) -> None:
        line = self._lines.pop(seat, None)
        if line is not None:
            line.close()
        if self._ray.is_initialized():
            self._ray.cancel(reference, force=True)

    def close(self) -> None:
        self._closed = True
        self._listener.close()
        if self._ray.is_initialized():
            self._ray.shutdown()

    @property
    def _able(self) -> int:
        return int(self._ray.cluster_resources().get("GPU" if self._gpus else "CPU", 0))

    @property
    def _what(self) -> str:
        return "GPUs" if self._gpus else "processors"

    def _welcome(self) -> None:
        """In a thread: whoever calls and knows the password gets a line."""
        while not self._closed:
            try:
                line = self._listener.accept()
                self._lines[receive(line)] = without_delay(line)
            except (AuthenticationError, EOFError, OSError, TypeError):
                continue


class _Place:
    """A task on the cluster."""

    pid = None

    def __init__(self, crew: OnRay, number: int, seat: int, reference: Any) -> None:
        self.number = number
        self._crew = crew
        self._seat = seat
        self._reference = reference

    @property
    def line(self) -> Line | None:
        return self._crew.line(self._seat)

    def ending(self) -> str | None:
        return self._crew.ended(self._reference)

    def dismiss(self) -> None:
        self._crew.cancel(self._seat, self._reference)


def call_back(address: tuple[str, int], password: bytes, seat: int, number: int) -> None:
    """What a worker on the cluster does."""
    from cuasmrl.gpu.devices.pool.worker import serve

    line = without_delay(Client(address, authkey=password))
    send(line, seat)
    serve(line, number)


def without_delay(line: Connection[Any, Any]) -> Line:
    """Small messages go at once instead of waiting for the last one to be acknowledged."""
    with socket.socket(fileno=socket.dup(line.fileno())) as shared:
        shared.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return line
