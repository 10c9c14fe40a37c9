"""The folders that stand in for the real tools: shims for Triton, a shadow of a CUDA toolkit for all others.

They stay: a build system remembers where its compiler was. They are small, and made anew when deleted.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping
from importlib import resources
from pathlib import Path

from cuasmrl.deploy.shim import substitute
from cuasmrl.deploy.shim.tools import BASE_FILE, MARK, TRITON_TOOLS, bundled, ptxas_of
from cuasmrl.errors import CuasmrlError


def home(environment: Mapping[str, str] = os.environ) -> Path:
    cache = environment.get("XDG_CACHE_HOME") or Path(environment.get("HOME", "~")).expanduser() / ".cache"
    return Path(cache) / "cuasmrl" / "shims"


def triton_shims(where: Path) -> Path:
    """A folder with a shim for each assembler of Triton."""
    fallbacks = {tool: str(bundled(tool.name) or "") for tool in TRITON_TOOLS}

    def fill(folder: Path, final: Path) -> None:
        for tool, fallback in fallbacks.items():
            own = final / tool.name
            _write_executable(folder / tool.name, script(own, fallback, tool.name, tool.kept))

    return _made(where, "triton", [*fallbacks.values()], fill)


def shadow_toolkit(where: Path, base: Path) -> Path:
    """Links to everything in a toolkit but its ptxas: nvcc looks for it where nvcc itself was called."""
    base = base.resolve()
    real = ptxas_of(base)
    if real is None:
        raise CuasmrlError(f"the CUDA toolkit at {base} has no ptxas in bin; name another one in CUDA_HOME")
    content = sorted(path.name for path in base.iterdir() if path.name != "bin")
    tools = sorted(path.name for path in (base / "bin").iterdir() if path.name != "ptxas")

    def fill(folder: Path, final: Path) -> None:
        (folder / "bin").mkdir()
        for name in content:
            (folder / name).symlink_to(base / name)
        for name in tools:
            (folder / "bin" / name).symlink_to(base / "bin" / name)
        _write_executable(folder / "bin" / "ptxas", script(final / "bin" / "ptxas", str(real)))
        (folder / BASE_FILE).write_text(f"{base}\n", encoding="utf-8")

    return _made(where, "cuda", [str(base), *content, *tools], fill)


def script(own: Path, fallback: str, beside: str = "", kept: str = "") -> str:
    """A shim. `beside` and `kept` are for Triton's: its own tool of that name, and a user's wish."""
    settings = {
        "own": str(own),
        "python": sys.executable,
        "program": substitute.__file__,
        "fallback": fallback,
        "beside": beside,
    }
    lines = [f"{name}={shlex.quote(value)}" for name, value in settings.items()]
    asked = f'asked="${kept}"' if kept else "asked="
    return "\n".join(["#!/bin/sh", MARK, *lines, asked, _body()])


def _body() -> str:
    return resources.files("cuasmrl.deploy.shim").joinpath("ptxas.sh").read_text(encoding="utf-8")


def _made(where: Path, kind: str, determined_by: list[str], fill: Callable[[Path, Path], None]) -> Path:
    """The folder for these contents; it appears complete, by a rename, or it was there."""
    seal = hashlib.sha256("\0".join([sys.executable, substitute.__file__, _body(), *determined_by]).encode())
    final = where / f"{kind}-{seal.hexdigest()[:12]}"
    if final.is_dir():
        return final
    try:
        where.mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(prefix=f"{kind}-", suffix=".partial", dir=where))
        try:
            scratch.chmod(0o755)
            fill(scratch, final)
            scratch.rename(final)
        except OSError:
            shutil.rmtree(scratch, ignore_errors=True)
            # Another process may have been faster.
            if not final.is_dir():
                raise
    except OSError as error:
        raise CuasmrlError(
            f"cannot make the shims in {where}: {error.strerror}; name a writable folder in XDG_CACHE_HOME"
        ) from error
    return final


def _write_executable(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)
