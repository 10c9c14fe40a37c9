"""What a figure is about: a workload in one config and size, and the bytes and operations it needs."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from cuasmrl.bench.kernels import products, streams
from cuasmrl.errors import CuasmrlError
from cuasmrl.workloads.definitions.attention import FLASH_ATTENTION, FLASH_ATTENTION_CAUSAL, flash_config
from cuasmrl.workloads.definitions.common import tile
from cuasmrl.workloads.definitions.normalisation import LAYERNORM
from cuasmrl.workloads.model import Config, Workload

_WIDTH = {"fp16": 2, "fp32": 4, "i32": 4, "fp64": 8}
_STREAMS = {"fill": 1, "read": 1, "scale": 2, "triad": 4, "stencil3": 2, "stencil5": 2}
"""Arrays that are read or written."""
_TILE = re.compile(r"m(\d+)n(\d+)k(\d+)_w(\d+)_s(\d+)(_t)?")
_FLASH = re.compile(r"m(\d+)n(\d+)_w(\d+)_s(\d+)")
_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True)
class Subject:
    workload: Workload
    config: Config
    sizes: Mapping[str, int]
    moved_bytes: int
    """What has to be read and written once, at least."""
    operations: int
    """Floating-point operations, as publications count them; 0 where they do not."""


def subject_of(kernel: str, config: str, sizes: Mapping[str, int], arch: int) -> Subject:
    """The subject of a row of figures."""
    make = _KERNELS.get(kernel)
    if make is None:
        raise CuasmrlError(f"There is no kernel {kernel!r}; figures are of {', '.join(_KERNELS)}.")
    return make(config, sizes, arch)


def _numbers(text: str) -> list[int]:
    return [int(number) for number in _NUMBER.findall(text)]


def _single(workload: Workload, sizes: Mapping[str, int], moved: int, operations: int = 0) -> Subject:
    return Subject(workload, workload.configs[0], sizes, moved, operations)


def _stream(config: str, sizes: Mapping[str, int], arch: int) -> Subject:
    """`scale_b256`, or `scale_b256_r2` for two resident blocks at most."""
    operation, threads, *resident = config.split("_")
    workload = streams.stream(operation, int(threads[1:]), arch if resident else None)
    return _single(workload, sizes, 8 * _STREAMS[operation] * sizes["n"])


def _copy(config: str, sizes: Mapping[str, int], arch: int) -> Subject:
    """`v4_b256`: four floats per thread."""
    width, threads = _numbers(config)
    return _single(streams.copy(width, threads), sizes, 2 * 4 * sizes["n"])


def _vector_add(config: str, sizes: Mapping[str, int], arch: int) -> Subject:
    dtype = config.split("_", maxsplit=1)[0]
    block, warps = _numbers(config)[1:]
    return _single(streams.vector_add(dtype, block, warps), sizes, 3 * _WIDTH[dtype] * sizes["n"])


def _repeated_sum(config: str, sizes: Mapping[str, int], arch: int) -> Subject:
    dtype = config.split("_", maxsplit=1)[0]
    block, warps, times = _numbers(config)[1:]
    workload = streams.repeated_sum(dtype, block, warps, times)
    return _single(workload, sizes, 3 * _WIDTH[dtype] * sizes["n"], 2 * times * sizes["n"])


def _softmax(config: str, sizes: Mapping[str, int], arch: int) -> Subject:
    return _single(streams.softmax(_numbers(config)[-1]), sizes, 2 * 4 * sizes["M"] * sizes["N"])


def _layernorm(config: str, sizes: Mapping[str, int], arch: int) -> Subject:
    # The rows' parameters are read again and again but move once; publications leave them out.
    workload = replace(LAYERNORM, configs=(Config(config, num_warps=_numbers(config)[-1]),))
    return _single(workload, sizes, 2 * 2 * sizes["M"] * sizes["N"])


def _nothing(config: str, sizes: Mapping[str, int], arch: int) -> Subject:
    return _single(streams.nothing(), sizes, 0)


def _product(workload: Workload, sizes: Mapping[str, int], widths: tuple[int, int, int]) -> Subject:
    m, n, k = sizes["M"], sizes["N"], sizes["K"]
    a, b, c = widths
    return _single(workload, sizes, a * m * k + b * k * n + c * m * n, 2 * m * n * k)


def _sgemm(config: str, sizes: Mapping[str, int], arch: int) -> Subject:
    return _product(products.sgemm(config), sizes, (4, 4, 4))


def _tensor_gemm(config: str, sizes: Mapping[str, int], arch: int) -> Subject:
    out = 2 if products.TENSOR_VARIANTS[config].out == "half" else 4
    return _product(products.tensor_gemm(config), sizes, (2, 2, out))


def _gemm(config: str, sizes: Mapping[str, int], arch: int) -> Subject:
    """`m128n128k32_w4_s3`; with `_t` behind it B is stored by columns."""
    found = _TILE.fullmatch(config)
    if found is None:
        raise CuasmrlError(f"{config!r} is not a tile such as m128n128k32_w4_s3.")
    m, n, k, warps, stages = (int(number) for number in found.groups()[:5])
    workload = products.triton_gemm(tile(m, n, k, warps, stages, GROUP_M=8), columns=bool(found[6]))
    return _product(workload, sizes, (2, 2, 2))


def _attention(config: str, sizes: Mapping[str, int], arch: int, *, causal: bool) -> Subject:
    found = _FLASH.fullmatch(config)
    if found is None:
        raise CuasmrlError(f"{config!r} is not a tile such as m128n64_w4_s3.")
    m, n, warps, stages = (int(number) for number in found.groups())
    workload = replace(
        FLASH_ATTENTION_CAUSAL if causal else FLASH_ATTENTION,
        configs=(flash_config(m, n, warps, stages, causal=causal),),
    )
    elements = sizes["B"] * sizes["H"] * sizes["S"] * sizes["D"]
    operations = 4 * elements * sizes["S"] // (2 if causal else 1)
    return _single(workload, sizes, 4 * 2 * elements, operations)


_KERNELS: dict[str, Callable[[str, Mapping[str, int], int], Subject]] = {
    "stream": _stream,
    "copy": _copy,
    "vector_add": _vector_add,
    "softmax": _softmax,
    "layernorm": _layernorm,
    "repeated_sum": _repeated_sum,
    "nothing": _nothing,
    "sgemm": _sgemm,
    "tensor_gemm": _tensor_gemm,
    "gemm": _gemm,
    "attention": lambda config, sizes, arch: _attention(config, sizes, arch, causal=False),
    "attention_causal": lambda config, sizes, arch: _attention(config, sizes, arch, causal=True),
}
