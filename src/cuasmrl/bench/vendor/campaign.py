"""A sample of the kernels of every wheel and chip, each examined; an interrupted campaign goes on."""

import random
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import TypeAlias

from cuasmrl.bench.kept import Kept
from cuasmrl.bench.vendor.examination import Depth, Examined, examine
from cuasmrl.bench.vendor.row import Row, row
from cuasmrl.bench.vendor.sample import Sample, only, sample
from cuasmrl.bench.vendor.unpacking import CUBINS, folder_of, skipped_in, unpack
from cuasmrl.bench.vendor.wheels import WHEELS, title
from cuasmrl.binary.cubin import Cubin
from cuasmrl.binary.sass import disassemble
from cuasmrl.checker import VERSION
from cuasmrl.errors import CuasmrlError
from cuasmrl.workloads import ARCHS

Key: TypeAlias = tuple[str, int, str]
"""Wheel, chip, effort."""


@dataclass(frozen=True)
class Effort:
    instructions: int = 12_000
    """Of each wheel and chip, reached by whole kernels."""
    largest: int | None = None
    """Kernels with more instructions are left out, and counted."""
    depth: Depth = field(default_factory=Depth)
    seed: int = 0

    @property
    def name(self) -> str:
        """Rows made with another effort, or by other rules, are other rows."""
        d = self.depth
        return (
            f"{self.instructions} instructions, kernels up to {self.largest or 'any size'}, "
            f"{d.schedules} schedules of {d.tries} tries, {d.seconds:g} s, "
            f"seed {self.seed}, checker {VERSION}"
        )


def campaign(
    directory: str | Path,
    effort: Effort,
    progress: Callable[[int, int], None],
    wheels: Collection[str] | None = None,
    archs: Sequence[int] = ARCHS,
    keep: Path | None = None,
    jobs: int = 2,
) -> list[Row]:
    """Examine the wheels in `directory`/wheels, or those of these names.

    With a file to keep rows in, those in it are not made again. A row does not depend on the number of jobs.
    A wheel without a cubin for a chip has no row for it.
    """
    root = Path(directory)
    files = chosen_wheels(root, wheels)
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        try:
            for future in as_completed([pool.submit(unpack, file, root, tuple(archs)) for file in files]):
                future.result()
            wanted = [
                (title(file), arch, effort.name)
                for file in files
                for arch in archs
                if any(folder_of(root / CUBINS / title(file), arch).glob("*.cubin"))
            ]

            def make(left: list[Key]) -> Iterator[Row]:
                for future in as_completed([pool.submit(_row, root, *key[:2], effort) for key in left]):
                    yield future.result()

            return Kept(Row, keep).complete(wanted, lambda made: made.key, make, progress)
        except BrokenProcessPool:
            raise CuasmrlError(
                "a process of the campaign died, perhaps for lack of memory; try fewer jobs"
            ) from None
        except BaseException:
            # Else the pool would first make all the other rows.
            pool.shutdown(cancel_futures=True)
            raise


def chosen_wheels(root: Path, names: Collection[str] | None) -> list[Path]:
    """Wheels by name, or by name and version."""
    files = sorted((root / WHEELS).glob("*.whl"))
    if not files:
        raise CuasmrlError(
            f"no wheel in {root / WHEELS}; download them with python -m cuasmrl.bench.vendor.download {root}"
        )
    if names is None:
        return files
    spelled = {name.replace("-", "_") for name in names}
    known = {file: {title(file).partition("-")[0], title(file).replace("-", "_")} for file in files}
    if unknown := spelled - set().union(*known.values()):
        there = ", ".join(title(file) for file in files)
        raise CuasmrlError(f"no wheel {', '.join(sorted(unknown))} in {root / WHEELS}; there are {there}")
    return [file for file in files if known[file] & spelled]


def _row(root: Path, wheel: str, arch: int, effort: Effort) -> Row:
    start = time.perf_counter()
    folder = folder_of(root / CUBINS / wheel, arch)
    drawn = drawn_from(folder, effort.instructions, effort.largest, effort.seed, wheel, arch)
    examined: dict[str, list[Examined]] = {}
    failed = []
    for path, names in drawn.kernels.items():
        try:
            examined[path.name] = list(_examine(path, names, effort, wheel))
        except CuasmrlError as error:
            failed.append(str(error))
    seconds = time.perf_counter() - start
    return row(wheel, arch, effort.name, examined, failed, drawn.too_large, skipped_in(folder), seconds)


def _examine(path: Path, names: list[str], effort: Effort, wheel: str) -> Iterator[Examined]:
    cubin = only(Cubin.load(path), names)
    listings = disassemble(cubin, names)
    for name in names:
        rng = _rng(effort.seed, wheel, cubin.arch, path.name, name)
        yield examine(only(cubin, [name]), listings[name], effort.depth, rng)


def drawn_from(
    folder: Path, instructions: int, largest: int | None, seed: int, wheel: str, arch: int
) -> Sample:
    """The sample of a wheel and chip."""
    return sample(folder, instructions, largest, _rng(seed, wheel, arch))


def _rng(*of: object) -> random.Random:
    return random.Random(" ".join(str(each) for each in of))
