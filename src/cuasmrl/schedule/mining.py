"""Learn minimum issue distances from compiler output.

Inside a basic block, the distance of a dependent pair is the sum of stall counts between them. Pairs
across a scoreboard wait or a synchronisation are left out (the wait may have passed the time), and so
are pairs whose guards may exclude each other. A distance counts once several pairs support it: one lucky
pair, whose dependence the compiler knew to be dead, must not set the rule for everybody.
"""

import multiprocessing
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from cuasmrl.binary.cubin import Cubin
from cuasmrl.binary.cubin.images import Image, Skipped, images_below
from cuasmrl.binary.sass import (
    ANY,
    GUARD,
    Access,
    Hazard,
    Instruction,
    Listing,
    Opcode,
    Order,
    Row,
    disassemble,
    distances,
    file_of,
    overwriting_role,
)
from cuasmrl.errors import CuasmrlError
from cuasmrl.schedule.blocks import control_flow
from cuasmrl.schedule.scoreboards import is_read_late

HORIZON = 64
"""Pairs farther apart than this say nothing about a minimum."""
SUPPORT = 6
"""Kernels made to be mined are compiled six times, by three ptxas at two levels: so two pairs at least."""
WITNESSES = 5
"""At one distance, in code of others, before it counts."""

Key = tuple[int, Hazard, str, str, str, str, str]


@dataclass
class Evidence:
    """How often each distance was seen, and where each was seen first."""

    counts: Counter[int] = field(default_factory=Counter)
    places: dict[int, str] = field(default_factory=dict)

    def add(self, distance: int, place: str) -> None:
        self.counts[distance] += 1
        self.places.setdefault(distance, place)

    def merge(self, other: "Evidence") -> None:
        self.counts += other.counts
        self.places = other.places | self.places

    def summary(self, key: Key) -> Row | None:
        """The smallest distance with several witnesses of its own; None if no distance has as many.

        Of the witnesses no more is kept than the folder of one of them: the name of a library.
        """
        often = [distance for distance, count in self.counts.items() if count >= WITNESSES]
        if not often:
            return None
        least = min(often)
        library = self.places[least].partition("/")[0]
        return Row(*key, least, min(self.counts), self.counts.total(), self.counts[least], library)

    def row(self, key: Key) -> Row:
        supported, distance = 0, 0
        for distance in sorted(self.counts):
            supported += self.counts[distance]
            if supported >= SUPPORT:
                break
        return Row(
            *key, distance, min(self.counts), sum(self.counts.values()), supported, self.places[distance]
        )


def below(rows: Iterable[Row]) -> list[tuple[Row, int]]:
    """Rows of a summary for which the shipped table answers less than compilers leave, with its answer."""
    found = []
    for row in rows:
        table = distances(row.arch)
        answer = table.answer(
            row.hazard, row.file, row.producer, row.producer_role, row.consumer, row.consumer_role
        )
        apart = row.hazard is Hazard.SPACING and table.is_no_queue(row.producer)
        if answer is not None and answer < row.distance and not apart:
            found.append((row, answer))
    return found


@dataclass(frozen=True)
class Mined:
    evidence: Mapping[Key, Evidence]
    cubins: int
    instructions: int
    skipped: tuple[Skipped, ...]
    """What could not be read."""

    @property
    def rows(self) -> tuple[Row, ...]:
        return tuple(self.evidence[key].row(key) for key in sorted(self.evidence))

    @property
    def summary(self) -> tuple[Row, ...]:
        """Distances and counts only, for libraries whose code is not ours to show."""
        found = (self.evidence[key].summary(key) for key in sorted(self.evidence))
        return tuple(row for row in found if row is not None)


