"""A workload: one kernel with its configurations, inputs, reference, build and launch."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.launches.launch import Argument, Launch
from cuasmrl.workloads.chips import unknown_chip

Array: TypeAlias = npt.NDArray[Any]
Constant: TypeAlias = int | str | bool | float
Sizes: TypeAlias = Mapping[str, int]
Inputs: TypeAlias = Mapping[str, Array | np.generic]
Grid: TypeAlias = tuple[int, int, int]

SCRATCH = "global_scratch"
"""The parameter through which a kernel gets memory of its own."""
SCALARS: Mapping[str, type[np.generic]] = {
    "i32": np.int32,
    "i64": np.int64,
    "u32": np.uint32,
    "fp32": np.float32,
    "fp64": np.float64,
}


@dataclass(frozen=True)
class Config:
    """One way to compile a kernel: what an autotuner would choose between."""

    name: str
    constants: Mapping[str, Constant] = field(default_factory=dict)
    """Triton: `tl.constexpr` arguments. CUDA: -D defines."""
    num_warps: int = 4
    num_stages: int = 1
    block: Grid | None = None
    """CUDA only; a Triton block is always num_warps x 32 threads in x."""
    shared_bytes: int = 0
    """CUDA only: dynamic shared memory of the launch. Triton reports its own."""
    fold: tuple[str, ...] = ()
    """Run-time parameters this config passes as compile-time constants instead."""
    unsupported: Mapping[int, str] = field(default_factory=dict)
    """Chips this config cannot be built for, with the reason as one sentence."""

    @property
    def block_shape(self) -> Grid:
        return self.block or (32 * self.num_warps, 1, 1)


@dataclass(frozen=True)
class Parameter:
    """One entry of the compiled kernel's parameter block."""

    name: str
    type: str
    """A key of SCALARS, or `*` and an element type for a pointer."""

    @property
    def is_pointer(self) -> bool:
        return self.type.startswith("*")

    @property
    def size(self) -> int:
        return 8 if self.is_pointer else np.dtype(SCALARS[self.type]).itemsize


@dataclass(frozen=True, eq=False)
class Expected:
    """What an output buffer must hold after the launch."""

    value: Array
    """The result in exact or float64 arithmetic, in the shape of the buffer."""
    bound: Array | float
    """Largest admissible absolute error, per element or for all; 0 means exact."""
    why: str
    """Where the bound comes from, in one sentence."""

    def failure(self, actual: Array) -> str | None:
        """The worst element beyond its bound, in words, or None when all are within."""
        if actual.shape != self.value.shape:
            return f"has shape {actual.shape} instead of {self.value.shape}"
        if np.issubdtype(self.value.dtype, np.integer):
            distance: Array = np.abs(actual.astype(object) - self.value.astype(object)).astype(np.float64)
        else:
            found = actual.astype(np.float64)
            with np.errstate(invalid="ignore"):
                distance = np.where(found == self.value, 0.0, np.abs(found - self.value))
        allowed = np.broadcast_to(np.asarray(self.bound, dtype=np.float64), distance.shape)
        # A NaN compares false with everything, so ask which elements are good, not which are bad.
        bad = ~(distance <= allowed)
        if not bad.any():
            return None
        excess = np.where(bad, np.nan_to_num(distance - allowed, nan=np.inf), -np.inf)
        where = np.unravel_index(int(np.argmax(excess)), excess.shape)
        return (
            f"differs in {int(bad.sum())} of {bad.size} elements, worst at {tuple(int(i) for i in where)}: "
            f"{actual[where]} instead of {self.value[where]}, allowed error {allowed[where]:.3g} ({self.why})"
        )


