"""Compiled files: one cubin for each architecture, kept with the other builds."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from pathlib import Path

from cuasmrl.binary.cubin import Cubin
from cuasmrl.binary.sass import Listing, disassemble
from cuasmrl.errors import CuasmrlError
from cuasmrl.workloads import cache, cuda_compiler
from cuasmrl.workloads.model import BuiltKernel

SOURCES = Path(__file__).parent
_SPECIFIC = ("listings",)
"""Files with instructions that only one architecture has."""


@lru_cache
def missing_compiler() -> str:
    """Why nothing can be compiled here, in a line; empty if it can."""
    try:
        cubin_of("carrier", 86)
    except CuasmrlError as error:
        return f"Compiled kernels are skipped: {error}"
    return ""


def cubin_of(source: str, arch: int) -> Cubin:
    """All kernels of a file for an architecture."""
    found = compiled(source, arch)
    if isinstance(found, str):
        raise CuasmrlError(found)
    return found


@lru_cache
def compiled(source: str, arch: int) -> Cubin | str:
    """The same, or why there is none: what a chip lacks is not tried for each experiment again."""
    try:
        return _compiled(source, arch)
    except CuasmrlError as error:
        return str(error)


def _compiled(source: str, arch: int) -> Cubin:
    path = SOURCES / f"{source}.cu"
    compiler = cuda_compiler.identity()
    text = hashlib.sha256(path.read_bytes()).hexdigest()
    key = cache.digest({"microbenchmarks": source, "source": text, "arch": arch, "compiler": compiler})
    built = cache.load(key)
    if built is None:
        built = BuiltKernel(
            workload=f"microbenchmarks {source}",
            config="",
            cubin=cuda_compiler.compile_cubin(path, {}, arch, source in _SPECIFIC),
            kernel="",
            arch=arch,
            block=(32, 1, 1),
            shared_bytes=0,
            parameters=(),
            fixed={},
            divisible=(),
            compiler=compiler,
        )
        cache.save(key, built)
    return Cubin.parse(built.cubin, f"{source}.cu for sm_{arch}")


@lru_cache
def listings_of(source: str, arch: int) -> dict[str, Listing]:
    return disassemble(cubin_of(source, arch))
