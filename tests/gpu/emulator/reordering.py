"""Run random certified schedules of a workload and compare their outputs with the original's, bit by bit."""

import random
from collections import Counter
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from cuasmrl.binary.cubin import Cubin
from cuasmrl.binary.sass import disassemble
from cuasmrl.checker import Checker
from cuasmrl.gpu.emulator import Emulator
from cuasmrl.schedule import Board, Schedule
from cuasmrl.workloads import BuiltKernel, Config, Workload
from cuasmrl.workloads.model import Sizes
from tests.schedule.campaign import random_move

_MOVES = 60
_DISASSEMBLED = 50
"""Of so many variants one is executed from its own bytes, disassembled anew."""


@dataclass
class Tally:
    variants: int = 0
    displaced: int = 0
    """Instructions that stand elsewhere than in the original, over all variants."""
    moves: Counter[str] = field(default_factory=Counter)


def play(workload: Workload, config: Config, arch: int, sizes: Sizes, variants: int, seed: int) -> Tally:
    built = workload.build(config, arch, sizes)
    cubin = Cubin.parse(built.cubin, f"{workload.name} {config.name}")
    listings = disassemble(cubin)
    listing = listings[built.kernel]
    board, checker = Board(listing), Checker(cubin, listings)
    rng, tally = random.Random(seed), Tally()
    wanted = _outputs(Emulator(cubin, built.kernel, listing=listing), workload, built, sizes, seed)
    for number in range(variants):
        if rng.random() < 0.1:
            board.reset()
        for _ in range(_MOVES):
            if (kind := random_move(board, rng)) is not None:
                tally.moves[kind] += 1
        schedule = board.schedule()
        candidate = schedule.apply(cubin)
        checker.check(candidate)
        arranged = None if number % _DISASSEMBLED == 0 else schedule.arranged()
        emulator = Emulator(Cubin.parse(candidate.data), built.kernel, listing=arranged)
        found = _outputs(emulator, workload, built, sizes, seed)
        for name, value in wanted.items():
            assert np.array_equal(found[name], value), f"{cubin.source}, variant {number}: {name} differs"
        tally.variants += 1
        tally.displaced += _displaced(schedule)
    return tally


def _displaced(schedule: Schedule) -> int:
    return sum(place != index for place, index in enumerate(schedule.order))


def _outputs(
    emulator: Emulator, workload: Workload, built: BuiltKernel, sizes: Sizes, seed: int
) -> dict[str, npt.NDArray[np.uint8]]:
    """The bits of every output buffer after a run on fresh inputs."""
    inputs = workload.inputs(sizes, seed)
    names = workload.reference(inputs, sizes).keys()
    emulator.run(workload.launch(built, inputs, sizes))
    return {name: np.asarray(inputs[name]).view(np.uint8).copy() for name in names}
