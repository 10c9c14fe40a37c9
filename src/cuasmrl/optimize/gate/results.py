"""Do two cubins compute the same? Both are executed on the same inputs and every bit is compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.emulator import DEFAULT_BUDGET, Emulator
from cuasmrl.gpu.launches.launch import Launch, buffer_of
from cuasmrl.optimize.gate.problems import Problem

Array: TypeAlias = npt.NDArray[Any]

_POISON = 0xA5
"""Small and finite as a number of any floating-point type, so sums into a buffer still show differences."""
_MOST_BLOCKS = 6
_LEAST_BUDGET = 10_000


@dataclass(frozen=True)
class Comparison:
    """Of one problem under one seed."""

    problem: str
    blocks: int
    """How many were executed."""
    bytes: int
    """How many were compared."""
    difference: str | None
    """In words, or None where there is none."""
    refused: str | None = None
    """Why the original cannot run this problem, if it cannot."""


def compare_results(original: Emulator, candidate: Emulator, problem: Problem, seed: int) -> Comparison:
    """Execute both, outputs poisoned before, so that a store that is missing shows."""
    launch = problem.launch(seed)
    blocks = _some(launch.blocks)
    buffers = _buffers(launch)
    start = {number: array.copy() for number, array in buffers.items()}
    try:
        run = original.run(launch, blocks)
        # What it writes are its outputs: nobody has to say which they are.
        outputs = [number for number, array in buffers.items() if not _same(array, start[number])]
        plain = {number: array.copy() for number, array in buffers.items()}
        budget = max(_LEAST_BUDGET, run.warp_instructions)
        expected = _poisoned_run(original, launch, blocks, buffers, start, outputs, budget)
    except CuasmrlError as error:
        return Comparison(problem.name, len(blocks), 0, None, str(error))
    if expected is None:
        # A buffer that is read before it is written, such as a lock, cannot hold just anything.
        outputs, expected, budget = [], plain, DEFAULT_BUDGET
    _restore(buffers, start, outputs)
    try:
        candidate.run(launch, blocks, budget)
        difference = _difference(buffers, expected)
    except CuasmrlError as error:
        difference = f"it fails where the original does not: {error}"
    size = sum(array.nbytes for array in buffers.values())
    return Comparison(problem.name, len(blocks), size, difference)


def _poisoned_run(
    original: Emulator,
    launch: Launch,
    blocks: Sequence[int],
    buffers: dict[int, Array],
    start: dict[int, Array],
    outputs: list[int],
    budget: int,
) -> dict[int, Array] | None:
    """What the buffers hold after a run with poisoned outputs; None if the kernel cannot bear that."""
    _restore(buffers, start, outputs)
    try:
        original.run(launch, blocks, budget)
    except CuasmrlError:
        return None
    return {number: array.copy() for number, array in buffers.items()}


def _some(blocks: int) -> list[int]:
    """First, last and some between them, evenly apart."""
    return sorted({round(place) for place in np.linspace(0, blocks - 1, _MOST_BLOCKS)})


def _buffers(launch: Launch) -> dict[int, Array]:
    """By number of the argument; one that is passed twice counts once."""
    found: dict[int, Array] = {}
    for number, argument in enumerate(launch.arguments):
        array = buffer_of(argument)
        if array is not None and array.size and not any(array is known for known in found.values()):
            found[number] = array
    return found


def _restore(buffers: dict[int, Array], start: dict[int, Array], outputs: list[int]) -> None:
    for number, array in buffers.items():
        if number in outputs:
            poison = np.frombuffer(bytes([_POISON]) * array.nbytes, array.dtype)
            np.copyto(array, poison.reshape(array.shape))
        elif array.flags.writeable:
            np.copyto(array, start[number])


def _same(one: Array, other: Array) -> bool:
    """Bit by bit: NaNs equal themselves, and -0 is not 0."""
    return one.tobytes() == other.tobytes()


def _difference(buffers: dict[int, Array], expected: dict[int, Array]) -> str | None:
    for number, array in buffers.items():
        if not _same(array, expected[number]):
            found, wanted = (np.frombuffer(a.tobytes(), np.uint8) for a in (array, expected[number]))
            places = np.flatnonzero(found != wanted)
            return (
                f"argument {number} differs in {len(places)} of {array.nbytes} bytes, "
                f"first in element {int(places[0]) // array.itemsize}"
            )
    return None
