"""An entry as one file: a line for the index, a line of JSON, the original cubin, the optimised cubin.

    cuasmrl-entry SCHEMA DIGEST RESULT CHECKER
    {"arch": 80, "certificate": {...}, ...}
    ...bytes of both cubins...

DIGEST is over everything after the first line, RESULT is that of the optimised cubin, CHECKER the version of
the rules it was proved by. One file, because one rename then publishes all of it or nothing.
"""

from __future__ import annotations

import hashlib

from cuasmrl.errors import CuasmrlError

# As `typing` has it. Its import, and that of `json`, would take as long as all else that a lookup needs.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

SCHEMA = 1
FIRST_LINE = 256
"""No first line is longer."""
_MAGIC = "cuasmrl-entry"


class DamagedError(CuasmrlError):
    """This is not what was once stored under this key."""


class UnusableError(CuasmrlError):
    """Whole, but not for this version of cuasmrl."""


class OutdatedError(UnusableError):
    """Proved by other rules than those of today."""


class Packed:
    """An entry whose digests agree with its bytes."""

    def __init__(self, facts: dict[str, Any], original: bytes, optimised: bytes) -> None:
        self.facts = facts
        self.original = original
        self.optimised = optimised


def pack(facts: Mapping[str, Any], original: bytes, optimised: bytes) -> bytes:
    import json

    whole = {**facts, "original": _described(original), "optimised": _described(optimised)}
    line = json.dumps(whole, sort_keys=True, allow_nan=False).encode()
    body = b"".join((line, b"\n", original, optimised))
    result, checker = whole["optimised"]["sha256"], whole["certificate"]["checker"]
    return f"{_MAGIC} {SCHEMA} {_digest(body)} {result} {checker}\n".encode() + body


def first_line(start: bytes) -> tuple[str, str] | None:
    """(digest of the entry, checker) from the start of a file; None if this version cannot use the entry."""
    fields = start.partition(b"\n")[0].decode("ascii", "replace").split(" ")
    if len(fields) != 5 or fields[:2] != [_MAGIC, str(SCHEMA)]:
        return None
    return fields[2], fields[4]


def unpack(data: bytes, key: str) -> Packed:
    """Read back what `pack` made, refusing anything else."""
    import json

    first, _, body = data.partition(b"\n")
    fields = first[:FIRST_LINE].decode("ascii", "replace").split(" ")
    if fields[0] != _MAGIC or len(fields) < 2 or not fields[1].isdecimal():
        raise DamagedError("it does not begin like an entry")
    if int(fields[1]) != SCHEMA:
        raise UnusableError(
            f"it has schema {fields[1]}, but this version of cuasmrl reads {SCHEMA}; "
            + ("update cuasmrl" if int(fields[1]) > SCHEMA else "optimise the kernel again")
        )
    if len(fields) != 5 or _digest(body) != fields[2]:
        raise DamagedError("its content does not have the digest it was stored with")
    line, _, cubins = body.partition(b"\n")
    try:
        facts = json.loads(line)
        size = facts["original"]["size"]
        original, optimised = cubins[:size], cubins[size:]
        agreed = (
            facts["key"] == key
            and facts["original"] == _described(original)
            and facts["optimised"] == _described(optimised)
            and facts["optimised"]["sha256"] == fields[3]
            and facts["certificate"]["checker"] == fields[4]
        )
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise DamagedError(f"its facts cannot be read ({error})") from None
    if not agreed:
        raise DamagedError("its facts do not belong to its cubins or to this key")
    return Packed(facts, original, optimised)


def _described(cubin: bytes) -> dict[str, Any]:
    return {"sha256": _digest(cubin), "size": len(cubin)}


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
