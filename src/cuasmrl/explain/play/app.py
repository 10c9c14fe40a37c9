"""The addresses of the page: what a browser may ask for, and what it gets."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, Protocol, TypeAlias

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Mount, Route

from cuasmrl.errors import CuasmrlError
from cuasmrl.explain.play.deeds import RefusedError
from cuasmrl.explain.play.game import StaleError
from cuasmrl.explain.play.guard import MOST_BYTES, TOO_LARGE, Guard

_SIGN = 10.0
"""Seconds without news after which a sign of life is sent."""


class Live(Protocol):
    """Something that goes on, and that browsers look at."""

    look: float
    """Seconds between looks for news."""

    @property
    def pulse(self) -> int:
        """Grows whenever there is news."""

    def text(self) -> str:
        """All that changes, as it is now, as JSON."""


Action: TypeAlias = Callable[[dict[str, Any]], dict[str, Any] | None]
"""What browsers can ask to be done: takes the request's data, and may return more than the new state."""
Pages: TypeAlias = Mapping[str, Callable[[], str]]


def application(
    token: str, live: Live, pages: Pages, actions: Mapping[str, Action], is_over: Callable[[], bool]
) -> Guard:
    """`pages` by their address below the token, the first page's being empty. Nobody is told anything more
    once it is over."""
    routes = [
        *(Route(f"/{name}", _page(made)) for name, made in pages.items()),
        Route("/events", _events(live, is_over)),
        *(Route(f"/{name}", _endpoint(action, live), methods=["POST"]) for name, action in actions.items()),
    ]
    return Guard(Starlette(routes=[Mount(f"/{token}", routes=routes)]), token)


def _page(made: Callable[[], str]) -> Callable[[Request], Response]:
    def answer(request: Request) -> Response:
        try:
            return HTMLResponse(made())
        except CuasmrlError as error:
            return PlainTextResponse(f"{error}\n", 404)

    return answer


def _endpoint(action: Action, live: Live) -> Callable[[Request], Any]:
    async def answer(request: Request) -> Response:
        body = bytearray()
        async for piece in request.stream():
            body += piece
            if len(body) > MOST_BYTES:
                return PlainTextResponse(f"{TOO_LARGE}\n", 413, {"connection": "close"})
        try:
            data = json.loads(body)
        except ValueError:
            data = None
        if not isinstance(data, dict):
            return _json({"sentence": "the request is not a JSON object"}, 400)
        # Replays take milliseconds, and others want to hear of things meanwhile.
        return await run_in_threadpool(_carry_out, action, live, data)

    return answer


def _carry_out(action: Action, live: Live, data: dict[str, Any]) -> Response:
    try:
        more = action(data)
    except StaleError as error:
        return _with_state(live, 409, str(error))
    except RefusedError as error:
        return _json({"sentence": str(error)}, 422)
    except CuasmrlError as error:
        return _json({"sentence": str(error)}, 400)
    return _with_state(live) if more is None else _json(more)


def _with_state(live: Live, status: int = 200, sentence: str | None = None) -> Response:
    said = "" if sentence is None else f'"sentence":{dumped(sentence)},'
    return Response(f'{{{said}"state":{live.text()}}}', status, media_type="application/json")


def _json(data: Any, status: int = 200) -> Response:
    return Response(dumped(data), status, media_type="application/json")


def dumped(data: Any) -> str:
    """As short as it gets."""
    return json.dumps(data, separators=(",", ":"))


def _events(live: Live, is_over: Callable[[], bool]) -> Callable[[Request], Response]:
    """The state now and after every change, for as long as somebody listens."""
    return lambda request: StreamingResponse(_stream(live, is_over), media_type="text/event-stream")


async def _stream(live: Live, is_over: Callable[[], bool]) -> AsyncIterator[str]:
    seen, quiet = -1, 0.0
    yield "retry: 1000\n\n"
    while not is_over():
        pulse = live.pulse
        if pulse != seen:
            text = await run_in_threadpool(live.text)
            seen, quiet = pulse, 0.0
            yield f"data: {text}\n\n"
        elif quiet >= _SIGN:
            quiet = 0.0
            yield ": still here\n\n"
        quiet += live.look
        await asyncio.sleep(live.look)
    if live.pulse != seen:
        yield f"data: {live.text()}\n\n"
