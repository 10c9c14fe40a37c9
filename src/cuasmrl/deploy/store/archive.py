"""Entries on their way to another store: a tar file of entry files, the same bytes for the same entries."""

from __future__ import annotations

import io
import os
import tarfile
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cuasmrl.deploy.store.change import changing
from cuasmrl.deploy.store.contract import check_contract
from cuasmrl.deploy.store.entry import Entry
from cuasmrl.deploy.store.packing import OutdatedError, unpack
from cuasmrl.deploy.store.proof import prove
from cuasmrl.deploy.store.shelf import Shelf, is_key
from cuasmrl.errors import CuasmrlError

if TYPE_CHECKING:
    from cuasmrl.deploy.store.store import Store

_LARGEST = 1 << 30


@dataclass(frozen=True)
class Imported:
    added: tuple[str, ...]
    replaced: tuple[str, ...]
    kept: tuple[str, ...]
    """Here already; of these the entries of this store were left as they are."""


def export(store: Store, path: Path | str, keys: Iterable[str] | None = None) -> int:
    target = Path(path)
    chosen = sorted(set(store.keys() if keys is None else keys))
    scratch = target.parent / f"{target.name}.{os.getpid()}.partial"
    count = 0
    try:
        try:
            with tarfile.open(scratch, "w", format=tarfile.USTAR_FORMAT) as archive:
                for key in chosen:
                    data = _exported(store, key, keys is not None)
                    if data is not None:
                        member = tarfile.TarInfo(key)
                        member.size = len(data)
                        archive.addfile(member, io.BytesIO(data))
                        count += 1
            scratch.replace(target)
        except BaseException:
            scratch.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise CuasmrlError(f"cannot write {path}: {error.strerror}; choose a writable place") from error
    return count


def _exported(store: Store, key: str, asked_for: bool) -> bytes | None:
    """As it is stored; what cannot be used is not passed on."""
    data = store.shelf.read(key)
    if data is None or store.find(key) is None:
        if asked_for:
            raise CuasmrlError(f"the store {store.root} has no entry {key[:12]} that could be exported")
        return None
    return data


def import_(
    shelf: Shelf, path: Path | str, replace: bool = False, progress: Callable[[int, int], None] | None = None
) -> Imported:
    proved: dict[str, bytes] = {}
    received = _received(path)
    for number, (key, entry) in enumerate(received.items(), 1):
        proved[key] = _proved(entry, path).packed()
        if progress is not None:
            progress(number, len(received))
    added: list[str] = []
    replaced: list[str] = []
    kept: list[str] = []
    with changing(shelf) as change:
        for key, data in proved.items():
            there = shelf.read(key)
            if there is not None and (there == data or not replace):
                kept.append(key)
            else:
                (added if there is None else replaced).append(key)
                change.put(key, data)
    return Imported(tuple(added), tuple(replaced), tuple(kept))


def _received(path: Path | str) -> dict[str, Entry]:
    found = {}
    try:
        # Nothing is extracted, so a name in it leads nowhere.
        with tarfile.open(path, "r:") as archive:
            for member in archive:
                file = archive.extractfile(member) if member.isfile() else None
                if file is None or not is_key(member.name) or member.size > _LARGEST:
                    raise CuasmrlError(f"{path} holds {member.name!r}, no entry; nothing was imported")
                found[member.name] = _unpacked(file.read(), member.name, path)
    except tarfile.TarError as error:
        raise CuasmrlError(f"{path} is no exported store ({error}); nothing was imported") from error
    except OSError as error:
        raise CuasmrlError(f"cannot read {path}: {error.strerror}; nothing was imported") from error
    return found


def _unpacked(data: bytes, key: str, path: Path | str) -> Entry:
    try:
        packed = unpack(data, key)
        # One of older rules is good enough here: the proof will show what today's say.
        with suppress(OutdatedError):
            check_contract(packed, key)
        return Entry.unpacked(packed)
    except (CuasmrlError, LookupError, TypeError, ValueError) as error:
        raise CuasmrlError(f"{path}, entry {key[:12]}: {error}; nothing was imported") from error


def _proved(entry: Entry, path: Path | str) -> Entry:
    try:
        return prove(entry)
    except CuasmrlError as error:
        raise CuasmrlError(f"{path}: {error}; nothing was imported") from error
