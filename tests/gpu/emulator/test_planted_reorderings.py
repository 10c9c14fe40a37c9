"""Wrong schedules: the emulator sees what most of them break, and the checker lets none of them pass.

Counted with nvcc 13 and Triton's ptxas 12.9:

    chip             planted   other output   fault   nothing   refused by the checker
    sm_80                 31             15       7         9                       31
    sm_90                 40             15      12        13                       40
    sm_120                28             13       6         9                       28
    sm_80, a GEMM         20              4       4        12                       20

Nothing happens where the instruction was not executed, where the result of the wrong one is by chance the
right one (carries into the upper half of an address), and where a barrier and an access have changed places:
the emulator executes the warps of a block together, so a race is not lost.
"""

from collections.abc import Callable

import numpy as np
import pytest

from cuasmrl import workloads
from cuasmrl.binary.cubin import Cubin
from cuasmrl.binary.sass import disassemble
from cuasmrl.gpu.emulator import Emulator
from cuasmrl.gpu.launches.launch import Argument
from tests.gpu.emulator.kernels import Load, launch
from tests.gpu.emulator.planted import Tally, plant

BUDGET = 50_000


def arguments_of(name: str) -> tuple[Argument, ...]:
    rng = np.random.default_rng(0)
    match name:
        case "hashes":
            return rng.integers(0, 1 << 32, 64, np.uint32), np.zeros(64, np.uint32), np.int32(5)
        case "sums":
            return rng.random(128, np.float32), np.zeros(64, np.float32)
        case "staged":
            return rng.integers(0, 1000, 256, np.int32), np.zeros(64, np.int32), np.int32(4)
    return rng.standard_normal((64, 8)).astype(np.float16), np.zeros(128, np.float32)


def runner(name: str) -> Callable[[Emulator], bytes]:
    def run(emulator: Emulator) -> bytes:
        arguments = arguments_of(name)
        emulator.run(launch(arguments, block=32 if name == "tiles" else 64), budget=BUDGET)
        return b"".join(a.tobytes() for a in arguments if isinstance(a, np.ndarray))

    return run


@pytest.mark.parametrize("chip", ["sm_80", "sm_90", "sm_120"])
def test_exchanged_neighbours(load: Load, chip: str) -> None:
    kernels, tally = load("planted", chip), Tally()
    for name, listing in kernels.listings.items():
        plant(kernels.cubin, listing, runner(name), 12, tally)
    print(chip, tally)
    assert tally.planted >= 25
    assert not tally.certified, "\n".join(tally.certified)
    assert tally.seen >= 15, str(tally)


def test_exchanged_neighbours_of_a_matrix_product() -> None:
    """Tensor cores, asynchronous copies, a software pipeline. Much of it is for rows that do not exist."""
    workload = workloads.get("gemm_leaky_relu")
    sizes = workload.shapes[-1]
    built = workload.build(workload.configs[0], 80, sizes)
    cubin = Cubin.parse(built.cubin)

    def run(emulator: Emulator) -> bytes:
        data = workload.inputs(sizes, 0)
        emulator.run(workload.launch(built, data, sizes), budget=BUDGET)
        return b"".join(np.asarray(data[name]).tobytes() for name in workload.reference(data, sizes))

    tally = Tally()
    plant(cubin, disassemble(cubin)[built.kernel], run, 20, tally)
    print("gemm_leaky_relu", tally)
    assert (tally.planted, sum(tally.refused.values())) == (20, 20), str(tally)
    assert tally.seen >= 8, str(tally)
