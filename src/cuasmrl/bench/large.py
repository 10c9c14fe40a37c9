"""Kernels of any size, made for this: how the work on a kernel grows with its instructions.

Two shapes of large kernels exist in the wild: one block that was unrolled as a whole, and thousands of small
blocks. Each size is measured in a process of its own, so that its peak of memory is its own as well.
"""

from __future__ import annotations

import multiprocessing
import random
import resource
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from cuasmrl.binary.cubin import Cubin
from cuasmrl.binary.sass import Listing, disassemble_kernel
from cuasmrl.checker import Checker
from cuasmrl.schedule import Board, Scoreboards
from cuasmrl.schedule.lint import lint
from cuasmrl.workloads.cuda_compiler import compile_cubin

ARCH = 80
SIZES = (1000, 5000, 20_000, 50_000)
SECONDS = 600.0
_MOVES, _TRIES = 9, 100


class Shape(StrEnum):
    ONE_BLOCK = "one block"
    MANY_BLOCKS = "many blocks"


_ONE_BLOCK = """
extern "C" __global__ void large(const float* __restrict__ a, const float* __restrict__ b,
                                 float* __restrict__ out) {
  __shared__ float s[1024];
  int t = threadIdx.x, i = blockIdx.x * 1048576 + t;
  float sum = 0.f;
%s
  out[t] = sum;
}
"""
_UNROLLED = """
  {{ float x = a[i + {far}], y = b[i + {far}];
     sum = fmaf(x, y, sum);
     s[(t * 7 + {near}) & 1023] = sum;
     if (x > y) sum += s[(t + {other}) & 1023];
     out[i + {far}] = fmaf(rsqrtf(sum), x, y); }}"""
_MANY_BLOCKS = """
__device__ __noinline__ float helper(float p, float q) {
  for (int i = 0; i < 3; ++i) { p = sqrtf(p * q + 1.f); if (p > 10.f) p -= 9.f / q; }
  return p;
}
extern "C" __global__ void large(const float* __restrict__ a, float* __restrict__ out, int n, int mask) {
  __shared__ float s[256];
  int t = threadIdx.x, i = blockIdx.x * 256 + t;
  float sum = 0.f;
%s
  out[t] = sum;
}
"""
_LOOP = """
  for (int j = 0; j < (n >> {shift}); ++j) {{
    float x = a[(i + j * {step}) & mask];
    if (x > {k}.5f) {{
      sum = fmaf(x, sum, {k}.25f);
      if (sum > 3.f) s[(t + {k}) & 255] = sum; else sum += s[(t * {few} + j) & 255];
    }} else if (j & {few}) {{
      sum = helper(sum, x);
    }} else {{
      #pragma unroll 1
      for (int m = 0; m < t; ++m) sum -= s[(m + {k}) & 255] * x;
      out[(i + {k}) & mask] = sum;
    }}
  }}
  if (sum < 0.f) __syncwarp();"""
_INSTRUCTIONS = {Shape.ONE_BLOCK: 18.3, Shape.MANY_BLOCKS: 68.0}
"""What a compiler makes of one unit of the source."""


def source(shape: Shape, instructions: int) -> str:
    """CUDA C++ that compiles to about so many instructions."""
    units = range(max(1, round(instructions / _INSTRUCTIONS[shape])))
    if shape is Shape.ONE_BLOCK:
        lines = (
            _UNROLLED.format(far=32 * k, near=13 * k % 1024, other=31 * k % 1024).strip("\n") for k in units
        )
        return _ONE_BLOCK % "\n".join(lines)
    loops = (_LOOP.format(k=k, shift=k % 5, step=k + 1, few=k % 7 + 1).strip("\n") for k in units)
    return _MANY_BLOCKS % "\n".join(loops)


def build(shape: Shape, instructions: int, arch: int = ARCH) -> Cubin:
    """A kernel of a shape and about so many instructions."""
    with tempfile.TemporaryDirectory(prefix="cuasmrl-large-") as folder:
        path = Path(folder) / "large.cu"
        path.write_text(source(shape, instructions), encoding="utf-8")
        return Cubin.parse(compile_cubin(path, {}, arch), f"{shape}, {instructions} instructions")


STAGES = ("load", "board", "reassigned", "lint", "check", "swap", "shift")


