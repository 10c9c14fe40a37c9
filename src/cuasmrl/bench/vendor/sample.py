"""A seeded sample of the kernels of a folder of cubins."""

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path

from cuasmrl.binary.cubin import WORD_BYTES, Cubin

_TEXT = ".text."
_CUBINS = 8
"""The sample is spread over about so many cubins, where there are so many."""


@dataclass(frozen=True)
class Sample:
    kernels: dict[Path, list[str]]
    """By cubin, in the order in which they were drawn."""
    too_large: int
    """Kernels of the folder that were not candidates."""


def sample(folder: Path, instructions: int, largest: int | None, rng: random.Random) -> Sample:
    """Kernels until the sum of their instructions is reached; none above `largest` instructions."""
    paths = sorted(folder.glob("*.cubin"))
    rng.shuffle(paths)
    too_large = 0
    piles = []
    for path in paths:
        sizes = kernel_sizes(Cubin.load(path))
        candidates = [(name, size) for name, size in sizes.items() if largest is None or size <= largest]
        too_large += len(sizes) - len(candidates)
        rng.shuffle(candidates)
        piles.append([(path, *pile) for pile in _piles(candidates, instructions // _CUBINS)])
    chosen: dict[Path, list[str]] = {}
    drawn = 0
    # One pile of each cubin, then a second one of each, and so on.
    for pile in (pile for turn in zip_longest(*piles) for pile in turn if pile):
        if drawn >= instructions:
            break
        path, names, size = pile
        chosen.setdefault(path, []).extend(names)
        drawn += size
    return Sample(chosen, too_large)


def kernel_sizes(cubin: Cubin) -> dict[str, int]:
    """Instructions of each kernel, from the section table alone."""
    return {
        section.name.removeprefix(_TEXT): section.size // WORD_BYTES
        for section in cubin.sections
        if section.name.startswith(_TEXT) and section.size
    }


def only(cubin: Cubin, names: list[str]) -> Cubin:
    """The same file, of which only these kernels are seen; every byte of the others counts as container."""
    wanted = {_TEXT + name for name in names}
    kept = (s for s in cubin.sections if not s.name.startswith(_TEXT) or s.name in wanted)
    return replace(cubin, sections=tuple(kept))


def _piles(kernels: list[tuple[str, int]], instructions: int) -> Iterator[tuple[list[str], int]]:
    """Kernels in their order, in piles of at least so many instructions but for the last."""
    names: list[str] = []
    total = 0
    for name, size in kernels:
        names.append(name)
        total += size
        if total >= instructions:
            yield names, total
            names, total = [], 0
    if names:
        yield names, total
