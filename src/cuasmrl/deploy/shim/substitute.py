"""What a ptxas shim does after the real ptxas has succeeded: put the store's code where ptxas put its own.

Runs as `python -I -S substitute.py REAL ARGUMENTS...`. Every compile waits for it, so it imports little, and
nothing before it is needed. It ends with status 0: on any doubt the output stays as ptxas wrote it.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # `typing` costs more to import than all the rest
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import TypeVar

    from cuasmrl.deploy.store import Store

    T = TypeVar("T")

MODE, SESSION, TIMEOUT = "CUASMRL_MODE", "CUASMRL_SESSION", "CUASMRL_TIMEOUT"
DEPLOY, RECORD = "deploy", "record"
EVENTS = "events.jsonl"
DEFAULT_TIMEOUT = 5.0
"""Seconds. A lookup takes milliseconds; a network disk that hangs must not hang the build."""
_GIVEN_UP = "given-up"
_VERSION = ("--version", "-V")
_OUTPUT = ("--output-file", "-o")
_OPTIONS_FILE = ("--options-file", "-optf")


class DoubtError(Exception):
    """Why ptxas's own code is kept, in words."""


class TimedOut(BaseException):
    """Not an `Exception`: whoever guards against those must not swallow the end of our time."""


def main(arguments: list[str]) -> int:
    real, *given = arguments
    event: dict[str, object] = {}
    try:
        if any(option in _VERSION for option in given):
            within_time(print_tag)
        elif (output := output_of(given)) is not None:
            event["output"] = os.path.abspath(output)
            event |= within_time(lambda: substitute(output, real, given))
    except BaseException as error:
        sentence = str(error) if isinstance(error, DoubtError) else f"{type(error).__name__}: {error}"
        event |= {"used": False, "doubt": True, "reason": sentence}
    if event:
        report(event)
    return 0


def output_of(given: list[str]) -> str | None:
    """The file that ptxas was told to write; None if none, as by those who only ask it something."""
    output = None
    for place, option in enumerate(given):
        name, equals, value = option.partition("=")
        if name in _OPTIONS_FILE:
            raise DoubtError("ptxas reads options from a file, which may name another output")
        if name in _OUTPUT:
            output = value if equals else "".join(given[place + 1 : place + 2])
    return output


def substitute(output: str, real: str, given: list[str]) -> dict[str, object]:
    """What has been done, for the log of the session."""
    path = os.path.realpath(output)
    if not os.path.isfile(path):
        return {"used": False, "doubt": False, "reason": "ptxas wrote no file"}
    with open(path, "rb") as file:
        cubin = file.read()
    from cuasmrl.deploy.store import Allowed, Store, deploy
    from cuasmrl.deploy.store.allowed import asked_for

    store = Store()
    # What is compiled here may run anywhere, so results of any GPU of this architecture are good.
    found = deploy(cubin, store, Allowed(asked_for(os.environ)))
    recorded = os.environ.get(MODE) == RECORD and not (found.used or found.doubt or found.modelled)
    if found.used:
        replace(path, found.cubin)
    elif recorded:
        store.record(cubin, (), {"compiler": real, "arguments": given, "directory": os.getcwd()})
    return {
        "used": found.used, "doubt": found.doubt, "modelled": found.modelled, "reason": found.reason,
        "recorded": recorded,
    }  # fmt: skip


def replace(path: str, cubin: bytes) -> None:
    """Whoever reads the file sees the old bytes or the new ones, with the permissions ptxas gave it."""
    scratch = f"{path}.{os.getpid()}.partial"
    try:
        with open(scratch, "xb") as file:
            file.write(cubin)
            os.fchmod(file.fileno(), os.stat(path).st_mode & 0o7777)
        os.replace(scratch, path)
    except BaseException:
        if os.path.exists(scratch):
            os.unlink(scratch)
        raise


def print_tag() -> None:
    """Triton's cache key holds all that `ptxas --version` prints: another store, another key."""
    from cuasmrl.deploy.store import Store

    if tag := cache_tag(Store(), os.environ):
        sys.stdout.write(f"cuasmrl {tag}\n")
        sys.stdout.flush()


def cache_tag(store: Store, environment: Mapping[str, str]) -> str:
    """What a compiler's cache depends on; empty if the store changes nothing, as if we were not there."""
    from cuasmrl.deploy.store import EMPTY, Allowed
    from cuasmrl.deploy.store.allowed import asked_for

    parts = (
        [] if store.epoch == EMPTY else [store.epoch, *filter(None, [Allowed(asked_for(environment)).tag])]
    )
    if environment.get(MODE) == RECORD:
        # What another store has recorded would be served from the cache, and never be seen by this one.
        import hashlib

        parts.append("record-" + hashlib.sha256(os.fsencode(store.root)).hexdigest()[:8])
    return "-".join(parts)


def within_time(action: Callable[[], T]) -> T:
    session, limit = os.environ.get(SESSION), seconds()
    if session and os.path.exists(f"{session}/{_GIVEN_UP}"):
        raise DoubtError("the store did not answer in time earlier in this run, so it is not asked again")
    import signal

    def ring(*_: object) -> None:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        raise TimedOut

    signal.signal(signal.SIGALRM, ring)
    # The first bell is heard between two steps of Python; if nobody listens, the second ends this process.
    signal.setitimer(signal.ITIMER_REAL, limit, 1.0)
    try:
        return action()
    except TimedOut:
        if session:
            _first_to_make(f"{session}/{_GIVEN_UP}")
        raise DoubtError(f"the store did not answer within {limit:g} seconds ({TIMEOUT})") from None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def seconds() -> float:
    try:
        return max(0.01, float(os.environ.get(TIMEOUT, DEFAULT_TIMEOUT)))
    except ValueError:
        return DEFAULT_TIMEOUT


def report(event: dict[str, object]) -> None:
    """A line in the log of the session; a doubt is also said, once in a session.

    What it means for modelled results the session says at its end; without one it is said here.
    """
    session = os.environ.get(SESSION)
    if event["doubt"] and (not session or _first_to_make(f"{session}/told")):
        sys.stderr.write(f"cuasmrl: ptxas's own code is kept: {event['reason']}\n")
    elif event.get("modelled") and not session:
        say_modelled(event)
    if session:
        import json

        line = json.dumps(event).encode() + b"\n"
        try:
            # One write to a file opened for appending is not mixed with another's.
            log = os.open(f"{session}/{EVENTS}", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            os.write(log, line)
        except OSError:
            return  # Whoever started the session has ended it: there is nobody to tell.


def say_modelled(event: dict[str, object]) -> None:
    from cuasmrl.deploy.store.allowed import MODELLED, UNCONFIRMED, VIRTUAL

    if not event["used"]:
        sys.stderr.write(f"cuasmrl: ptxas's own code is kept: {event['reason']}; {MODELLED}=1 allows it\n")
    elif not os.environ.get(VIRTUAL):
        sys.stderr.write(f"cuasmrl: {event['reason']} is used, which {UNCONFIRMED}\n")


def _first_to_make(path: str) -> bool:
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        return False
    except OSError:
        pass
    return True


if __name__ == "__main__":
    # Behind the standard library, whose names a folder full of packages must not hide.
    sys.path.append(os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(__file__)))))
    sys.exit(main(sys.argv[1:]))
