"""Compile a Triton kernel without a GPU, with the assumptions its launcher would make."""

from __future__ import annotations

import importlib
import importlib.metadata
import os
import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from cuasmrl.errors import CuasmrlError
from cuasmrl.workloads.model import SCRATCH as GLOBAL_SCRATCH
from cuasmrl.workloads.model import Constant, Parameter

# Triton appends these to every kernel, how many of them depends on its version; the launcher passes null
# for memory a kernel does not ask for.
SCRATCH = (Parameter(GLOBAL_SCRATCH, "*i8"), Parameter("profile_scratch", "*i8"))

# Settings outside a kernel's source that change the code Triton and its ptxas produce.
SETTINGS = (
    "DISABLE_LLVM_OPT",
    "DISABLE_PTXAS_OPT",
    "PTXAS_OPTIONS",
    "TRITON_DISABLE_LINE_INFO",
    "TRITON_OVERRIDE_ARCH",
    "TRITON_PTXAS_BLACKWELL_PATH",
    "TRITON_PTXAS_PATH",
)

KERNELS = "cuasmrl.workloads.kernels"


@dataclass(frozen=True)
class Compiled:
    cubin: bytes
    kernel: str
    num_warps: int
    shared_bytes: int
    scratch: tuple[Parameter, ...]
    scratch_bytes: int
    """Of global memory that each block wants besides the arguments, for tensor maps."""


def identity() -> str:
    """Triton's version and the settings in force, without importing Triton."""
    try:
        version = importlib.metadata.version("triton")
    except importlib.metadata.PackageNotFoundError:
        raise CuasmrlError(
            "This workload is a Triton kernel and Triton is missing; install cuasmrl[triton]."
        ) from None
    settings = [f"{name}={os.environ[name]}{_stamp(name)}" for name in SETTINGS if os.environ.get(name)]
    return " ".join([f"triton {version}", *settings])


def _stamp(setting: str) -> str:
    # A tool behind an unchanged path may be a new one.
    path = Path(os.environ[setting])
    if not setting.endswith("_PATH") or not path.exists():
        return ""
    return f"@{path.stat().st_size}:{path.stat().st_mtime_ns}"


def compile_cubin(
    source: Path,
    symbol: str,
    *,
    types: Mapping[str, str],
    constants: Mapping[str, Constant],
    divisible: Sequence[str],
    arch: int,
    num_warps: int,
    num_stages: int,
) -> Compiled:
    """The kernel for a chip; a failure of the compiler becomes one sentence."""
    triton = _triton()
    kernel = getattr(importlib.import_module(f"{KERNELS}.{source.stem}"), symbol)
    compiler = importlib.import_module("triton.compiler")
    signature = {name: types.get(name, "constexpr") for name in kernel.arg_names}
    assumed = [name for name, type_ in types.items() if type_.startswith("*") or name in divisible]
    attributes = {(kernel.arg_names.index(name),): [["tt.divisibility", 16]] for name in assumed}
    ast = compiler.ASTSource(kernel, signature, dict(constants), attributes)
    target = importlib.import_module("triton.backends.compiler").GPUTarget("cuda", arch, 32)
    # Multiply-adds are fused by default up to Triton 3.9 and not later; say it, so that all versions agree.
    options = {"num_warps": num_warps, "num_stages": num_stages, "enable_fp_fusion": True}
    try:
        compiled = _without_shared_cache(triton, lambda: triton.compile(ast, target=target, options=options))
    except Exception as error:
        # Triton raises errors of every kind, and here they all mean the same.
        raise CuasmrlError(f"Triton cannot compile {symbol} for sm_{arch}: {_message(error)}") from error
    metadata = compiled.metadata
    if metadata.profile_scratch_size:
        raise CuasmrlError(
            f"{symbol} for sm_{arch} asks for memory to profile into, which a launch here does not provide."
        )
    appended = _count_parameters(compiled.asm["ptx"]) - len(types)
    if not 0 <= appended <= len(SCRATCH):
        raise CuasmrlError(
            f"Triton appended {appended} parameters to {symbol}; this version of it is not known."
        )
    return Compiled(
        compiled.asm["cubin"],
        metadata.name,
        metadata.num_warps,
        metadata.shared,
        SCRATCH[:appended],
        metadata.global_scratch_size,
    )


def _triton() -> ModuleType:
    try:
        return importlib.import_module("triton")
    except ImportError as error:
        raise CuasmrlError(
            f"This workload is a Triton kernel and Triton does not import ({error}); install cuasmrl[triton]."
        ) from None


def _without_shared_cache(triton: ModuleType, compile_: Any) -> Any:
    # Triton's own cache may hold a cubin that a tuning hook has replaced; workloads are the originals.
    with tempfile.TemporaryDirectory(prefix="cuasmrl-triton-") as directory, triton.knobs.cache.scope():
        triton.knobs.cache.dir = directory
        return compile_()


def _count_parameters(ptx: str) -> int:
    entry = re.search(r"\.entry\s+\w+\s*\((.*?)\)", ptx, re.DOTALL)
    return entry[1].count(".param") if entry else 0


def _message(error: BaseException) -> str:
    # Triton quotes its source at each level; only the innermost error says what is wrong.
    while error.__cause__ is not None:
        error = error.__cause__
    text = getattr(error, "error_message", None) or str(error)
    lines = [line.strip() for line in text.splitlines() if line.strip(" ^\t")]
    return f"{type(error).__name__}: {lines[-1] if lines else 'no message'}"
