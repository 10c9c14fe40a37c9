"""Results compared: what differs is seen and named, and what only looks odd is not held against anybody."""

import numpy as np

from cuasmrl import workloads
from cuasmrl.binary.cubin import Cubin
from cuasmrl.gpu.emulator import Emulator
from cuasmrl.gpu.launches.launch import Launch
from cuasmrl.optimize.gate import Problem
from cuasmrl.optimize.gate.results import compare_results
from cuasmrl.workloads import BuiltKernel
from tests.conftest import CompileCuda

_COUNTER = """
extern "C" __global__ void step(int *next, float *x) {
    int i = next[threadIdx.x];
    next[threadIdx.x] = (i + 1) % 32;
    x[i] = x[i] * 2.0f + 1.0f;
}
"""


def vector_add(n: int = 5000) -> tuple[BuiltKernel, Problem]:
    workload = workloads.get("vector_add")
    sizes = {"n": n}
    built = workload.build(workload.config("b256_w2"), 80, sizes)
    problem = Problem("n", sizes, lambda seed: workload.launch(built, workload.inputs(sizes, seed), sizes))
    return built, problem


def without_stores(cubin: Cubin) -> Cubin:
    """Every store to global memory made one that no thread executes: the predicate is !PT."""
    (kernel,) = cubin.kernels
    words = list(kernel.words)
    for instruction in Emulator(cubin).listing.instructions:
        if instruction.opcode == "STG":
            word = int.from_bytes(instruction.word, "little")
            words[instruction.index] = (word | 0xF << 12).to_bytes(16, "little")
    return cubin.with_words(kernel, tuple(words), {})


def test_a_kernel_computes_what_it_computes() -> None:
    built, problem = vector_add()
    emulator = Emulator(Cubin.parse(built.cubin))
    found = compare_results(emulator, emulator, problem, seed=3)
    assert (found.difference, found.refused) == (None, None)
    assert (found.blocks, found.bytes) == (6, 3 * 5000 * 2)


def test_a_missing_store_is_seen_though_the_right_values_were_there_before() -> None:
    """Half of the output is right from the start; poison makes sure that it has to be written."""
    built, problem = vector_add(256)
    cubin = Cubin.parse(built.cubin)
    original, candidate = Emulator(cubin), Emulator(Cubin.parse(without_stores(cubin).data))

    def prepared(seed: int) -> Launch:
        launch = problem.launch(seed)
        original.run(launch)
        out = launch.arguments[2]
        assert isinstance(out, np.ndarray)
        out[128:] = 0
        return launch

    found = compare_results(original, candidate, Problem("n", problem.sizes, prepared), seed=0)
    assert found.difference == "argument 2 differs in 512 of 512 bytes, first in element 0"


def test_a_buffer_that_is_read_first_is_not_poisoned(compile_cuda: CompileCuda) -> None:
    cubin = Cubin.parse(compile_cuda(_COUNTER, "sm_80"))

    def launch(seed: int) -> Launch:
        return Launch((1, 1, 1), (32, 1, 1), 0, (np.arange(32, dtype=np.int32), np.ones(32, np.float32)))

    emulator = Emulator(cubin)
    found = compare_results(emulator, emulator, Problem("32", {}, launch), seed=0)
    assert (found.difference, found.refused) == (None, None)
    silent = Emulator(Cubin.parse(without_stores(cubin).data))
    difference = compare_results(emulator, silent, Problem("32", {}, launch), seed=0).difference
    assert difference is not None
    assert difference.startswith("argument 0 differs")


def test_a_problem_that_the_original_cannot_run_is_refused(compile_cuda: CompileCuda) -> None:
    emulator = Emulator(Cubin.parse(compile_cuda(_COUNTER, "sm_80")))
    buffers = np.full(32, 1000, np.int32), np.ones(32, np.float32)
    problem = Problem("far away", {}, lambda seed: Launch((1, 1, 1), (32, 1, 1), 0, buffers))
    found = compare_results(emulator, emulator, problem, seed=0)
    assert found.refused is not None
    assert found.difference is None
