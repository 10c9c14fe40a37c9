"""The store: can it be read and written, and what is in it."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from cuasmrl.deploy.doctor.findings import Finding, Level, Surroundings
from cuasmrl.deploy.store import EMPTY, Store
from cuasmrl.deploy.store.allowed import MODELLED, asked_for, is_modelled
from cuasmrl.errors import CuasmrlError

TOPIC = "store"
_MOST_EXAMINED = 200
_LITTLE_SPACE = 50 << 20


def examine(surroundings: Surroundings, store: Store) -> Iterator[Finding]:
    yield _place(Path(store.root))
    try:
        epoch, keys, waiting = store.epoch, store.keys(), store.recorded()
    except CuasmrlError as error:
        yield Finding(TOPIC, "content", Level.ACTION, str(error), "until then compilers work without it")
        return
    if epoch == EMPTY and not keys:
        yield Finding(
            TOPIC, "content", Level.NOTE, "empty: every program compiles as without cuasmrl",
            "put something in with `cuasmrl optimize --store`",
        )  # fmt: skip
    else:
        yield from _entries(surroundings, store, keys, epoch)
    if waiting:
        kernels = sum(len(cubin.kernels) for cubin in waiting)
        yield Finding(
            TOPIC, "recorded", Level.NOTE, f"{kernels} kernels wait to be optimised",
            "cuasmrl optimize --recorded",
        )  # fmt: skip
    aside = len([path for path in Path(store.root, "corrupt").glob("*") if path.suffix != ".reason"])
    if aside:
        yield Finding(
            TOPIC, "damaged", Level.ACTION, f"{aside} damaged entries were set aside in {store.root}/corrupt",
            "read the .reason beside each, optimise those kernels again, and delete the folder",
        )  # fmt: skip


def _place(root: Path) -> Finding:
    there = next(place for place in (root, *root.parents) if place.exists())
    if not os.access(there, os.R_OK | os.X_OK) or not there.is_dir():
        return Finding(
            TOPIC, "place", Level.ACTION, f"{root} cannot be read", "set CUASMRL_STORE to a folder that can"
        )
    if not os.access(there, os.W_OK):
        return Finding(
            TOPIC, "place", Level.NOTE, f"{root} can be read, but not written",
            "results are used; to add some set CUASMRL_STORE to another place",
        )  # fmt: skip
    free = shutil.disk_usage(there).free
    if free < _LITTLE_SPACE:
        return Finding(
            TOPIC, "place", Level.ACTION, f"{root} has only {free >> 20} MB left", "free some space"
        )
    return Finding(TOPIC, "place", Level.OK, f"{root}, readable and writable")


def _entries(surroundings: Surroundings, store: Store, keys: list[str], epoch: str) -> Iterator[Finding]:
    problems: Counter[str] = Counter()
    modelled = 0
    for key in keys[:_MOST_EXAMINED]:
        try:
            entry = store.examined(key)
            modelled += entry is not None and is_modelled(entry.measurement)
        except CuasmrlError as error:
            problems[str(error)] += 1
    some = f" (the first {_MOST_EXAMINED} examined)" if len(keys) > _MOST_EXAMINED else ""
    usable = len(keys) - sum(problems.values())
    yield Finding(
        TOPIC, "content", Level.OK, f"{usable} of {len(keys)} entries can be used{some}, epoch {epoch}"
    )
    if modelled:
        yield _modelled(modelled, surroundings)
    for why, count in problems.most_common():
        yield Finding(
            TOPIC, "content", Level.ACTION, f"{count} cannot be used: {why}", "run `cuasmrl store verify`"
        )


def _modelled(number: int, surroundings: Surroundings) -> Finding:
    text = f"{number} of them: no GPU has measured them"
    if asked_for(surroundings.environment):
        return Finding(TOPIC, "modelled", Level.OK, f"{text}, and the environment allows them")
    return Finding(
        TOPIC, "modelled", Level.NOTE, f"{text}, so compilers do not take them",
        f"measure them with `cuasmrl optimize ... --device cuda:0 --store`; or use them as they are with "
        f"`cuasmrl run --modelled` or {MODELLED}=1",
    )  # fmt: skip
