"""Workloads of the figures that are matrix products in CUDA: one product in the steps of its optimisation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from cuasmrl.bench.kernels.streams import SOURCES
from cuasmrl.workloads.bounds import EPS16, real, summed
from cuasmrl.workloads.definitions.common import normal, parameters
from cuasmrl.workloads.definitions.gemm import GEMM_LEAKY_RELU
from cuasmrl.workloads.model import Array, Config, Constant, Expected, Grid, Inputs, Sizes, Workload

_SHAPES = ({"M": 128, "N": 256, "K": 128},)
_SIZES = {"M": 1024, "N": 1024, "K": 1024}


@dataclass(frozen=True)
class _Tiles:
    """Compile-time constants of a step, by the names of the source."""

    step: int
    block: tuple[int, int, int]
    thread: tuple[int, int]
    warp: tuple[int, int, int] = (0, 0, 0)
    """Of a warp's rectangle the rows, the columns and the strips across."""

    @property
    def threads(self) -> int:
        return self.block[0] * self.block[1] // (self.thread[0] * self.thread[1] * self._elements)

    @property
    def _elements(self) -> int:
        if not self.warp[0]:
            return 1
        return self.warp[0] * self.warp[1] // (32 * self.thread[0] * self.thread[1])

    @property
    def constants(self) -> dict[str, Constant]:
        names = ("BLOCK_M", "BLOCK_N", "BLOCK_K", "THREAD_M", "THREAD_N", "WARP_M", "WARP_N", "WARP_SUBS_N")
        return {"STEP": self.step, **dict(zip(names, (*self.block, *self.thread, *self.warp), strict=True))}


SGEMM_STEPS = {
    "uncoalesced": _Tiles(0, (32, 32, 32), (1, 1)),
    "coalesced": _Tiles(1, (32, 32, 32), (1, 1)),
    "shared": _Tiles(2, (32, 32, 32), (1, 1)),
    "column": _Tiles(3, (64, 64, 8), (8, 1)),
    "tile": _Tiles(4, (128, 128, 8), (8, 8)),
    "tile64": _Tiles(4, (64, 64, 8), (8, 8)),
    "wide": _Tiles(5, (128, 128, 8), (8, 8)),
    "wide16": _Tiles(5, (128, 128, 16), (8, 8)),
    "warp": _Tiles(6, (128, 128, 16), (8, 4), (64, 64, 4)),
}


def _product_buffers(sizes: Sizes, rng: np.random.Generator) -> dict[str, Array]:
    m, n, k = sizes["M"], sizes["N"], sizes["K"]
    return {
        "a": normal(rng, m, k).astype(np.float32),
        "b": normal(rng, k, n).astype(np.float32),
        "c": np.zeros((m, n), np.float32),
    }


def _product_expect(inputs: Inputs, sizes: Sizes) -> Mapping[str, Expected]:
    a, b = real(inputs["a"]), real(inputs["b"])
    return {"c": Expected(a @ b, summed(sizes["K"], np.abs(a) @ np.abs(b)), "K float32 additions")}


def sgemm(step: str) -> Workload:
    """A product in float32 on CUDA cores."""
    tiles = SGEMM_STEPS[step]
    rows_along_x = step == "uncoalesced"

    def blocks(sizes: Sizes, config: Config) -> Grid:
        down, across = sizes["M"] // tiles.block[0], sizes["N"] // tiles.block[1]
        return (down, across, 1) if rows_along_x else (across, down, 1)

    return Workload(
        name="sgemm_steps",
        title="Matrix product on CUDA cores, fp32",
        language="cuda",
        published=False,
        source=SOURCES / "sgemm_steps.cu",
        symbol="sgemm_steps",
        parameters=parameters("a: *fp32, b: *fp32, c: *fp32, m: i32, n: i32, k: i32"),
        configs=(Config(step, tiles.constants, block=(tiles.threads, 1, 1)),),
        sizes=_SIZES,
        shapes=_SHAPES,
        scalars=lambda sizes: {"m": sizes["M"], "n": sizes["N"], "k": sizes["K"]},
        buffers=_product_buffers,
        expect=_product_expect,
        blocks=blocks,
    )


