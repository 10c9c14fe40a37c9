"""From a workload to a compiled kernel, by way of the cache."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from cuasmrl.workloads import cache, cuda_compiler, triton_compiler
from cuasmrl.workloads.chips import check_shared
from cuasmrl.workloads.model import BuiltKernel, Config, Constant, Parameter, Sizes, Workload


@dataclass(frozen=True)
class Specialisation:
    """What the compiler may assume about the arguments."""

    parameters: tuple[Parameter, ...]
    constants: Mapping[str, Constant]
    fixed: Mapping[str, Constant]
    divisible: tuple[str, ...]


def specialise(workload: Workload, config: Config, sizes: Sizes) -> Specialisation:
    """The assumptions a launch of this problem would lead the compiler to make.

    Triton's launcher folds integers equal to 1 and marks multiples of 16, which decides whether
    loads are vectorised; nvcc sees only types.
    """
    constants = workload.constants(sizes, config)
    if workload.language == "cuda":
        return Specialisation(workload.parameters, constants, {}, ())
    scalars = workload.scalars(sizes)
    fixed: dict[str, Constant] = {name: scalars[name] for name in config.fold}
    divisible = []
    for parameter in workload.parameters:
        if parameter.type not in ("i32", "i64") or parameter.name in fixed:
            continue
        value = scalars[parameter.name]
        if value == 1:
            fixed[parameter.name] = value
        elif value % 16 == 0:
            divisible.append(parameter.name)
    remaining = tuple(parameter for parameter in workload.parameters if parameter.name not in fixed)
    return Specialisation(remaining, {**constants, **fixed}, fixed, tuple(divisible))


def build(workload: Workload, config: Config, arch: int, sizes: Sizes) -> BuiltKernel:
    """The cached kernel, or a fresh one that is then cached."""
    special = specialise(workload, config, sizes)
    key = cache_key(workload, config, arch, special)
    built = cache.load(key)
    if built is None:
        built = _compile(workload, config, arch, special)
        check_shared(arch, built.shared_bytes, f"{workload.name} ({config.name})")
        cache.save(key, built)
    return built


def cache_key(workload: Workload, config: Config, arch: int, special: Specialisation) -> str:
    """Digest of all that determines the cubin."""
    compiler = triton_compiler if workload.language == "triton" else cuda_compiler
    return cache.digest(
        {
            "workload": workload.name,
            "config": config.name,
            "source": hashlib.sha256(workload.source.read_bytes()).hexdigest(),
            "symbol": workload.symbol,
            "constants": dict(special.constants),
            "num_warps": config.num_warps,
            "num_stages": config.num_stages,
            "block": config.block_shape,
            "shared": config.shared_bytes,
            "parameters": [(parameter.name, parameter.type) for parameter in special.parameters],
            "divisible": special.divisible,
            "arch": arch,
            "compiler": compiler.identity(),
        }
    )


def _compile(workload: Workload, config: Config, arch: int, special: Specialisation) -> BuiltKernel:
    if workload.language == "cuda":
        defines = dict(special.constants)
        cubin = cuda_compiler.compile_cubin(workload.source, defines, arch)
        return BuiltKernel(
            workload=workload.name,
            config=config.name,
            cubin=cubin,
            kernel=workload.symbol,
            arch=arch,
            block=config.block_shape,
            shared_bytes=config.shared_bytes,
            parameters=special.parameters,
            fixed={},
            divisible=(),
            compiler=cuda_compiler.identity(),
        )
    result = triton_compiler.compile_cubin(
        workload.source,
        workload.symbol,
        types={parameter.name: parameter.type for parameter in special.parameters},
        constants=special.constants,
        divisible=special.divisible,
        arch=arch,
        num_warps=config.num_warps,
        num_stages=config.num_stages,
    )
    return BuiltKernel(
        workload=workload.name,
        config=config.name,
        cubin=result.cubin,
        kernel=result.kernel,
        arch=arch,
        block=(32 * result.num_warps, 1, 1),
        shared_bytes=result.shared_bytes,
        parameters=special.parameters + result.scratch,
        fixed=special.fixed,
        divisible=special.divisible,
        compiler=triton_compiler.identity(),
        scratch_bytes=result.scratch_bytes,
    )
