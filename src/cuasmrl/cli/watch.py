"""`optimize --watch`: a page of the run while it goes on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from cuasmrl.cli.console import problems

if TYPE_CHECKING:
    from cuasmrl.explain.play.watching import Watched


@contextmanager
def watching(wanted: bool) -> Iterator[Watched | None]:
    """Served from when the kernel is known until the end, and a moment longer, so that the end is seen."""
    if not wanted:
        yield None
        return
    from cuasmrl.explain.play.serving import PORT, Server, needed

    needed()
    from cuasmrl.explain.play.app import application
    from cuasmrl.explain.play.watching import Watched

    def start(can_be_watched: bool) -> None:
        if not can_be_watched:
            problems.print("this kernel cannot be replayed, so there is nothing to watch", markup=False)
            return
        server.start()
        if not server.is_wanted_port:
            problems.print(f"port {PORT} is in use, so the page is at {server.port}", markup=False)
        problems.print(f"watch it at {server.address}", markup=False)

    watched = Watched(start)
    server = Server(lambda token, over: application(token, watched, watched.pages, {}, over), PORT)
    try:
        yield watched
    finally:
        watched.close()
        server.stop()
