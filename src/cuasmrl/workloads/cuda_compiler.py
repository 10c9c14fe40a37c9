"""Compile CUDA C++ with nvcc: the one from PyPI when installed, else the one on PATH."""

from __future__ import annotations

import functools
import importlib.metadata
import importlib.util
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from cuasmrl.errors import CuasmrlError
from cuasmrl.workloads.model import Constant

INSTALL = "install cuasmrl[cuda], or put the nvcc of a CUDA toolkit (13.0 or later) on PATH."

# One file from each wheel besides nvcc's own.
PARTS = ("nvvm/bin/cicc", "include/crt/host_defines.h", "include/cuda_fp16.h", "include/cccl/nv/target")


@functools.cache
def find_nvcc() -> Path:
    """The compiler driver."""
    namespace = importlib.util.find_spec("nvidia")
    for root in (namespace.submodule_search_locations or []) if namespace else []:
        for candidate in sorted(Path(root).glob("cu*/bin/nvcc"), reverse=True):
            # The compiler, its back end and the headers are wheels of their own: all or none.
            toolkit = candidate.parent.parent
            if all((toolkit / part).exists() for part in PARTS):
                return candidate
    on_path = shutil.which("nvcc")
    if on_path is None:
        raise CuasmrlError(f"This workload is CUDA C++ and nvcc is missing; {INSTALL}")
    return Path(on_path)


@functools.cache
def identity() -> str:
    """Version of nvcc, as it prints it."""
    printed = run([str(find_nvcc()), "--version"]).stdout
    found = re.search(r"V(\d+\.\d+\.\d+)", printed)
    if found is None:
        raise CuasmrlError(f"nvcc does not say its version, so it cannot be used; {INSTALL}")
    return f"nvcc {found[1]}"


def compile_cubin(source: Path, defines: Mapping[str, Constant], arch: int, specific: bool = False) -> bytes:
    """The cubin of one .cu file for a chip; a failure of the compiler becomes one sentence.

    What is `specific` may use what later chips of the same major version do not have: sm_120a, not sm_120.
    """
    options = [f"-D{name}={_define(value)}" for name, value in defines.items()]
    return _compile(source, f"sm_{arch}{'a' if specific else ''}", "cubin", ["-O3", "-lineinfo", *options])


def compile_ptx(source: Path, target: str) -> str:
    """The PTX of one .cu file for a target such as sm_80 or sm_90a, for any ptxas to assemble."""
    return _compile(source, target, "ptx", ["-w"]).decode()


def _compile(source: Path, target: str, kind: str, options: list[str]) -> bytes:
    if shutil.which("g++") is None:
        # nvcc runs the host preprocessor over every file, even when only device code is wanted.
        raise CuasmrlError("nvcc needs a host compiler and g++ is not on PATH; install g++.")
    with tempfile.TemporaryDirectory(prefix="cuasmrl-nvcc-") as directory:
        output = Path(directory) / f"kernel.{kind}"
        command = [str(find_nvcc()), f"-{kind}", f"-arch={target}", "-std=c++17", *options]
        done = run([*command, "-o", str(output), str(source)])
        if done.returncode != 0 or not output.exists():
            raise CuasmrlError(f"nvcc cannot compile {source.name} for {target}: {first_error(done)}")
        return output.read_bytes()


def run(command: list[str]) -> subprocess.CompletedProcess[str]:
    """Run a tool of the toolkit; one that does not start or end becomes one sentence."""
    tool = Path(command[0]).name
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    except OSError as error:
        raise CuasmrlError(f"{tool} cannot be started ({error.strerror}); {INSTALL}") from error
    except subprocess.TimeoutExpired:
        raise CuasmrlError(f"{tool} did not finish within 300 seconds.") from None


def _define(value: Constant) -> str:
    return str(int(value)) if isinstance(value, bool) else str(value)


def first_error(done: subprocess.CompletedProcess[str]) -> str:
    """The line that says what went wrong."""
    lines = [line.strip() for line in (done.stderr or done.stdout).splitlines() if line.strip()]
    errors = [line for line in lines if "error" in line or "fatal" in line]
    return (errors or lines or ["no message"])[0]
