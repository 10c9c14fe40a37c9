"""The problems that one cubin can run: the one it is optimised for, and others to judge the result by.

A compiler specialises a kernel on some of its arguments (constants, multiples of 16, ones); a cubin may run
any problem for which these assumptions hold, whatever it was compiled for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from cuasmrl.binary.cubin import Kernel
from cuasmrl.gpu.launches import LaunchRecord
from cuasmrl.gpu.launches.launch import Launch
from cuasmrl.workloads import BuiltKernel, Config, Workload
from cuasmrl.workloads.model import Sizes

TRACED_SEED = 0
"""Inputs under which kernels are traced and timed."""
_GRAIN = 16
"""Compilers ask whether a size is a multiple of this; one less of it leaves the last tile ragged."""
_DECLARED = 2


@dataclass(frozen=True)
class Problem:
    """A launch that a cubin can run, with inputs by seed."""

    name: str
    sizes: Sizes
    launch: Callable[[int], Launch] = field(repr=False)


@dataclass(frozen=True)
class Problems:
    main: Problem
    """What the kernel is optimised for."""
    shapes: tuple[Problem, ...] = ()
    """Others, mostly small, on which results are compared."""
    lengths: tuple[Problem, ...] = ()
    """Others of a similar size, on which the gain has to show as well."""


def problems_of_record(record: LaunchRecord, kernel: Kernel) -> Problems:
    """A launch file stands for one problem; its seed may change."""
    sizes = {"blocks": record.grid[0] * record.grid[1] * record.grid[2]}

    def launch(seed: int) -> Launch:
        return replace(record, seed=record.seed + seed).launch(kernel)

    return Problems(Problem(record.source, sizes, launch))


def problems_of_workload(workload: Workload, config: Config, built: BuiltKernel, sizes: Sizes) -> Problems:
    """The problem itself, and those of other sizes that this very cubin can run."""

    def allows(other: Mapping[str, int]) -> bool:
        return _allows(workload, config, built, sizes, other)

    def problem(other: Sizes) -> Problem:
        return Problem(
            " ".join(f"{name}={size}" for name, size in other.items()),
            other,
            lambda seed: workload.launch(built, workload.inputs(other, seed), other),
        )

    declared = [shape for shape in workload.shapes if allows(shape)][:_DECLARED]
    shapes = _distinct([*declared, _smallest(sizes, allows), _ragged(sizes, allows)], sizes)
    lengths = _distinct(filter(allows, _scaled(sizes)), sizes)
    return Problems(problem(sizes), tuple(map(problem, shapes)), tuple(map(problem, lengths)))


def _allows(
    workload: Workload, config: Config, built: BuiltKernel, sizes: Sizes, other: Mapping[str, int]
) -> bool:
    """Does everything hold for other sizes that the compiler assumed for these?"""
    scalars = workload.scalars(other)
    return (
        workload.constants(other, config) == workload.constants(sizes, config)
        and all(scalars.get(name, value) == value for name, value in built.fixed.items())
        and all(int(scalars[name]) % _GRAIN == 0 for name in built.divisible)
    )


def _smallest(sizes: Sizes, allows: Callable[[Mapping[str, int]], bool]) -> dict[str, int]:
    """Every size halved as long as it may be."""
    found = dict(sizes)
    for name in sizes:
        while found[name] > 1 and allows({**found, name: found[name] // 2}):
            found[name] //= 2
    return found


def _ragged(sizes: Sizes, allows: Callable[[Mapping[str, int]], bool]) -> dict[str, int]:
    """Every size a little smaller where it may be, so that tiles at the edge are not full."""
    found = dict(sizes)
    for name, size in sizes.items():
        for less in (1, _GRAIN):
            if size > 2 * _GRAIN and allows({**found, name: size - less}):
                found[name] = size - less
                break
    return found


def _scaled(sizes: Sizes) -> Iterable[dict[str, int]]:
    """One size halved, or half as large again."""
    for name, size in sizes.items():
        yield {**sizes, name: max(1, size // 2)}
    for name, size in sizes.items():
        yield {**sizes, name: size + size // 2}


def _distinct(candidates: Iterable[Sizes], but: Sizes) -> list[Sizes]:
    found: list[Sizes] = []
    for sizes in candidates:
        if sizes != but and sizes not in found:
            found.append(sizes)
    return found
