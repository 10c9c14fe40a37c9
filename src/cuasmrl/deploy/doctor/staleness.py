"""Caches of frameworks: do they serve what was compiled before the store had something better?"""

from __future__ import annotations

import getpass
import os
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path

from cuasmrl.deploy.doctor.findings import Finding, Level, Surroundings
from cuasmrl.deploy.doctor.hooks import are_active
from cuasmrl.deploy.shim.caches import CACHES, Cache
from cuasmrl.deploy.shim.substitute import cache_tag
from cuasmrl.deploy.store import EMPTY, Allowed, Store, code_key
from cuasmrl.deploy.store.allowed import asked_for
from cuasmrl.errors import CuasmrlError

TOPIC = "caches"
_MOST_CUBINS = 2000
_MOST_ENTRIES = 200


def examine(surroundings: Surroundings, store: Store) -> Iterator[Finding]:
    try:
        if store.epoch == EMPTY:
            yield Finding(TOPIC, "all", Level.OK, "the store is empty, so nothing is out of date")
            return
        tag = cache_tag(store, surroundings.environment)
    except CuasmrlError:
        return
    keys = _usable(store, Allowed(asked_for(surroundings.environment)))
    yield _triton(surroundings, keys)
    yield from _inductor(surroundings, keys, tag)
    for cache in CACHES:
        if cache.is_folder:
            yield from _folder(cache, surroundings, tag)


def _usable(store: Store, allowed: Allowed) -> set[str]:
    """Keys of results that compilers take here."""
    found = set()
    for key in store.keys()[:_MOST_ENTRIES]:
        # What is wrong with an entry is said where the store is looked at.
        with suppress(CuasmrlError):
            entry = store.examined(key)
            if entry is not None and allowed.refusal(entry.measurement) is None:
                found.add(key)
    return found


def _triton(surroundings: Surroundings, keys: set[str]) -> Finding:
    home = surroundings.get("TRITON_HOME") or str(Path.home())
    folder = Path(surroundings.get("TRITON_CACHE_DIR") or Path(home, ".triton", "cache"))
    count = superseded(folder, keys)
    text = f"{folder}: {count} cubins as compiled, for which the store has better; its keys tell them apart"
    return Finding(
        TOPIC, "Triton", Level.OK, text if count else f"{folder}: nothing that the store has better"
    )


def _inductor(surroundings: Surroundings, keys: set[str], tag: str) -> Iterator[Finding]:
    """Its graphs hold cubins, and its keys say nothing of ptxas."""
    default = Path(tempfile.gettempdir(), f"torchinductor_{getpass.getuser()}")
    folder = Path(surroundings.get("TORCHINDUCTOR_CACHE_DIR") or default)
    count = superseded(folder, keys)
    if not count:
        return
    text = f"{folder}: {count} cubins as compiled, for which the store has better"
    if tag in surroundings.get("TORCH_COMPILE_CACHE_KEY_TAG"):
        yield Finding(
            TOPIC, "torch.compile", Level.OK, f"{text}; TORCH_COMPILE_CACHE_KEY_TAG tells them apart"
        )
    else:
        level = Level.ACTION if are_active(surroundings) else Level.NOTE
        yield Finding(
            TOPIC, "torch.compile", level, text,
            f"start with `cuasmrl run`, set TORCH_COMPILE_CACHE_KEY_TAG={tag}, or delete {folder}",
        )  # fmt: skip


def _folder(cache: Cache, surroundings: Surroundings, tag: str) -> Iterator[Finding]:
    plain = cache.plain(surroundings.environment)
    folder = Path(plain) if plain else None
    if folder is None or not folder.is_dir():
        return
    ours = sorted(path for path in folder.glob("cuasmrl-*") if path.is_dir())
    earlier = [path for path in ours if path.name != f"cuasmrl-{tag}"]
    if any(path not in ours for path in folder.iterdir()):
        tagged = surroundings.get(cache.variable).endswith(f"cuasmrl-{tag}")
        if are_active(surroundings) and not tagged:
            yield Finding(
                TOPIC, cache.framework, Level.ACTION,
                f"{folder} is in use, and its content may be older than the store",
                f"start with `cuasmrl run`, or set {cache.variable}={folder}/cuasmrl-{tag}",
            )  # fmt: skip
        else:
            yield Finding(
                TOPIC, cache.framework, Level.OK,
                f"{folder} was filled without the store; `cuasmrl run` uses a folder of its own in it",
            )  # fmt: skip
    if earlier:
        yield Finding(
            TOPIC, cache.framework, Level.NOTE,
            f"{len(earlier)} folders in {folder} belong to other states of a store",
            f"delete them: rm -r {' '.join(map(str, earlier[:3]))}" + (" ..." if len(earlier) > 3 else ""),
        )  # fmt: skip


def superseded(folder: Path, keys: set[str]) -> int:
    """Cubins in a cache that are the originals of stored ones."""
    found = 0
    for path in islice(_cubins(folder), _MOST_CUBINS):
        try:
            found += code_key(path.read_bytes()) in keys
        except (CuasmrlError, OSError):
            continue
    return found


def _cubins(folder: Path) -> Iterator[Path]:
    for place, _, names in os.walk(folder):
        for name in names:
            if name.endswith(".cubin"):
                yield Path(place, name)
