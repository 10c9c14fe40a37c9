"""What is installed: Python, frameworks and compilers, found without importing any of them."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from importlib import metadata

from cuasmrl import __version__
from cuasmrl.deploy.doctor.findings import Finding, Level
from cuasmrl.deploy.shim.tools import TRITON_TOOLS, TritonTool
from cuasmrl.deploy.triton.compiler import NEWEST, OLDEST, is_known

TOPIC = "installed"
_COVERED = {
    "torch": "torch.compile compiles with Triton",
    "jax": "XLA calls ptxas",
    "tilelang": "calls nvcc",
    "nvidia-cuda-nvcc": "a CUDA toolkit as packages",
}
_IN_PROCESS = {
    "cupy-cuda12x": "NVRTC",
    "cupy-cuda13x": "NVRTC",
    "numba-cuda": "nvJitLink",
    "nvidia-cutlass-dsl": "a library of its own",
}


def version_of(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def chips_of(tool: TritonTool) -> str:
    """For which chips the installed Triton takes it."""
    version = version_of("triton") or ""
    border = 100 if version.startswith(("3.6.", "3.7.", "3.8.")) else 90
    return f"below sm_{border}" if tool is TRITON_TOOLS[0] else f"from sm_{border} on"


def examine() -> Iterator[Finding]:
    yield Finding(TOPIC, "cuasmrl", Level.OK, f"{__version__}, Python {platform.python_version()}")
    yield _triton()
    for package, what in _COVERED.items():
        if version := version_of(package):
            yield Finding(TOPIC, package, Level.OK, f"{version}: {what}")
    for package, what in _IN_PROCESS.items():
        if version := version_of(package):
            yield Finding(
                TOPIC, package, Level.NOTE, f"{version}: compiles inside its process ({what}), without ptxas",
                "its kernels are not covered; optimise their cubins with `cuasmrl optimize FILE.cubin`",
            )  # fmt: skip


def _triton() -> Finding:
    version = version_of("triton")
    if version is None:
        return Finding(
            TOPIC, "triton", Level.NOTE, "not installed", "pip install 'cuasmrl[triton]' to use it"
        )
    if is_known(version):
        return Finding(TOPIC, "triton", Level.OK, version)
    known = f"{OLDEST[0]}.{OLDEST[1]} to {NEWEST[0]}.{NEWEST[1]}"
    return Finding(
        TOPIC, "triton", Level.ACTION, f"{version}, and cuasmrl.install() knows {known}",
        "pip install 'cuasmrl[triton]' for one of these, or start the program with `cuasmrl run`",
    )  # fmt: skip
