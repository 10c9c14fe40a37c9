"""Small workloads with their traces, made once per process, and schedules of them by random legal moves."""

import random
from functools import lru_cache

from cuasmrl import workloads
from cuasmrl.gpu.chips import chip
from cuasmrl.gpu.traced import TracedKernel
from cuasmrl.schedule import Board, Schedule
from cuasmrl.workloads.tracing import trace_workload

_CHOSEN = {
    "softmax": ("w4", {"M": 648, "N": 256}),
    "gemm_leaky_relu": ("m64n64k32_w4_s3", {"M": 128, "N": 128, "K": 256}),
    # Blocks of two warps, and more of them than fit into an SM at once.
    "vector_add": ("b256_w2", {"n": 1 << 20}),
}


@lru_cache
def traced(name: str) -> TracedKernel:
    workload = workloads.get(name)
    config, sizes = _CHOSEN[name]
    return trace_workload(workload, workload.config(config), chip("a100"), sizes)


@lru_cache
def rescheduled(name: str, seed: int = 0, moves: int = 40) -> Schedule:
    board, rng = Board(traced(name).listing), random.Random(seed)
    while moves:
        i = rng.randrange(len(board.code))
        moves -= board.move(i, rng.choice(board.reach(i)))
    return board.schedule()