def mine(directory: str | Path, jobs: int = 2, progress: Callable[[int, int], None] | None = None) -> Mined:
    """Mine all cubins below a directory, those inside fat binaries and libraries too.

    The result does not depend on the number of jobs. A cubin counts whole or, if unreadable, not at all.
    """
    root, skipped = Path(directory), list[Skipped]()
    evidence: dict[Key, Evidence] = defaultdict(Evidence)
    cubins = instructions = 0
    paths = sorted((path for path in root.rglob("*") if path.is_file()), key=lambda path: path.as_posix())
    number = {path: n for n, path in enumerate(paths, 1)}
    with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
        for image, result in _map(pool, images_below(root, skip=skipped.append), jobs, root):
            if isinstance(result, str):
                skipped.append(Skipped(image.source, result))
                continue
            cubins, instructions = cubins + 1, instructions + result[0]
            for key, part in result[1].items():
                evidence[key].merge(part)
            if progress:
                progress(number[image.source], len(paths))
    if not cubins:
        why = f" ({skipped[0]})" if skipped else ""
        raise CuasmrlError(
            f"no cubin that can be read below {directory}{why}; build some with cuasmrl workloads --build DIR"
        )
    return Mined(evidence, cubins, instructions, tuple(skipped))


_Part = tuple[int, dict[Key, "Evidence"]]


def _map(
    pool: Executor, found: Iterable[Image], jobs: int, root: Path
) -> Iterator[tuple[Image, _Part | str]]:
    """Results in the order of the images, of which only a few are held at a time."""
    running: deque[tuple[Image, Future[_Part | str]]] = deque()
    for image in found:
        place = image.source.relative_to(root).with_suffix("").as_posix()
        label = place if image.source.suffix == ".cubin" else f"{place}:{image.name}"
        running.append((image, pool.submit(_mine_image, image.data, label)))
        if len(running) > 4 * jobs:
            first, future = running.popleft()
            yield first, future.result()
    for image, future in running:
        yield image, future.result()


def _mine_image(data: bytes, label: str) -> _Part | str:
    """Instructions and evidence of a cubin, or why there is none."""
    evidence: dict[Key, Evidence] = defaultdict(Evidence)
    try:
        listings = disassemble(Cubin.parse(data, label))
    except CuasmrlError as error:
        return str(error)
    for name, listing in listings.items():
        mine_listing(listing, label if len(listings) == 1 else f"{label}:{name}", evidence)
    return sum(len(listing.instructions) for listing in listings.values()), dict(evidence)


def mine_listing(listing: Listing, place: str, evidence: dict[Key, Evidence]) -> None:
    for block in control_flow(listing):
        code = listing.instructions[block.start : block.end]
        if any(i.declaration is None for i in code) or _is_trap(code):
            continue
        for key, distance, first, second in observations(listing.kernel.arch, code):
            evidence[key].add(distance, f"{place}@{first.address:#x}>{second.address:#x}")


def _is_trap(code: tuple[Instruction, ...]) -> bool:
    """`BRA .` behind the end of a kernel, which no warp reaches: its control bits mean nothing."""
    first = code[0]
    return len(code) == 1 and first.target == first.address and not first.is_conditional


Observation = tuple[Key, int, Instruction, Instruction]


def observations(arch: int, code: tuple[Instruction, ...]) -> Iterator[Observation]:
    """What the code of a block shows: which pair, so many cycles apart, and the two instructions."""
    times, pauses = stall_clock(code)
    writers: dict[int, list[tuple[int, Access]]] = defaultdict(list)
    readers: dict[int, list[tuple[int, Access]]] = defaultdict(list)
    last_in_pipe: dict[str, int] = {}
    raised: dict[int, int] = {}
    guard_set = _guards_set(code)
    for j, consumer in enumerate(code):
        yield _pooled(arch, Hazard.STALL, consumer), consumer.control.stall, consumer, consumer
        for board in consumer.control.waits:
            if board in raised:
                i = raised.pop(board)
                yield _pooled(arch, Hazard.RELEASE, code[i]), times[j] - times[i], code[i], consumer
        if consumer.never_executes:
            continue

        def pairs(hazard: Hazard, table: dict[int, list[tuple[int, Access]]], accesses: Iterable[Access],
                  j: int = j, consumer: Instruction = consumer) -> Iterator[Observation]:  # fmt: skip
            for access in accesses:
                for i, earlier in table[access.register]:
                    producer = code[i]
                    if (
                        times[j] - times[i] <= HORIZON
                        and pauses[j] == pauses[i]
                        and mutually_executed(producer, consumer)
                        and (not producer.is_conditional or guard_set.get(j, -1) < i)
                    ):
                        file = file_of(access.register).value
                        role = access.role
                        if hazard is Hazard.WAR:
                            role = overwriting_role(consumer, role)
                        pair = (producer.timing_key, earlier.role, consumer.timing_key, role)
                        key = (arch, hazard, file, *pair)
                        yield key, times[j] - times[i], producer, consumer

        yield from pairs(Hazard.RAW, writers, consumer.uses)
        yield from pairs(Hazard.WAW, writers, consumer.defs)
        yield from pairs(Hazard.WAR, readers, consumer.defs)
        assert consumer.declaration is not None
        for i, of in _before_in_pipe(j, consumer.declaration, last_in_pipe):
            if pauses[j] == pauses[i]:
                yield _pooled(arch, Hazard.SPACING, code[i], of), times[j] - times[i], code[i], consumer
        raised |= dict.fromkeys(consumer.control.sets, j)
        _record(j, consumer, writers, readers)


