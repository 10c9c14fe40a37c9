"""How the files of a store change: all at once, whatever happens in between.

An entry appears, is replaced and goes by one rename. The epoch is taken away before that and written after,
so a process that dies in between leaves no wrong epoch but none, and who asks works it out. Files and folders
are synchronised in the same order, so that it holds for a machine that dies too. Readers never wait.
"""

from __future__ import annotations

import errno
import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from cuasmrl.checker import VERSION
from cuasmrl.deploy.store.shelf import LAYOUT, Shelf
from cuasmrl.errors import CuasmrlError

PATIENCE = 60.0
"""Seconds to wait for another writer, who needs milliseconds."""
_PAUSE = 0.005


@contextmanager
def changing(shelf: Shelf, patience: float = PATIENCE) -> Iterator[Change]:
    """The sole right to change entries; the kernel takes it back from a process that dies."""
    try:
        _make_folder(shelf.path("scratch"))
        handle = os.open(shelf.path("lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise shelf.unwritable(error) from error
    try:
        _acquire(handle, shelf, patience)
        shelf.check_layout()
        change = Change(shelf)
        change.clear_scratch()
        yield change
        change.settle()
    except OSError as error:
        raise shelf.unwritable(error) from error
    finally:
        os.close(handle)


def set_aside(shelf: Shelf, key: str, data: bytes, why: str) -> str | None:
    """Move a damaged entry out of sight, if it is still the one that was read; says where it is.

    None if that is not possible: it will be found damaged the next time too.
    """
    with suppress(CuasmrlError), changing(shelf, patience=0.0) as change:
        return change.set_aside(key, why) if shelf.read(key) == data else None
    return None


def settled_epoch(shelf: Shelf) -> str:
    """The epoch, also written down if that is possible and nobody is about to do it."""
    with suppress(CuasmrlError), changing(shelf, patience=0.0) as change:
        return change.settle()
    return shelf.worked_out_epoch()


class Change:
    """What the holder of the lock may do. Everything raises OSError."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf
        self._made = 0

    def put(self, key: str, data: bytes) -> None:
        place = self._shelf.place(key)
        folder = os.path.dirname(place)
        if self._shelf.read(key) == data:
            return
        with self._prepared(data) as prepared:
            if not os.path.exists(schema := self._shelf.path("schema")):
                self._write(schema, f"{LAYOUT}\n")
            _make_folder(folder)
            self.unsettle()
            os.replace(prepared, place)
            _synchronise(folder)

    def remove(self, key: str) -> bool:
        """Was there such an entry?"""
        place = self._shelf.place(key)
        if not os.path.exists(place):
            return False
        self.unsettle()
        os.unlink(place)
        _synchronise(os.path.dirname(place))
        return True

    def set_aside(self, key: str, why: str) -> str:
        """Where it is now."""
        old, number = self._shelf.place(key), 1
        while os.path.exists(new := self._shelf.path("corrupt", f"{key}.{number}")):
            number += 1
        _make_folder(os.path.dirname(new))
        self._write(f"{new}.reason", f"{why}\n")
        self.unsettle()
        os.rename(old, new)
        _synchronise(os.path.dirname(new))
        _synchronise(os.path.dirname(old))
        return new

    def unsettle(self) -> None:
        """Take the epoch away; from here on it has to be worked out."""
        with suppress(FileNotFoundError):
            os.unlink(self._shelf.path("epoch"))
            _synchronise(self._shelf.root)

    def settle(self) -> str:
        """The epoch, written down if it was not."""
        epoch = self._shelf.known_epoch()
        if epoch is None:
            epoch = self._shelf.worked_out_epoch()
            # A full disk does no harm here: without the file it is worked out again.
            with suppress(OSError):
                self._write(self._shelf.path("epoch"), f"{VERSION} {epoch}\n")
        return epoch

    def clear_scratch(self) -> None:
        """Whoever wrote there is dead, or this process would not hold the lock."""
        for leftover in os.listdir(self._shelf.path("scratch")):
            os.unlink(self._shelf.path("scratch", leftover))

    def _write(self, place: str, text: str) -> None:
        with self._prepared(text.encode()) as prepared:
            os.replace(prepared, place)
            _synchronise(os.path.dirname(place))

    @contextmanager
    def _prepared(self, data: bytes) -> Iterator[str]:
        """A file with this content, safe on disk, to be moved to its place."""
        self._made += 1
        path = self._shelf.path("scratch", f"{os.getpid()}-{self._made}")
        try:
            with open(path, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            yield path
        except BaseException:
            with suppress(OSError):
                os.unlink(path)
            raise


def _acquire(handle: int, shelf: Shelf, patience: float) -> None:
    until = time.monotonic() + patience
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() >= until:
                raise CuasmrlError(
                    f"another process has held the store {shelf.root} for {patience:.0f} seconds; "
                    "wait for it or end it"
                ) from None
            time.sleep(_PAUSE)
        except OSError as error:
            raise CuasmrlError(
                f"the store {shelf.root} cannot be locked ({error.strerror}); "
                "put it on another file system with CUASMRL_STORE"
            ) from error


def _make_folder(folder: str) -> None:
    """With all above it, each safe on disk."""
    if os.path.isdir(folder):
        return
    above = os.path.dirname(folder)
    _make_folder(above)
    with suppress(FileExistsError):
        os.mkdir(folder)
    # One may be allowed to make folders where one may not look.
    with suppress(PermissionError):
        _synchronise(above)


def _synchronise(folder: str) -> None:
    """Make the names in a folder safe on disk."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    except OSError as error:
        # Some file systems cannot do this for folders, and need not.
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(handle)
