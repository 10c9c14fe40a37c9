"""A server on this machine only, in a thread of its own."""

from __future__ import annotations

import secrets
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

from cuasmrl.errors import CuasmrlError

PORT = 8737
_HOST = "127.0.0.1"
_PATIENCE = 10.0
"""Seconds for the server to come up."""


class Server:
    """Answers until it is stopped."""

    def __init__(self, application: Callable[[str, Callable[[], bool]], Any], port: int = PORT) -> None:
        """`application` makes what is served from the token that its addresses begin with, and from what
        says whether the server is to stop."""
        needed()
        import uvicorn

        self._is_over = False
        token = secrets.token_urlsafe(16)
        self._socket, self.is_wanted_port = _listen(port)
        self.port = int(self._socket.getsockname()[1])
        self.address = f"http://{_HOST}:{self.port}/{token}/"
        config = uvicorn.Config(
            application(token, lambda: self._is_over), log_level="warning", access_log=False, lifespan="off",
            timeout_graceful_shutdown=1, server_header=False,
        )  # fmt: skip
        self._server = uvicorn.Server(config)
        # Only a main thread may catch signals, and this one belongs to the command.
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self._thread.start()
        until = time.monotonic() + _PATIENCE
        while not self._server.started and self._thread.is_alive() and time.monotonic() < until:
            time.sleep(0.01)
        if not self._server.started:
            raise CuasmrlError("the page could not be served; try again with another --port")

    def stop(self) -> None:
        """Also where it never began."""
        self._is_over = True
        self._server.should_exit = True
        if self._thread.is_alive():
            self._thread.join(_PATIENCE)
        self._socket.close()

    def _run(self) -> None:
        self._server.run([self._socket])


def needed() -> None:
    """Refuse where a package is missing that pages need."""
    try:
        import starlette
        import uvicorn
    except ModuleNotFoundError as error:
        raise CuasmrlError(
            f"the page needs {error.name}; install it with pip install 'cuasmrl[pages]'"
        ) from None
    _ = starlette, uvicorn


def _listen(port: int) -> tuple[socket.socket, bool]:
    """The port that is asked for, or any that is free if somebody has it; whether it is that one."""
    for wanted in (port, 0):
        made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            made.bind((_HOST, wanted))
        except OSError as error:
            made.close()
            problem = error
        else:
            return made, wanted == port
    raise CuasmrlError(f"no port of this machine can be used: {problem.strerror}")
