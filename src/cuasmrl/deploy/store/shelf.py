"""The files of a store.

schema             version of this layout
epoch              digest of the visible entries; missing while they change, then worked out from them
lock               held by whoever changes something
objects/KK/KEY     an entry
scratch/           what a writer prepares; without a holder of the lock it is rubbish
corrupt/           entries that were set aside, each with the reason
pending/KEY/       kernels that wait to be optimised
"""

from __future__ import annotations

import errno
import hashlib
import os

from cuasmrl.checker import VERSION
from cuasmrl.deploy.store.packing import FIRST_LINE, first_line
from cuasmrl.errors import CuasmrlError

LAYOUT = 1
EMPTY = "empty"
"""Epoch of a store in which nothing is to be seen."""
_KEY_DIGITS = 64
_SMALL = 256


class Shelf:
    def __init__(self, root: str) -> None:
        self.root = root

    def path(self, *parts: str) -> str:
        return os.path.join(self.root, *parts)

    def place(self, key: str) -> str:
        return self.path("objects", key[:2], key)

    def read(self, key: str) -> bytes | None:
        """An entry as it lies there, not checked."""
        self.check_layout()
        try:
            with open(self.place(key), "rb") as file:
                return file.read()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self.unreadable(error) from error

    def all_keys(self) -> list[str]:
        """In order."""
        self.check_layout()
        found: list[str] = []
        try:
            for shard in os.listdir(self.path("objects")):
                found += [key for key in os.listdir(self.path("objects", shard)) if is_key(key)]
        except FileNotFoundError:
            pass
        except OSError as error:
            raise self.unreadable(error) from error
        return sorted(found)

    def epoch(self) -> str:
        self.check_layout()
        known = self.known_epoch()
        if known is not None:
            return known
        # Somebody is changing the store, or died doing it.
        if os.path.isdir(self.path("objects")):
            from cuasmrl.deploy.store.change import settled_epoch

            return settled_epoch(self)
        return self.worked_out_epoch()

    def known_epoch(self) -> str | None:
        """As it was written down; None if it has to be worked out."""
        version, _, epoch = (_small_file(self.path("epoch")) or "").partition(" ")
        # Another version of cuasmrl may see other results.
        return epoch if version == VERSION and epoch else None

    def worked_out_epoch(self) -> str:
        seen, digest = False, hashlib.sha256()
        for key in self.all_keys():
            found = first_line(_start(self.place(key)))
            if found is not None and found[1] == VERSION:
                seen = True
                digest.update(f"{key} {found[0]}\n".encode())
        return digest.hexdigest()[:32] if seen else EMPTY

    def check_layout(self) -> None:
        found = _small_file(self.path("schema"))
        if found is not None and found != str(LAYOUT):
            raise CuasmrlError(
                f"the store {self.root} has schema {found or '?'}, but this version of cuasmrl knows "
                f"{LAYOUT}; update cuasmrl, or use another store with CUASMRL_STORE"
            )

    def unreadable(self, error: OSError) -> CuasmrlError:
        return CuasmrlError(
            f"cannot read the store {self.root}: {error.strerror or error}; set CUASMRL_STORE to a good one"
        )

    def unwritable(self, error: OSError) -> CuasmrlError:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        advice = "free some space or set" if full else "choose a writable place with"
        return CuasmrlError(
            f"cannot write to the store {self.root}: {error.strerror or error}; {advice} CUASMRL_STORE"
        )


def is_key(name: str) -> bool:
    return len(name) == _KEY_DIGITS and not name.strip("0123456789abcdef")


def _small_file(path: str) -> str | None:
    try:
        with open(path, "rb", buffering=0) as file:
            return file.read(_SMALL).decode("ascii", "replace").strip()
    except OSError:
        return None


def _start(path: str) -> bytes:
    try:
        with open(path, "rb", buffering=0) as file:
            return file.read(FIRST_LINE)
    except OSError:
        # Removed since it was listed.
        return b""
