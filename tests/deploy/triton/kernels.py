"""Small Triton kernels, and stored results for them."""

# mypy: disable-error-code="no-untyped-def,untyped-decorator,attr-defined,valid-type"
# ruff: noqa: N803

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
import triton
import triton.language as tl

from cuasmrl.binary.cubin import Cubin
from cuasmrl.binary.sass import disassemble_kernel
from cuasmrl.deploy.store import Entry, Store, code_key
from cuasmrl.deploy.store.proof import prove
from cuasmrl.gpu.virtual import wrap
from cuasmrl.schedule import Board

MODELLED = {
    "device": "virtual:a100", "unit": "modelled cycles", "original": 100.0, "optimised": 90.0, "gain": 0.1,
    "interval": [0.05, 0.15],
}  # fmt: skip
GPU = {"name": "NVIDIA A100-SXM4-80GB", "compute_capability": "8.0"}
MEASURED = {**MODELLED, "device": "cuda:0", "unit": "microseconds", "gpu": GPU}
COLUMNS = 300


@triton.jit
def softmax(x, z, columns, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    row = tl.load(x + tl.program_id(0) * columns + i, mask=i < columns, other=float("-inf"))
    powers = tl.exp(row - tl.max(row))
    tl.store(z + tl.program_id(0) * columns + i, powers / tl.sum(powers), mask=i < columns)


@triton.jit
def scale(x, z, factor, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(z + i, tl.load(x + i, mask=i < n) * factor, mask=i < n)


@triton.autotune(
    configs=[triton.Config({"BLOCK": block}, num_warps=2) for block in (64, 128, 256)], key=["n"]
)
@triton.jit
def tuned(x, z, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(z + i, tl.load(x + i, mask=i < n) + 1, mask=i < n)


def forget() -> None:
    """As in a new process."""
    for function in (softmax, scale, tuned.fn):
        function.device_caches.clear()
    tuned.cache.clear()


def compiled(function: Any = softmax) -> Any:
    """The kernel, without a launch."""
    x = wrap(np.zeros(COLUMNS, np.float32))
    if function is scale:
        return scale.run(x, x, 2.0, COLUMNS, BLOCK=512, grid=(1,), warmup=True)
    return softmax.run(x, x, COLUMNS, BLOCK=512, grid=(1,), warmup=True)


def code(cubin: Any) -> str:
    """Of a cubin or a kernel. Triton notes the time of a source file in its cubins, so bytes say too much."""
    return code_key(cubin if isinstance(cubin, bytes) else cubin.asm["cubin"])


def softmax_of(rows: np.ndarray) -> np.ndarray:
    z = np.zeros_like(rows)
    softmax[(len(rows),)](wrap(rows), wrap(z), rows.shape[1], BLOCK=512)
    return z


@lru_cache
def rearranged(cubin: bytes) -> bytes:
    """The same kernel after a few legal moves."""
    read = Cubin.parse(cubin, "a kernel")
    board = Board(disassemble_kernel(read))
    for place in board.legal_swaps()[:3]:
        board.swap(place)
    made: bytes = board.schedule().apply(read).data
    assert made != cubin
    return made


@lru_cache
def proved(cubin: bytes) -> Entry:
    return prove(Entry.of(cubin, rearranged(cubin), MODELLED))


def put_result(store: Store, cubin: bytes, measurement: Mapping[str, Any] = MODELLED) -> Entry:
    """As `Store.put`, which would prove it anew in each test."""
    entry = replace(proved(cubin), measurement=measurement)
    store.keep(entry)
    return entry
