"""What a request has to be before anything is done for it.

A page of any site can make the reader's browser send requests to this machine. So the address holds a token
that nobody can guess; names other than this machine's are refused, as a foreign one may be made to lead here;
and so are requests that another origin has sent.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Mapping

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MOST_BYTES = 1 << 20
"""Of the body of a request."""
TOO_LARGE = "bodies above 1 MB are refused"
_HOSTS = re.compile(r"(127\.0\.0\.1|localhost|\[::1\])(:\d+)?")
_SAME = ("same-origin", "none")
_LOOKS = {
    "cache-control": "no-store",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


class Guard:
    """In front of an application whose addresses begin with a token."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self.app = app
        self._token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        refused = self._refusal(scope["path"], scope["method"], Headers(scope=scope))
        if refused is not None:
            status, sentence = refused
            await PlainTextResponse(f"{sentence}\n", status, _LOOKS)(scope, receive, send)
            return

        async def with_looks(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] += [(k.encode(), v.encode()) for k, v in _LOOKS.items()]
            await send(message)

        await self.app(scope, receive, with_looks)

    def _refusal(self, path: str, method: str, headers: Mapping[str, str]) -> tuple[int, str] | None:
        host = headers.get("host", "")
        if not _HOSTS.fullmatch(host):
            return 403, "this page answers to 127.0.0.1 and localhost only"
        if headers.get("origin", f"http://{host}") != f"http://{host}":
            return 403, "requests from other pages are refused"
        if method == "POST" and headers.get("sec-fetch-site", _SAME[0]) not in _SAME:
            return 403, "requests from other pages are refused"
        if not hmac.compare_digest(path.lstrip("/").split("/")[0].encode(), self._token.encode()):
            return 404, "there is nothing here; open the address that the command has printed, token included"
        if method == "POST" and headers.get("content-type", "").split(";")[0] != "application/json":
            return 415, "send JSON"
        try:
            too_large = int(headers.get("content-length", "0")) > MOST_BYTES
        except ValueError:
            return 400, "the length of the body is no number"
        return (413, TOO_LARGE) if too_large else None
