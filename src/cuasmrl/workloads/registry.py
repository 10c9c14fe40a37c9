"""All workloads by name."""

from __future__ import annotations

import difflib
import functools
import importlib
from collections.abc import Iterable, Iterator, Mapping

from cuasmrl.errors import CuasmrlError
from cuasmrl.workloads.chips import ARCHS
from cuasmrl.workloads.model import Config, Sizes, Workload

FAMILIES = (
    "gemm",
    "gemm_narrow",
    "gemm_scheduled",
    "attention",
    "tma",
    "normalisation",
    "elementwise",
    "cuda_memory",
    "cuda_arithmetic",
)


@functools.cache
def _by_name() -> Mapping[str, Workload]:
    modules = (importlib.import_module(f"cuasmrl.workloads.definitions.{family}") for family in FAMILIES)
    return {workload.name: workload for module in modules for workload in module.WORKLOADS}


def names() -> tuple[str, ...]:
    """Names of all workloads, the paper's six first."""
    return tuple(workload.name for workload in all())


def all() -> tuple[Workload, ...]:
    """All workloads, the paper's six first."""
    return tuple(sorted(_by_name().values(), key=lambda workload: not workload.published))


def get(name: str) -> Workload:
    """The workload of this name."""
    found = _by_name().get(name)
    if found is None:
        close = difflib.get_close_matches(name, _by_name(), n=3, cutoff=0.4)
        hint = f"did you mean {', '.join(close)}?" if close else f"choose one of {', '.join(names())}."
        raise CuasmrlError(f"There is no workload {name!r}; {hint}")
    return found


def shape(text: str) -> tuple[Workload, Sizes]:
    """A workload with its sizes: `name`, or `name:large` for its large shape."""
    name, _, size = text.partition(":")
    workload = get(name)
    if size not in ("", "large"):
        raise CuasmrlError(f"There is no shape {text!r}; write {name} or {name}:large.")
    if size and workload.large is None:
        raise CuasmrlError(f"{name} has no large shape; leave out :large.")
    return workload, workload.large if size and workload.large is not None else workload.sizes


def variants(archs: Iterable[int] = ARCHS) -> Iterator[tuple[Workload, Config, int]]:
    """Every combination of workload, config and chip that can be built."""
    for arch in archs:
        for workload in all():
            for config in workload.configs:
                if workload.supports(config, arch) is None:
                    yield workload, config, arch
