"""Are stored results used by what is started from here?"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

from cuasmrl.deploy.doctor.findings import Finding, Level, Surroundings
from cuasmrl.deploy.doctor.installed import chips_of
from cuasmrl.deploy.shim.environment import prepare
from cuasmrl.deploy.shim.folders import home
from cuasmrl.deploy.shim.substitute import cache_tag
from cuasmrl.deploy.shim.tools import TRITON_TOOLS, is_shim, said
from cuasmrl.deploy.store import Store
from cuasmrl.deploy.triton import bootstrap
from cuasmrl.deploy.triton.modes import Mode
from cuasmrl.errors import CuasmrlError

TOPIC = "hooks"
_RUN = "start the program with `cuasmrl run -- PROGRAM`"


def are_active(surroundings: Surroundings) -> bool:
    return any(is_shim(surroundings.get(tool.variable)) for tool in TRITON_TOOLS)


def examine(surroundings: Surroundings, store: Store) -> Iterator[Finding]:
    if mode := surroundings.get(bootstrap.MODE):
        yield _in_process(mode, surroundings)
    if are_active(surroundings):
        yield from _active(surroundings, store)
    else:
        yield from _possible(surroundings, store)


def _in_process(mode: str, surroundings: Surroundings) -> Finding:
    places = surroundings.get("PYTHONPATH").split(":")
    if bootstrap.SITE in places:
        return Finding(
            TOPIC, "Triton in-process", Level.OK, f"every Python process that imports Triton: {mode}"
        )
    return Finding(
        TOPIC, "Triton in-process", Level.ACTION,
        f"{bootstrap.MODE} is {mode}, but PYTHONPATH does not hold {bootstrap.SITE}", _RUN,
    )  # fmt: skip


def _active(surroundings: Surroundings, store: Store) -> Iterator[Finding]:
    try:
        tag = cache_tag(store, surroundings.environment)
    except CuasmrlError:
        tag = ""
    for tool in TRITON_TOOLS:
        named = surroundings.get(tool.variable)
        if is_shim(named):
            yield _shim(tool.variable, named, tag, surroundings)
        else:
            yield Finding(
                TOPIC, tool.variable, Level.ACTION,
                f"is {named or 'not set'}, but the other variable of Triton names a shim; kernels for chips "
                f"{chips_of(tool)} are compiled without the store", _RUN,
            )  # fmt: skip
    nvcc = shutil.which("nvcc", path=surroundings.environment.get("PATH"))
    beside = Path(nvcc).parent / "ptxas" if nvcc else None
    if beside and is_shim(beside):
        yield _shim("nvcc on PATH", str(beside), tag, surroundings)
    elif beside:
        yield Finding(
            TOPIC, "nvcc on PATH", Level.NOTE, f"{nvcc} compiles without the store, being before ours",
            "change PATH before `cuasmrl run`, not in it",
        )  # fmt: skip


def _shim(subject: str, shim: str, tag: str, surroundings: Surroundings) -> Finding:
    answer = said(shim, surroundings.environment)
    if "release " not in answer:
        return Finding(TOPIC, subject, Level.ACTION, f"the shim {shim} does not answer", _RUN)
    if tag and f"cuasmrl {tag}" not in answer.splitlines():
        return Finding(
            TOPIC, subject, Level.ACTION, f"the shim {shim} runs ptxas, but does not ask this store",
            f"{_RUN}; if that does not help, delete {Path(shim).parent}",
        )  # fmt: skip
    return Finding(TOPIC, subject, Level.OK, f"the shim answers and asks the store: {shim}")


def _possible(surroundings: Surroundings, store: Store) -> Iterator[Finding]:
    prepared = prepare(home(surroundings.environment), store, Mode.DEPLOY, None, surroundings.environment)
    for sentence in prepared.problems:
        yield Finding(
            TOPIC, "shims", Level.ACTION, sentence, "repair this, or call cuasmrl.install() in the program"
        )
    if not prepared.problems:
        yield Finding(
            TOPIC, "shims", Level.NOTE, "not in use here; they can be made and answer",
            f"to use stored results {_RUN}, or call cuasmrl.install() in it",
        )  # fmt: skip