def _guards_set(code: tuple[Instruction, ...]) -> dict[int, int]:
    """Who last wrote the guard of each: one and the same guard says nothing if it is written in between."""
    last: dict[int, int] = {}
    found: dict[int, int] = {}
    for j, instruction in enumerate(code):
        if instruction.is_conditional:
            guards = (use.register for use in instruction.uses if use.role == GUARD)
            found[j] = max((last.get(register, -1) for register in guards), default=-1)
        last |= dict.fromkeys((d.register for d in instruction.defs), j)
    return found


def _before_in_pipe(j: int, opcode: Opcode, last: dict[str, int]) -> Iterator[tuple[int, str]]:
    """Who came before in the pipe of an instruction, and who keeps that pipe busy from another one."""
    for channel, of in ((opcode.pipe, ANY), (ANY + opcode.pipe, ANY + opcode.pipe)):
        if channel in last:
            yield last.pop(channel), of
    last[opcode.pipe] = j
    if opcode.shares is not None:
        last[ANY + opcode.shares] = j


def _pooled(arch: int, hazard: Hazard, producer: Instruction, consumer: str = ANY) -> Key:
    return (arch, hazard, "", producer.timing_key, "", consumer, "")


def _record(
    j: int,
    instruction: Instruction,
    writers: dict[int, list[tuple[int, Access]]],
    readers: dict[int, list[tuple[int, Access]]],
) -> None:
    """Results of variable latency and sources read late are protected by scoreboards, not by distance."""
    for access in instruction.defs:
        if not instruction.is_conditional:
            writers[access.register].clear()
            readers[access.register].clear()
        if not instruction.is_variable:
            writers[access.register].append((j, access))
    for access in instruction.uses:
        if not is_read_late(instruction, access.register):
            readers[access.register].append((j, access))


def stall_clock(code: tuple[Instruction, ...]) -> tuple[list[int], list[int]]:
    """Issue times by stall counts alone, and how many pauses of unknown length came before or at each."""
    times, pauses, time, pause = [], [], 0, 0
    for instruction in code:
        if instruction.control.wait_mask or instruction.order is Order.SYNC or _blocks(instruction):
            pause += 1
        times.append(time)
        pauses.append(pause)
        if not instruction.control.stall:
            # It holds the warp as long as it takes (USETMAXREG).
            pause += 1
        time += instruction.control.stall
    return times, pauses


_BLOCKING = (
    "MEMBAR",
    "ERRBAR",
    "FENCE",
    "WARPSYNC",
    "NANOSLEEP",
    "YIELD",
    "WARPGROUP",
    "SYNCS",
    "BMOV",
    "CCTL",
)


def _blocks(instruction: Instruction) -> bool:
    return instruction.opcode in _BLOCKING


def mutually_executed(producer: Instruction, consumer: Instruction) -> bool:
    """Could both execute? Two different guards may exclude each other."""
    if producer.never_executes:
        return False
    if not producer.is_conditional or not consumer.is_conditional:
        return True
    return (
        producer.guard is not None
        and consumer.guard is not None
        and producer.guard.text == consumer.guard.text
    )
