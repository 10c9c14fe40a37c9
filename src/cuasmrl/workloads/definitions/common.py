"""Vocabulary the definitions share."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from cuasmrl.workloads.model import Array, Config, Constant, Parameter

ROOT = Path(__file__).parent.parent

# Triton has no tensor-core path for sm_75: it unrolls a product into scalar multiply-adds. Beyond this many
# per thread the kernels exceed 15,000 instructions, most of them spills.
SM75_UNROLLED = 4096


def kernel_file(name: str) -> Path:
    return ROOT / "kernels" / f"{name}.py"


def cuda_file(name: str) -> Path:
    return ROOT / "cuda" / f"{name}.cu"


def parameters(text: str) -> tuple[Parameter, ...]:
    """Parameters from `name: type` pairs separated by commas, in the order of the source."""
    pairs = (pair.split(":") for pair in text.split(","))
    return tuple(Parameter(name.strip(), type_.strip()) for name, type_ in pairs)


def strides(text: str) -> str:
    """The i32 parameters of these names, in the notation of `parameters`."""
    return ", ".join(f"{name}: i32" for name in text.split())


def ceil_div(a: int, b: int) -> int:
    return -(-a // b)


def tile(
    m: int,
    n: int,
    k: int,
    warps: int,
    stages: int,
    *,
    products: int = 1,
    unsupported: Mapping[int, str] | None = None,
    **more: Constant,
) -> Config:
    """The config of a kernel that computes this many products per tile, named after its numbers."""
    excluded = dict(unsupported or {})
    unrolled = products * m * n * k // (32 * warps)
    if unrolled > SM75_UNROLLED:
        reason = (
            f"Triton would unroll {unrolled} scalar multiply-adds per thread there; choose a smaller tile."
        )
        excluded.setdefault(75, reason)
    constants = {"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": k, **more}
    return Config(f"m{m}n{n}k{k}_w{warps}_s{stages}", constants, warps, stages, unsupported=excluded)


def normal(rng: np.random.Generator, *shape: int, scale: float = 1.0) -> Array:
    """Normal numbers in half precision."""
    return (rng.standard_normal(shape, dtype=np.float32) * np.float32(scale)).astype(np.float16)


def unwritten(shape: tuple[int, ...], dtype: type[np.integer[Any] | np.floating[Any]]) -> Array:
    """An output buffer holding a value no kernel computes, so that an element left out shows."""
    filled: Array = np.empty(shape, dtype=dtype)
    filled.fill(np.iinfo(dtype).min if issubclass(dtype, np.integer) else np.nan)
    return filled
