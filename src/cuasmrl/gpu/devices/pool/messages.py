"""What head and worker say to each other. Written for every candidate, so it is kept short."""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

import cuasmrl
from cuasmrl.binary.sass import Listing
from cuasmrl.schedule import Schedule

Line: TypeAlias = "Connection[Any, Any]"
Told: TypeAlias = npt.NDArray[np.float64]
"""What one panel knows of a schedule, for another one."""
Arrays: TypeAlias = tuple[bytes, bytes]
"""Of a schedule: its order and its control bits."""


class Question(NamedTuple):
    """Time a schedule. What is known of it and of its rival is a saving, and changes no answer."""

    number: int
    schedule: Arrays
    rival: Arrays | None
    """The rival's order and bits; None without one."""
    time: float
    """The rival's."""
    known: bytes
    """Ratios of the rival so far."""


class Reply(NamedTuple):
    number: int
    time: float | str | None
    """In words if the device could not time it; None if nobody wanted the answer any more."""
    own: bytes
    """Ratios of the schedule, as far as they were needed,"""
    rivals: bytes
    """and of its rival."""


@dataclass(frozen=True)
class Forget:
    """Questions that were withdrawn; None: all that has been replayed."""

    numbers: tuple[int, ...] | None


@dataclass(frozen=True)
class Ready:
    """The worker has opened its device."""

    code: str
    """What it runs, see `code_digest`."""


@dataclass(frozen=True)
class Broken:
    """It cannot go on, and no other worker could."""

    reason: str


@cache
def code_digest() -> str:
    """Of all files of this package: workers with other code might answer otherwise."""
    digest = hashlib.sha256()
    for path in sorted(Path(cuasmrl.__file__).parent.rglob("*")):
        if path.suffix in (".py", ".csv"):
            digest.update(path.name.encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()


def send(line: Line, message: object) -> None:
    line.send_bytes(pickle.dumps(message, pickle.HIGHEST_PROTOCOL))


def receive(line: Line) -> Any:
    return pickle.loads(line.recv_bytes())


def packed(schedule: Schedule) -> Arrays:
    return schedule.indices.tobytes(), schedule.bits.tobytes()


def unpacked(arrays: Arrays, listing: Listing) -> Schedule:
    indices, bits = (np.frombuffer(data, np.int32) for data in arrays)
    return Schedule.of_arrays(listing, indices, bits)


def numbers(told: Sequence[float] | Told) -> bytes:
    return np.asarray(told, np.float64).tobytes()


def ratios(data: bytes) -> Told:
    return np.frombuffer(data)
