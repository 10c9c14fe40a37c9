"""Which ptxas and which nvdisasm each framework would use, were it started now."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

from cuasmrl.binary.sass import find_nvdisasm
from cuasmrl.deploy.doctor.findings import Finding, Level, Surroundings
from cuasmrl.deploy.doctor.installed import chips_of, version_of
from cuasmrl.deploy.shim.tools import (
    TRITON_TOOLS,
    XLA_FOLDER,
    TritonTool,
    asked_of_triton,
    bundled,
    is_shim,
    original,
    release,
    toolkit_in_packages,
    toolkit_on_path,
)
from cuasmrl.errors import CuasmrlError

TOPIC = "compilers"
_NEW_FORMAT = 13
"""Cubins of this toolkit and later need an nvdisasm of it."""


def examine(surroundings: Surroundings) -> Iterator[Finding]:
    for tool in TRITON_TOOLS:
        yield from _triton(tool, surroundings)
    yield from _nvcc(surroundings)
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        if surroundings.get(variable):
            yield _home(variable, surroundings)
    if version_of("jax"):
        yield _jax(surroundings)
    if version_of("tilelang"):
        yield _tilelang(surroundings)
    yield from _nvdisasm(surroundings)


def described(ptxas: Path, surroundings: Surroundings) -> str | None:
    """Release and place; behind a shim, those of what it runs."""
    said = release(ptxas, surroundings.environment)
    if said is None:
        return None
    return f"ptxas {said} through the shim {ptxas}" if is_shim(ptxas) else f"ptxas {said} at {ptxas}"


def _triton(tool: TritonTool, surroundings: Surroundings) -> Iterator[Finding]:
    own = bundled(tool.name)
    named = surroundings.get(tool.variable)
    if own is None and not named:
        return
    subject = f"Triton {chips_of(tool)}"
    if named and (text := described(Path(named), surroundings)):
        behind = asked_of_triton(tool, surroundings.environment) or own
        yield Finding(TOPIC, subject, Level.OK, text + (f" for {behind}" if is_shim(named) else ""))
    elif named:
        yield Finding(
            TOPIC, subject, Level.ACTION,
            f"{tool.variable} is {named}, which does not say `release X.Y`, so Triton silently takes its own",
            f"unset {tool.variable}, or name a ptxas that runs",
        )  # fmt: skip
    elif own and (text := described(own, surroundings)):
        yield Finding(TOPIC, subject, Level.OK, text)
    else:
        yield Finding(
            TOPIC, subject, Level.ACTION, f"{own} does not run", "reinstall Triton: pip install -U triton"
        )


def _nvcc(surroundings: Surroundings) -> Iterator[Finding]:
    path = shutil.which("nvcc", path=surroundings.environment.get("PATH"))
    if path is None:
        packages = toolkit_in_packages()
        text = f"not on PATH; `cuasmrl run` puts the one of {packages} there" if packages else "not on PATH"
        yield Finding(TOPIC, "nvcc", Level.NOTE, text, "" if packages else "pip install 'cuasmrl[cuda]'")
        return
    toolkit = toolkit_on_path(surroundings.environment)
    assert toolkit is not None
    shim = Path(path).parent / "ptxas"
    ptxas = shim if is_shim(shim) else toolkit / "bin" / "ptxas"
    found = described(ptxas, surroundings)
    if found is None:
        yield Finding(
            TOPIC, "nvcc", Level.ACTION, f"{path}, whose ptxas {ptxas} does not run",
            "install the toolkit whole, or put another nvcc first on PATH",
        )  # fmt: skip
    else:
        yield Finding(TOPIC, "nvcc", Level.OK, f"{path}, with {found}")


def _home(variable: str, surroundings: Surroundings) -> Finding:
    named = Path(surroundings.get(variable))
    text = described(named / "bin" / "ptxas", surroundings)
    if text is None:
        return Finding(
            TOPIC, variable, Level.ACTION, f"{named} has no ptxas that runs",
            f"unset {variable}, or name a CUDA toolkit",
        )  # fmt: skip
    on_path = toolkit_on_path(surroundings.environment)
    if on_path is not None and on_path.resolve() != original(named).resolve():
        return Finding(
            TOPIC, variable, Level.NOTE, f"{text}; the nvcc on PATH is of another toolkit, {on_path}"
        )
    return Finding(TOPIC, variable, Level.OK, text)


def _jax(surroundings: Surroundings) -> Finding:
    """XLA's own order: its flag, PATH, packages."""
    named = XLA_FOLDER.search(surroundings.get("XLA_FLAGS"))
    on_path = shutil.which("ptxas", path=surroundings.environment.get("PATH"))
    packages = toolkit_in_packages()
    places = [Path(named[1]) / "bin" / "ptxas"] if named else []
    places += [Path(on_path)] if on_path else []
    places += [packages / "bin" / "ptxas"] if packages else []
    for place in places:
        if text := described(place, surroundings):
            return Finding(TOPIC, "JAX", Level.OK, text)
    return Finding(
        TOPIC,
        "JAX",
        Level.ACTION,
        "finds no ptxas that runs",
        "pip install nvidia-cuda-nvcc, or a CUDA toolkit",
    )


def _tilelang(surroundings: Surroundings) -> Finding:
    home = surroundings.get("CUDA_HOME") or surroundings.get("CUDA_PATH")
    toolkit = Path(home) if home else toolkit_on_path(surroundings.environment)
    text = described(toolkit / "bin" / "ptxas", surroundings) if toolkit else None
    if text:
        return Finding(TOPIC, "tilelang", Level.OK, text)
    return Finding(TOPIC, "tilelang", Level.ACTION, "finds no nvcc", "name a CUDA toolkit in CUDA_HOME")


def _nvdisasm(surroundings: Surroundings) -> Iterator[Finding]:
    toolkit = toolkit_on_path(surroundings.environment)
    named = surroundings.get("TRITON_NVDISASM_PATH")
    used = {
        "Triton's nvdisasm": Path(named) if named else bundled("nvdisasm"),
        "nvdisasm of the toolkit": toolkit / "bin" / "nvdisasm" if toolkit else None,
    }
    for subject, path in used.items():
        if path and (version := release(path, surroundings.environment)):
            yield Finding(TOPIC, subject, Level.OK, f"nvdisasm {version} at {path}")
    try:
        tool = find_nvdisasm()
    except CuasmrlError as error:
        yield Finding(TOPIC, "cuasmrl", Level.ACTION, str(error), "pip install -U triton")
        return
    text = f"nvdisasm {tool.version[0]}.{tool.version[1]} at {tool.path}"
    made = release(toolkit / "bin" / "ptxas", surroundings.environment) if toolkit else None
    newest = int((made or "0").partition(".")[0])
    if tool.version[0] < _NEW_FORMAT <= newest:
        yield Finding(
            TOPIC, "cuasmrl", Level.ACTION, f"{text} cannot read what ptxas {made} writes",
            "pip install -U triton, or set CUASMRL_NVDISASM to that of the toolkit",
        )  # fmt: skip
    else:
        yield Finding(TOPIC, "cuasmrl", Level.OK, text)
