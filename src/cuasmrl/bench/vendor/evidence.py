"""The distances that a sample of the kernels of every wheel and chip shows."""

from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path

from cuasmrl.bench.vendor.campaign import chosen_wheels, drawn_from
from cuasmrl.bench.vendor.sample import only
from cuasmrl.bench.vendor.unpacking import CUBINS, folder_of, unpack
from cuasmrl.bench.vendor.wheels import title
from cuasmrl.binary.cubin import Cubin
from cuasmrl.binary.cubin.images import Skipped
from cuasmrl.binary.sass import disassemble
from cuasmrl.errors import CuasmrlError
from cuasmrl.schedule.mining import Evidence, Key, Mined, mine_listing
from cuasmrl.workloads import ARCHS


def evidence(
    directory: str | Path,
    instructions: int,
    seed: int,
    progress: Callable[[int, int], None],
    wheels: Collection[str] | None = None,
    archs: Sequence[int] = ARCHS,
    jobs: int = 2,
) -> Mined:
    """Mine about so many instructions of each wheel and chip; the result does not depend on the jobs."""
    root, found = Path(directory), list[Mined]()
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        files = chosen_wheels(root, wheels)
        for future in as_completed([pool.submit(unpack, file, root, tuple(archs)) for file in files]):
            future.result()
        folders = [
            folder
            for file in files
            for arch in archs
            if any((folder := folder_of(root / CUBINS / title(file), arch)).glob("*.cubin"))
        ]
        tasks = [pool.submit(_mine, folder, instructions, seed) for folder in folders]
        for done, task in enumerate(tasks, 1):
            found.append(task.result())
            progress(done, len(tasks))
    merged: dict[Key, Evidence] = defaultdict(Evidence)
    for part in found:
        for key, counted in part.evidence.items():
            merged[key].merge(counted)
    return Mined(
        merged,
        sum(part.cubins for part in found),
        sum(part.instructions for part in found),
        tuple(skipped for part in found for skipped in part.skipped),
    )


def _mine(folder: Path, instructions: int, seed: int) -> Mined:
    """A cubin counts with all kernels that were drawn of it or, if unreadable, not at all."""
    wheel, arch = folder.parent.name, int(folder.name.removeprefix("sm_"))
    counted: dict[Key, Evidence] = defaultdict(Evidence)
    cubins = read = 0
    skipped = []
    drawn = drawn_from(folder, instructions, None, seed, wheel, arch)
    for path, names in drawn.kernels.items():
        try:
            listings = disassemble(only(Cubin.load(path), names), names)
        except CuasmrlError as error:
            skipped.append(Skipped(path, str(error)))
            continue
        cubins += 1
        for name in names:
            mine_listing(listings[name], f"{wheel}/{folder.name}/{path.stem}:{name}", counted)
            read += len(listings[name].instructions)
    return Mined(dict(counted), cubins, read, tuple(skipped))
