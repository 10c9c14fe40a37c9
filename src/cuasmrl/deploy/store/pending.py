"""Kernels that were seen and wait to be optimised: pending/KEY/ with the cubin, its launches and its origin.

Every file is complete from the moment it has its name, and a folder counts from the moment it has its cubin.
So any number of processes may note down the same kernel at once.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cuasmrl.deploy.store.code import code_key, read_code
from cuasmrl.deploy.store.shelf import is_key
from cuasmrl.errors import CuasmrlError

MOST_LAUNCHES = 32
"""Distinct launches kept of one kernel: what to optimise for is clear long before."""
_ATTEMPTS = 20
"""Somebody else may forget a kernel in the middle of its being noted down, even again and again."""
_CUBIN, _ORIGIN, _FORGOTTEN = "original.cubin", "origin.json", ".forgotten-"


@dataclass(frozen=True)
class Recorded:
    key: str
    folder: Path

    @property
    def cubin(self) -> Path:
        return self.folder / _CUBIN

    @property
    def kernels(self) -> tuple[str, ...]:
        """All that the cubin holds; none if it cannot be read any more."""
        try:
            return tuple(read_code(self.cubin.read_bytes()).kernels)
        except (OSError, CuasmrlError):
            return ()

    @property
    def launches(self) -> tuple[Path, ...]:
        """Launch files, the oldest first."""
        found = self.folder.glob("launch-*.json")
        return tuple(sorted(found, key=lambda path: (path.stat().st_mtime_ns, path.name)))

    @property
    def origin(self) -> dict[str, Any]:
        """Who met it and how; empty if nothing readable was noted."""
        try:
            found = json.loads((self.folder / _ORIGIN).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}


def record(
    root: Path, cubin: bytes, launches: Iterable[Mapping[str, Any]], origin: Mapping[str, Any]
) -> Recorded:
    key = code_key(cubin)
    texts = [_json(launch) for launch in launches]
    found = Recorded(key, root / key)
    try:
        for _ in range(_ATTEMPTS):
            # A folder that is moved away while it is being made exists and does not.
            with suppress(FileNotFoundError, FileExistsError):
                _note_down(found, cubin, texts, _json(origin))
                return found
        _note_down(found, cubin, texts, _json(origin))
    except OSError as error:
        raise CuasmrlError(
            f"cannot note a kernel down in {root}: {error.strerror}; free some space or set CUASMRL_STORE"
        ) from error
    return found


def _note_down(recorded: Recorded, cubin: bytes, launches: list[bytes], origin: bytes) -> None:
    recorded.folder.mkdir(parents=True, exist_ok=True)
    _keep(recorded.folder / _ORIGIN, origin)
    for text in launches:
        place = recorded.folder / f"launch-{hashlib.sha256(text).hexdigest()[:16]}.json"
        if len(recorded.launches) < MOST_LAUNCHES:
            _keep(place, text)
    _keep(recorded.cubin, cubin)


def recorded(root: Path) -> list[Recorded]:
    """All that wait, in the order of their keys."""
    try:
        names = sorted(name for name in os.listdir(root) if is_key(name))
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise CuasmrlError(f"cannot read {root}: {error.strerror}") from error
    found = [Recorded(name, root / name) for name in names]
    return [kernel for kernel in found if kernel.cubin.is_file()]


def forget(root: Path, key: str) -> bool:
    """Out of sight by one rename, then removed."""
    gone = root / f"{_FORGOTTEN}{os.getpid()}-{time.monotonic_ns()}"
    try:
        os.rename(root / key, gone)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise CuasmrlError(f"cannot remove {root / key}: {error.strerror}") from error
    # Also what others left behind who died here.
    for folder in root.glob(f"{_FORGOTTEN}*"):
        shutil.rmtree(folder, ignore_errors=True)
    return True


def _json(value: Mapping[str, Any]) -> bytes:
    try:
        return (json.dumps(value, indent=1) + "\n").encode()
    except (TypeError, ValueError) as error:
        raise CuasmrlError(f"launches and origin of a kernel must be JSON: {error}") from error


def _keep(place: Path, content: bytes) -> None:
    """Whole or not at all; what is there stays."""
    if place.exists():
        return
    scratch = place.with_name(f".{place.name}.{os.getpid()}.partial")
    try:
        with scratch.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        scratch.replace(place)
    except BaseException:
        scratch.unlink(missing_ok=True)
        raise