@dataclass(frozen=True)
class BuiltKernel:
    """A compiled kernel and what a launch must know about it."""

    workload: str
    config: str
    cubin: bytes = field(repr=False)
    kernel: str
    """Symbol of the entry function."""
    arch: int
    block: Grid
    shared_bytes: int
    parameters: tuple[Parameter, ...]
    """The cubin's parameter list, in order; parameters fixed at compile time are not in it."""
    fixed: Mapping[str, Constant]
    """Run-time parameters the compiler folded, with the value it assumed."""
    divisible: tuple[str, ...]
    """Integer parameters the compiler assumed to be multiples of 16."""
    compiler: str
    """Name and version of what made the cubin."""
    scratch_bytes: int = 0
    """Global memory that each block wants besides the arguments."""

    @property
    def threads(self) -> int:
        return self.block[0] * self.block[1] * self.block[2]

    @property
    def num_warps(self) -> int:
        return -(-self.threads // 32)


def no_constants(sizes: Sizes, config: Config) -> Mapping[str, Constant]:
    return {}


@dataclass(frozen=True, eq=False)
class Workload:
    """A kernel people really run, with everything needed to compile, launch and judge it."""

    name: str
    title: str
    language: Literal["triton", "cuda"]
    published: bool
    """One of the six kernels of the CuAsmRL paper."""
    source: Path
    """File that holds the kernel; its text is part of the cache key."""
    symbol: str
    """Name of the kernel function in the source."""
    parameters: tuple[Parameter, ...]
    """All run-time parameters, as written in the source."""
    configs: tuple[Config, ...]
    sizes: Sizes
    """The problem used by default; for a published workload the published shape."""
    shapes: tuple[Sizes, ...]
    """Further problems, small and ragged, that an emulator runs quickly."""
    scalars: Callable[[Sizes], Mapping[str, int | float]]
    buffers: Callable[[Sizes, np.random.Generator], Mapping[str, Array]]
    expect: Callable[[Inputs, Sizes], Mapping[str, Expected]]
    blocks: Callable[[Sizes, Config], Grid]
    large: Sizes | None = None
    """A problem of the size a large language model poses."""
    derived: Callable[[Sizes, Config], Mapping[str, Constant]] = no_constants
    """Compile-time constants that follow from the problem rather than from the config."""

    def config(self, name: str) -> Config:
        """The configuration of this name."""
        for config in self.configs:
            if config.name == name:
                return config
        names = [config.name for config in self.configs]
        close = difflib.get_close_matches(name, names, n=3, cutoff=0.4) or names
        raise CuasmrlError(f"{self.name} has no config {name!r}; did you mean {', '.join(close)}?")

    def supports(self, config: Config, arch: int) -> str | None:
        """Why this config cannot be built for this chip, or None when it can."""
        return unknown_chip(arch) or config.unsupported.get(arch)

    def constants(self, sizes: Sizes, config: Config) -> dict[str, Constant]:
        """All compile-time constants of this config for this problem."""
        constants = {**config.constants, **self.derived(sizes, config)}
        scalars = self.scalars(sizes)
        constants.update({name: scalars[name] for name in config.fold})
        return constants

    def inputs(self, sizes: Sizes | None = None, seed: int = 0) -> dict[str, Array | np.generic]:
        """All arguments by parameter name, output buffers included; the same for the same seed."""
        sizes = self._complete(sizes)
        values: dict[str, Any] = {**self.scalars(sizes), **self.buffers(sizes, np.random.default_rng(seed))}
        return {
            parameter.name: values[parameter.name]
            if parameter.is_pointer
            else SCALARS[parameter.type](values[parameter.name])
            for parameter in self.parameters
        }

    def reference(self, inputs: Inputs, sizes: Sizes | None = None) -> dict[str, Expected]:
        """What each output buffer must hold after a launch with these inputs."""
        return dict(self.expect(inputs, self._complete(sizes)))

    def grid(self, sizes: Sizes | None, config: Config) -> Grid:
        """Blocks in each dimension."""
        return self.blocks(self._complete(sizes), config)

    def build(self, config: Config, arch: int, sizes: Sizes | None = None) -> BuiltKernel:
        """The kernel compiled for a chip, from the cache when it was compiled before."""
        from cuasmrl.workloads.build import build

        reason = self.supports(config, arch)
        if reason:
            raise CuasmrlError(f"{self.name} ({config.name}) cannot be built for sm_{arch}: {reason}")
        return build(self, config, arch, self._complete(sizes))

    def launch(self, built: BuiltKernel, inputs: Inputs, sizes: Sizes | None = None) -> Launch:
        """The launch of a built kernel on these inputs."""
        for name, value in built.fixed.items():
            if name in inputs and inputs[name] != value:
                raise CuasmrlError(
                    f"{self.name} was built for {name} = {value} but is launched with {inputs[name]}; "
                    "build it again with the sizes of this launch."
                )
        for name in built.divisible:
            if int(inputs[name]) % 16:
                raise CuasmrlError(
                    f"{self.name} was built for {name} a multiple of 16 but is launched with {inputs[name]}; "
                    "build it again with the sizes of this launch."
                )
        grid = self.grid(sizes, self.config(built.config))
        # Compilers may append parameters of their own (Triton: two scratch pointers); unused ones are null.
        given: dict[str, Argument] = dict(inputs)
        if built.scratch_bytes:
            given[SCRATCH] = np.zeros(built.scratch_bytes * grid[0] * grid[1] * grid[2], np.int8)
        arguments = [given.get(parameter.name) for parameter in built.parameters]
        return Launch(grid, built.block, built.shared_bytes, tuple(arguments))

    def _complete(self, sizes: Sizes | None) -> Sizes:
        if sizes is None:
            return self.sizes
        if set(sizes) != set(self.sizes):
            wanted = ", ".join(self.sizes)
            raise CuasmrlError(f"{self.name} is sized by {wanted}, not by {', '.join(sizes) or 'nothing'}.")
        return sizes
