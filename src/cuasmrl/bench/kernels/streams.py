"""Workloads of the figures that are memory traffic, or a loop over what has been loaded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from cuasmrl.workloads.bounds import real
from cuasmrl.workloads.definitions.common import ceil_div, kernel_file, parameters
from cuasmrl.workloads.definitions.elementwise import VECTOR_ADD
from cuasmrl.workloads.definitions.normalisation import SOFTMAX, softmax_expect
from cuasmrl.workloads.model import Array, Config, Expected, Inputs, Sizes, Workload

SOURCES = Path(__file__).parent / "sources"

_DRAWN = 1 << 22
"""Elements up to which inputs are random. Time does not depend on values, and pages of zeros that no block
touches take no memory: the arrays of a stream may be larger than that of the machine."""

DTYPES: dict[str, type[np.floating]] = {"fp16": np.float16, "fp32": np.float32, "fp64": np.float64}

_SUMMED: dict[str, tuple[type[np.number], str]] = {
    "fp16": (np.float16, "half"),
    "fp32": (np.float32, "float"),
    "i32": (np.int32, "int"),
}
"""Types of repeated sums, and their names in CUDA."""

OPERATIONS = ("fill", "read", "scale", "triad", "stencil3", "stencil5")

_TWO_RESIDENT = {75: 24 << 10, 80: 60 << 10, 86: 40 << 10, 89: 40 << 10, 90: 80 << 10, 120: 40 << 10}
"""Shared memory with which two blocks fit into an SM, and a third does not."""


def values(rng: np.random.Generator, shape: tuple[int, ...], dtype: type[np.floating]) -> Array:
    if np.prod(shape) > _DRAWN:
        return np.zeros(shape, dtype)
    drawn: Array = rng.standard_normal(shape).astype(dtype)
    return drawn


def stream(operation: str, threads: int, two_resident_on: int | None = None) -> Workload:
    """One element of type double per thread; on an architecture, at most two resident blocks."""
    shared = _TWO_RESIDENT[two_resident_on] if two_resident_on else 0
    return Workload(
        name="stream",
        title="One element of type double per thread",
        language="cuda",
        published=False,
        source=SOURCES / "streams.cu",
        symbol="stream",
        parameters=parameters("out: *fp64, a: *fp64, b: *fp64, c: *fp64, n: i64"),
        configs=(
            Config(
                f"{operation}_b{threads}" + ("_r2" if shared else ""),
                {"OPERATION": OPERATIONS.index(operation)},
                block=(threads, 1, 1),
                shared_bytes=shared,
            ),
        ),
        sizes={"n": 1 << 20},
        shapes=({"n": 1000}, {"n": 1024}),
        scalars=lambda sizes: {"n": sizes["n"]},
        buffers=lambda sizes, rng: {
            name: values(rng, (sizes["n"],), np.float64) for name in ("out", "a", "b", "c")
        },
        expect=_stream_expect(operation),
        blocks=lambda sizes, config: (ceil_div(sizes["n"], config.block_shape[0]), 1, 1),
    )


def _stream_expect(operation: str) -> Callable[[Inputs, Sizes], Mapping[str, Expected]]:
    def expect(inputs: Inputs, sizes: Sizes) -> Mapping[str, Expected]:
        out, a, b, c = (np.array(inputs[name]) for name in ("out", "a", "b", "c"))
        match operation:
            case "fill":
                out[:] = 0.5
            case "scale":
                out = 1.5 * a
            case "triad":
                out = a * b + c
            case "stencil3":
                out[1:-1] = 0.5 * (a[:-2] + a[2:]) - a[1:-1]
            case "stencil5":
                out[2:-2] = 0.25 * (a[:-4] + a[1:-3]) + 0.5 * (a[3:-1] + a[4:]) - a[2:-2]
        return {"out": Expected(out, 1e-14, "a few roundings of float64, some of them joined")}

    return expect


def copy(width: int, threads: int) -> Workload:
    """A copy of floats, so many neighbours per thread."""

    def buffers(sizes: Sizes, rng: np.random.Generator) -> dict[str, Array]:
        shape = (sizes["n"],)
        return {"out": np.zeros(shape, np.float32), "in": values(rng, shape, np.float32)}

    return Workload(
        name="copy",
        title="Copy of floats",
        language="cuda",
        published=False,
        source=SOURCES / "copy.cu",
        symbol="copy",
        parameters=parameters("out: *fp32, in: *fp32, n: i64"),
        configs=(Config(f"v{width}_b{threads}", {"WIDTH": width}, block=(threads, 1, 1)),),
        sizes={"n": 1 << 20},
        shapes=({"n": 8 * width * threads + 3},),
        scalars=lambda sizes: {"n": sizes["n"]},
        buffers=buffers,
        expect=lambda inputs, sizes: {"out": Expected(real(inputs["in"]), 0.0, "a copy")},
        blocks=lambda sizes, config: (ceil_div(sizes["n"], width * threads), 1, 1),
    )


def vector_add(dtype: str, block: int, warps: int) -> Workload:
    """The sum of two vectors in Triton, in this type."""
    kind = DTYPES[dtype]

    def buffers(sizes: Sizes, rng: np.random.Generator) -> dict[str, Array]:
        shape = (sizes["n"],)
        return {
            "x_ptr": values(rng, shape, kind),
            "y_ptr": values(rng, shape, kind),
            "out_ptr": np.zeros(shape, kind),
        }

    def expect(inputs: Inputs, sizes: Sizes) -> Mapping[str, Expected]:
        exact = real(inputs["x_ptr"]) + real(inputs["y_ptr"])
        return {"out_ptr": Expected(exact, np.abs(exact) * np.finfo(kind).eps, "one rounding")}

    return replace(
        VECTOR_ADD,
        title=f"Sum of two vectors, {dtype}",
        parameters=parameters(f"x_ptr: *{dtype}, y_ptr: *{dtype}, out_ptr: *{dtype}, n: i32"),
        configs=(Config(f"{dtype}_b{block}_w{warps}", {"BLOCK": block}, num_warps=warps),),
        buffers=buffers,
        expect=expect,
    )


def softmax(warps: int) -> Workload:
    """Softmax of each row in float32."""

    def buffers(sizes: Sizes, rng: np.random.Generator) -> dict[str, Array]:
        shape = (sizes["M"], sizes["N"])
        return {"out_ptr": np.zeros(shape, np.float32), "x_ptr": values(rng, shape, np.float32)}

    return replace(
        SOFTMAX,
        title="Softmax of each row, fp32",
        parameters=parameters("out_ptr: *fp32, x_ptr: *fp32, stride_out: i32, stride_x: i32, N: i32"),
        configs=(Config(f"fp32_w{warps}", num_warps=warps),),
        buffers=buffers,
        expect=softmax_expect,
    )


def repeated_sum(dtype: str, block: int, warps: int, times: int) -> Workload:
    """Sums of a block, each of which needs the one before.

    In CUDA, because what was measured is the code of Triton in 2023, which goes through shared memory twice
    for each sum; that of today does it once.
    """
    kind, name = _SUMMED[dtype]

    def buffers(sizes: Sizes, rng: np.random.Generator) -> dict[str, Array]:
        x, y = np.zeros(sizes["n"], kind), np.zeros(sizes["n"], kind)
        # Every turn multiplies the sum by the size of the block: it begins with 1.
        x[::block] = 1
        y[::2], y[1::2] = 1, -1
        return {"x_ptr": x, "y_ptr": y, "out_ptr": np.zeros(sizes["n"], kind)}

    def expect(inputs: Inputs, sizes: Sizes) -> Mapping[str, Expected]:
        x, y = (real(inputs[name]).reshape(-1, block) for name in ("x_ptr", "y_ptr"))
        for _ in range(times):
            x = x.sum(axis=1, keepdims=True) + y
        return {"out_ptr": Expected(x.reshape(-1), 0.0, "whole numbers that the type has")}

    return Workload(
        name="repeated_sum",
        title=f"{times} sums over each block, {dtype}",
        language="cuda",
        published=False,
        source=SOURCES / "repeated_sum.cu",
        symbol="repeated_sum",
        parameters=parameters(f"x_ptr: *{dtype}, y_ptr: *{dtype}, out_ptr: *{dtype}, n: i32"),
        configs=(
            Config(
                f"{dtype}_b{block}_w{warps}_x{times}",
                {"ELEMENT": name, "BLOCK": block, "WARPS": warps, "TIMES": times},
                block=(32 * warps, 1, 1),
            ),
        ),
        sizes={"n": 1 << 20},
        shapes=({"n": 2 * block},),
        scalars=lambda sizes: {"n": sizes["n"]},
        buffers=buffers,
        expect=expect,
        blocks=lambda sizes, config: (ceil_div(sizes["n"], block), 1, 1),
    )


def nothing() -> Workload:
    """A kernel without work: what is measured is the launch."""
    return Workload(
        name="nothing",
        title="No work at all",
        language="triton",
        published=False,
        source=kernel_file("loops"),
        symbol="nothing",
        parameters=(),
        configs=(Config("w4", num_warps=4),),
        sizes={"blocks": 1},
        shapes=({"blocks": 1},),
        scalars=lambda sizes: {},
        buffers=lambda sizes, rng: {},
        expect=lambda inputs, sizes: {},
        blocks=lambda sizes, config: (sizes["blocks"], 1, 1),
    )
