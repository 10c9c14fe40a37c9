"""The environment in which a program compiles through the shims."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

from cuasmrl.deploy.shim.caches import CACHES
from cuasmrl.deploy.shim.folders import shadow_toolkit, triton_shims
from cuasmrl.deploy.shim.substitute import DEPLOY, MODE, RECORD, cache_tag
from cuasmrl.deploy.shim.tools import (
    TRITON_TOOLS,
    XLA_FOLDER,
    asked_of_triton,
    bundled,
    original,
    ptxas_of,
    release,
    toolkit_in_packages,
    toolkit_of,
    toolkit_on_path,
)
from cuasmrl.deploy.store import LOCATION, Store
from cuasmrl.deploy.store.allowed import asking_for
from cuasmrl.deploy.triton import bootstrap
from cuasmrl.deploy.triton.modes import Mode
from cuasmrl.errors import CuasmrlError

_HOME = "CUDA_HOME"
_USUAL_HOME = Path("/usr/local/cuda")


@dataclass(frozen=True)
class Prepared:
    changes: Mapping[str, str]
    """Variables to set."""
    problems: tuple[str, ...]
    """What will go without us, in sentences."""


def prepare(
    where: Path,
    store: Store,
    mode: Mode,
    chip: str | None = None,
    given: Mapping[str, str] = os.environ,
    modelled: bool = False,
) -> Prepared:
    """Make the shims in `where`, try them, and say what to set for them to be used.

    With a chip Triton gets the virtual GPU. To deploy, the shims suffice; what is launched can be noted down
    only by the process that does it, so for other modes Triton is also told by `bootstrap`. `modelled` allows
    results that no GPU has measured, which `given` may do already.
    """
    changes = {LOCATION: str(store.root), MODE: DEPLOY if mode is Mode.DEPLOY else RECORD}
    changes |= asking_for(True, given) if modelled else {}
    if mode is not Mode.DEPLOY or chip:
        changes |= bootstrap.environment(None if mode is Mode.DEPLOY else mode, store.root, given, chip)
    try:
        tag = cache_tag(store, {**given, **changes})
    except CuasmrlError as error:
        # Nothing can come from such a store, and nothing should look as if it could.
        alone = bootstrap.environment(None, store.root, given, chip) if chip else {}
        return Prepared(alone, (str(error),))
    problems: list[str] = []
    for part in (_triton, _toolkits):
        try:
            changes |= part(where, {**given, **changes}, problems)
        except CuasmrlError as error:
            problems.append(str(error))
    tagged = {kept.variable: kept.tagged(given, tag) for kept in CACHES}
    changes |= {variable: value for variable, value in tagged.items() if value is not None}
    return Prepared(changes, tuple(problems))


def _triton(where: Path, given: Mapping[str, str], problems: list[str]) -> dict[str, str]:
    folder = triton_shims(where)
    changes: dict[str, str] = {}
    for tool in TRITON_TOOLS:
        asked = asked_of_triton(tool, given)
        if asked and release(asked, given) is None:
            problems.append(
                f"{tool.variable} is {asked}, which does not say its release: Triton takes its own"
            )
            asked = ""
        real = asked or bundled(tool.name)
        # Without a Triton of ours there is nothing to try it on; it finds the one that calls it.
        if real is None or _answers(folder / tool.name, real, {**given, tool.kept: asked}, problems):
            changes |= {tool.variable: str(folder / tool.name), tool.kept: asked}
    return changes


def _toolkits(where: Path, given: Mapping[str, str], problems: list[str]) -> dict[str, str]:
    """PATH, CUDA_HOME, CUDACXX and XLA may each name a toolkit of their own."""
    shadow = cache(partial(_shadow, where, given, problems))
    # A toolkit installed as packages is on nobody's PATH, but it is there to be used.
    on_path = toolkit_on_path(given) or toolkit_in_packages()
    changes = {}
    if on_path and (folder := shadow(on_path)):
        rest = [part for part in given.get("PATH", "").split(os.pathsep) if part != f"{folder}/bin"]
        changes["PATH"] = os.pathsep.join([f"{folder}/bin", *rest])
    for variable, base in _named_homes(given, on_path).items():
        if folder := shadow(base):
            changes[variable] = str(folder)
    compiler = given.get("CUDACXX", "")
    # A bare name is looked up on PATH.
    if os.path.isabs(compiler) and (folder := shadow(toolkit_of(compiler))):
        changes["CUDACXX"] = str(folder / "bin" / "nvcc")
    flags = given.get("XLA_FLAGS", "")
    named = XLA_FOLDER.search(flags)
    used_by_xla = original(Path(named[1])) if named else on_path
    if used_by_xla and (folder := shadow(used_by_xla)):
        # In the place of another one: XLA takes the last.
        changes["XLA_FLAGS"] = f"{XLA_FOLDER.sub('', flags)} --xla_gpu_cuda_data_dir={folder}".strip()
    return changes


def _named_homes(given: Mapping[str, str], on_path: Path | None) -> dict[str, Path]:
    homes = {name: original(Path(given[name])) for name in (_HOME, "CUDA_PATH") if given.get(name)}
    # PyTorch and tilelang look there by themselves, so to name it changes nothing for them.
    guess = on_path or _USUAL_HOME
    if not homes and ptxas_of(guess):
        homes[_HOME] = guess
    return homes


def _shadow(where: Path, given: Mapping[str, str], problems: list[str], base: Path) -> Path | None:
    try:
        shadow = shadow_toolkit(where, base)
    except (CuasmrlError, OSError) as error:
        problems.append(str(error))
        return None
    real = ptxas_of(base)
    return shadow if real and _answers(shadow / "bin" / "ptxas", real, given, problems) else None


def _answers(shim: Path, real: str | Path, given: Mapping[str, str], problems: list[str]) -> bool:
    """A shim is used only if it says the release of the ptxas it stands for: Triton goes by it."""
    expected, said = release(real, given), release(shim, given)
    if expected is not None and expected == said:
        return True
    what = f"{real} does not say its release" if expected is None else f"{shim} does not answer for {real}"
    problems.append(f"{what}, so it is called without cuasmrl")
    return False