@dataclass(frozen=True)
class LargeFigures:
    """Seconds of processor time on one kernel; None for what did not come to an end in time."""

    shape: str
    instructions: int
    blocks: int
    load: float | None = None
    """Reading the container, nvdisasm, and the listing."""
    board: float | None = None
    """The board, scoreboards kept."""
    reassigned: float | None = None
    """The board that reassigns scoreboards."""
    lint: float | None = None
    check: float | None = None
    """The checker's analysis of the original, and its check of the original against itself."""
    swap: float | None = None
    """Neighbours exchanged, with the new mask: the median of a few."""
    shift: float | None = None
    """An instruction tried at another position that its dependences allow, its block retimed."""
    megabytes: float | None = None
    """Peak of memory of all that."""

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    def per_instruction(self, stage: str) -> float | None:
        """Microseconds."""
        seconds = getattr(self, stage)
        return None if seconds is None else 1e6 * seconds / self.instructions


def growth(figures: Sequence[LargeFigures], stage: str) -> float | None:
    """Time per instruction of the largest kernel against that of the smallest: 1 is linear."""
    ordered = sorted(figures, key=lambda f: f.instructions)
    first, last = (ordered[end].per_instruction(stage) for end in (0, -1))
    return None if not first or last is None else last / first


def large(
    progress: Callable[[int, int], None], sizes: Sequence[int] = SIZES, seconds: float = SECONDS
) -> list[LargeFigures]:
    """Both shapes at these sizes."""
    jobs = [(shape, size) for shape in Shape for size in sizes]
    figures = []
    for done, (shape, size) in enumerate(jobs, 1):
        figures.append(_measure(shape, build(shape, size), seconds))
        progress(done, len(jobs))
    return figures


def _measure(shape: Shape, cubin: Cubin, seconds: float) -> LargeFigures:
    """In another process, which is ended when the time is over."""
    context = multiprocessing.get_context("spawn")
    results, inbox = context.Pipe(duplex=False)
    with tempfile.TemporaryDirectory(prefix="cuasmrl-large-") as folder:
        path = Path(folder) / "large.cubin"
        cubin.save(path)
        child = context.Process(target=_stages, args=(path, seconds, inbox))
        child.start()
        inbox.close()
        found: dict[str, Any] = {}
        try:
            while True:
                found |= results.recv()
        except EOFError:
            child.join()
    return LargeFigures(shape, **({"instructions": len(cubin.kernel().words), "blocks": 0} | found))


def _stages(path: Path, seconds: float, inbox: Connection) -> None:
    """Send each figure as soon as it is known; the system ends the process when its time is over."""
    _warm_up()
    limit = int(time.process_time() + seconds) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
    name = Cubin.load(path).kernel().name

    def timed(stage: str, action: Callable[[], Any]) -> Any:
        start = _processor_time()
        result = action()
        inbox.send({stage: _processor_time() - start, "megabytes": _peak()})
        return result

    listing: Listing = timed("load", lambda: disassemble_kernel(Cubin.load(path), name))
    board: Board = timed("board", lambda: Board(listing))
    inbox.send({"blocks": len(board.blocks), "swap": _swap(board), "shift": _shift(board)})
    timed("reassigned", lambda: Board(listing, scoreboards=Scoreboards.REASSIGNED))
    timed("lint", lambda: lint(listing))
    cubin = Cubin.load(path)
    timed("check", lambda: Checker(cubin, {name: listing}).check(cubin))


def _warm_up() -> None:
    """Tables are read and functions compiled once, whatever the size: that is not measured."""
    for shape in Shape:
        cubin = build(shape, 1)
        listing = disassemble_kernel(cubin, cubin.kernel().name)
        for how in Scoreboards:
            board = Board(listing, scoreboards=how)
            _swap(board)
            _shift(board)
        Checker(cubin, {cubin.kernel().name: listing}).check(cubin)


def _swap(board: Board) -> float | None:
    """The median of a few; None if no two neighbours may change places."""
    rng, times = random.Random(0), list[float]()
    for _ in range(_MOVES):
        legal = board.legal_swaps()
        if legal:
            p = rng.choice(legal)
            times.append(_timed(lambda: board.swap(p)))  # noqa: B023 - called at once
    return statistics.median(times) if times else None


def _shift(board: Board) -> float | None:
    """The same for instructions that dependences leave another position, whether or not stalls express it."""
    rng, times = random.Random(0), list[float]()
    for _ in range(_TRIES):
        i = rng.randrange(len(board.code))
        others = [to for to in board.span(i) if to != board.position[i]]
        if others and len(times) < _MOVES:
            to = rng.choice(others)
            times.append(_timed(lambda: board.move(i, to)))  # noqa: B023 - called at once
    return statistics.median(times) if times else None


def _timed(action: Callable[[], object]) -> float:
    start = time.process_time()
    action()
    return time.process_time() - start


def _processor_time() -> float:
    """Of this process and of the tools that it has run."""
    tools = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + tools.ru_utime + tools.ru_stime


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
