"""Which ptxas and which CUDA toolkit a program would use, were we not there."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

MARK = "# A shim of ptxas, made by `cuasmrl run`"
BASE_FILE = "shadow-of"
"""In a shadow toolkit: names the toolkit that it stands for."""
XLA_FOLDER = re.compile(r"\s*--xla_gpu_cuda_data_dir=(\S+)")
_RELEASE = re.compile(r"release (\d+\.\d+)")
_HERE = re.compile(r"^#\$ _HERE_=(.+)$", re.MULTILINE)
_SECONDS = 20
_TRITON_BIN = "backends/nvidia/bin"


@dataclass(frozen=True)
class TritonTool:
    """One of the two assemblers that Triton has: the second is for newer chips."""

    name: str
    variable: str
    """Triton takes the file that this names, if it answers `--version`."""
    kept: str
    """Where `cuasmrl run` keeps what the user had put there, for the shim."""


TRITON_TOOLS = (
    TritonTool("ptxas", "TRITON_PTXAS_PATH", "CUASMRL_PTXAS"),
    TritonTool("ptxas-blackwell", "TRITON_PTXAS_BLACKWELL_PATH", "CUASMRL_PTXAS_BLACKWELL"),
)


def is_shim(path: str | Path) -> bool:
    try:
        with open(path, "rb") as file:
            return MARK.encode() in file.read(200)
    except OSError:
        return False


def said(path: str | Path, environment: Mapping[str, str] | None = None) -> str:
    """What a tool prints as its version; empty if it fails."""
    try:
        done = subprocess.run(
            [str(path), "--version"], capture_output=True, timeout=_SECONDS, check=True, env=environment
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.decode(errors="replace")


def release(path: str | Path, environment: Mapping[str, str] | None = None) -> str | None:
    """`13.0`, as Triton reads it; None if the tool does not say it."""
    found = _RELEASE.search(said(path, environment))
    return found[1] if found else None


def asked_of_triton(tool: TritonTool, environment: Mapping[str, str]) -> str:
    """The file the user wants Triton to use, empty for Triton's own; also inside another `cuasmrl run`."""
    asked = environment.get(tool.variable, "")
    if is_shim(asked):
        return environment.get(tool.kept, "")
    # Triton also takes a bare name, which it then looks up.
    return shutil.which(asked, path=environment.get("PATH")) or asked


def bundled(name: str) -> Path | None:
    """A tool of the Triton in this environment, which is not imported: that takes a second."""
    spec = importlib.util.find_spec("triton")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        path = Path(folder) / _TRITON_BIN / name
        if path.exists():
            return path
    return None


def toolkit_on_path(environment: Mapping[str, str]) -> Path | None:
    """The toolkit of the nvcc on PATH, or of a ptxas there without one."""
    search = environment.get("PATH")
    if nvcc := shutil.which("nvcc", path=search):
        return toolkit_of(nvcc)
    if ptxas := shutil.which("ptxas", path=search):
        return original(Path(ptxas).resolve().parent.parent)
    return None


def toolkit_of(nvcc: str) -> Path:
    """A file of this name may be a script that starts the real one, which says itself where it is."""
    command = [nvcc, "--dryrun", "none.cu"]
    try:
        done = subprocess.run(command, capture_output=True, timeout=_SECONDS, check=False)
        if found := _HERE.search(done.stderr.decode(errors="replace")):
            return original(Path(found[1]).parent)
    except (OSError, subprocess.SubprocessError):
        pass
    return original(Path(nvcc).resolve().parent.parent)


def toolkit_in_packages() -> Path | None:
    """The newest among the packages of this environment: cu13, or cuda_nvcc of CUDA 12."""
    spec = importlib.util.find_spec("nvidia")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        for inside in ("cu*/bin/ptxas", "cuda_nvcc/bin/ptxas"):
            if found := sorted(Path(folder).glob(inside)):
                return found[-1].parent.parent
    return None


def original(toolkit: Path) -> Path:
    """A toolkit, or the one that a shadow stands for."""
    base = toolkit / BASE_FILE
    return Path(base.read_text(encoding="utf-8").strip()) if base.is_file() else toolkit


def ptxas_of(toolkit: Path) -> Path | None:
    path = toolkit / "bin" / "ptxas"
    return path if path.exists() and not is_shim(path) else None
