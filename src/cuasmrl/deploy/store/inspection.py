"""Proving again what a store holds."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from cuasmrl.deploy.store.change import changing, set_aside
from cuasmrl.deploy.store.contract import check_contract
from cuasmrl.deploy.store.entry import Entry
from cuasmrl.deploy.store.packing import DamagedError, OutdatedError, UnusableError, unpack
from cuasmrl.deploy.store.proof import prove
from cuasmrl.deploy.store.shelf import Shelf
from cuasmrl.errors import CuasmrlError


@dataclass(frozen=True)
class Inspected:
    key: str
    good: bool
    sentence: str


def verify(shelf: Shelf, progress: Callable[[int, int], None] | None = None) -> list[Inspected]:
    """Damaged entries are set aside, outdated certificates renewed, the epoch made right."""
    keys = shelf.all_keys()
    found = []
    for number, key in enumerate(keys, 1):
        data = shelf.read(key)
        if data is not None:
            found.append(_inspected(shelf, key, data))
        if progress is not None:
            progress(number, len(keys))
    if keys:
        _renew_epoch(shelf)
    return found


def _inspected(shelf: Shelf, key: str, data: bytes) -> Inspected:
    try:
        packed = unpack(data, key)
        # One of older rules has only to be proved by those of today.
        with suppress(OutdatedError):
            check_contract(packed, key)
        renewed = prove(Entry.unpacked(packed)).packed()
        check_contract(unpack(renewed, key), key)
    except UnusableError as error:
        return Inspected(key, False, f"left alone: {error}")
    except (DamagedError, LookupError, TypeError, ValueError) as error:
        place = set_aside(shelf, key, data, str(error))
        return Inspected(key, False, f"damaged: {error}" + (f"; it is now in {place}" if place else ""))
    except CuasmrlError as error:
        # Such as a missing disassembler, for which the entry can do nothing.
        return Inspected(key, False, f"left alone, for it cannot be proved: {error}")
    if renewed == data:
        return Inspected(key, True, "proved")
    try:
        with changing(shelf) as change:
            # Somebody may have put a newer result there since.
            if shelf.read(key) == data:
                change.put(key, renewed)
    except CuasmrlError as error:
        return Inspected(key, False, f"proved by the rules of today, but not renewed: {error}")
    return Inspected(key, True, "proved by the rules of today, certificate renewed")


def _renew_epoch(shelf: Shelf) -> None:
    """Someone may have put files here by other means than this program."""
    if shelf.known_epoch() == shelf.worked_out_epoch():
        return
    try:
        with changing(shelf) as change:
            change.unsettle()
    except CuasmrlError:
        # A store that cannot be written can still be proved.
        return