@dataclass(frozen=True)
class _Tensor:
    """Compile-time constants of a variant, by the names of the source."""

    block: tuple[int, int, int]
    warps: tuple[int, int]
    fragments: int
    layout: int = 0
    asynchronous: int = 0
    stages: int = 1
    late: int = 0
    group: int = 0
    out: str = "half"

    @property
    def shared_bytes(self) -> int:
        row = self.block[2] + (8 if self.layout == 1 else 0)
        return 0 if self.fragments == 0 else 2 * self.stages * (self.block[0] + self.block[1]) * row

    @property
    def constants(self) -> dict[str, Constant]:
        names = ("BLOCK_M", "BLOCK_N", "BLOCK_K", "WARPS_M", "WARPS_N", "FRAGMENTS", "LAYOUT", "ASYNC",
                 "STAGES", "LATE", "GROUP", "OUT")  # fmt: skip
        chosen = (*self.block, *self.warps, self.fragments, self.layout, self.asynchronous, self.stages,
                  self.late, self.group, self.out)  # fmt: skip
        return dict(zip(names, chosen, strict=True))


_LARGE, _SMALL = ((128, 128, 64), (2, 2)), ((64, 64, 32), (2, 4))
TENSOR_VARIANTS = {
    "plain": _Tensor(*_LARGE, 2),
    "copies": _Tensor(*_LARGE, 2, asynchronous=1),
    "padded": _Tensor(*_LARGE, 2, layout=1, asynchronous=1),
    "permuted": _Tensor(*_LARGE, 2, layout=2, asynchronous=1),
    "two_stages": _Tensor(*_LARGE, 3, layout=2, asynchronous=1, stages=2),
    "two_stages_grouped": _Tensor(*_LARGE, 3, layout=2, asynchronous=1, stages=2, group=8),
    "scalar": _Tensor((32, 32, 16), (2, 4), 0, out="float"),
    "scalar_2x2": _Tensor((64, 64, 16), (2, 4), 0, out="float"),
    "small_reloaded": _Tensor(*_SMALL, 1, layout=2, out="float"),
    "small_permuted": _Tensor(*_SMALL, 2, layout=2, out="float"),
    "small_three_stages": _Tensor(*_SMALL, 3, layout=2, asynchronous=1, stages=3, late=1, out="float"),
    "three_stages": _Tensor(
        (128, 128, 32), (2, 4), 3, layout=2, asynchronous=1, stages=3, late=1, out="float"
    ),
}


def tensor_gemm(variant: str) -> Workload:
    """A product of halves on tensor cores."""
    made = TENSOR_VARIANTS[variant]
    out = np.float16 if made.out == "half" else np.float32

    def buffers(sizes: Sizes, rng: np.random.Generator) -> dict[str, Array]:
        m, n, k = sizes["M"], sizes["N"], sizes["K"]
        return {"a": normal(rng, m, k), "b": normal(rng, n * k), "c": np.zeros((m, n), out)}

    def expect(inputs: Inputs, sizes: Sizes) -> Mapping[str, Expected]:
        a, n, k = real(inputs["a"]), sizes["N"], sizes["K"]
        b = real(inputs["b"]).reshape(n, k).T if made.fragments else real(inputs["b"]).reshape(k, n)
        exact, rounding = a @ b, EPS16 if out is np.float16 else 0.0
        error = summed(k, np.abs(a) @ np.abs(b)) + np.abs(exact) * rounding
        return {"c": Expected(exact, error, "K float32 additions and one rounding")}

    def blocks(sizes: Sizes, config: Config) -> Grid:
        down, across = sizes["M"] // made.block[0], sizes["N"] // made.block[1]
        return (down * across, 1, 1) if made.fragments else (across, down, 1)

    threads = 32 * made.warps[0] * made.warps[1]
    config = Config(variant, made.constants, block=(threads, 1, 1), shared_bytes=made.shared_bytes)
    return Workload(
        name="tensor_gemm",
        title="Matrix product on tensor cores, fp16",
        language="cuda",
        published=False,
        source=SOURCES / "tensor_gemm.cu",
        symbol="tensor_gemm",
        parameters=parameters(
            f"a: *fp16, b: *fp16, c: *{'fp16' if out is np.float16 else 'fp32'}, m: i32, n: i32, k: i32"
        ),
        configs=(config,),
        sizes=_SIZES,
        shapes=_SHAPES,
        scalars=lambda sizes: {"m": sizes["M"], "n": sizes["N"], "k": sizes["K"]},
        buffers=buffers,
        expect=expect,
        blocks=blocks,
    )


def triton_gemm(config: Config, *, columns: bool = False) -> Workload:
    """Triton's product of halves with one more config; with B stored by columns if wanted."""

    def scalars(sizes: Sizes) -> Mapping[str, int | float]:
        given = dict(GEMM_LEAKY_RELU.scalars(sizes))
        return {**given, "stride_bk": 1, "stride_bn": sizes["K"]} if columns else given

    return replace(GEMM_LEAKY_RELU, configs=(config,), scalars=scalars)
