"""Plants many faults and counts how many are refused, and for the right reason."""

import hashlib
import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import cuasmrl
from cuasmrl.bench.kept import Kept
from cuasmrl.binary.cubin import Cubin
from cuasmrl.binary.sass import Listing, disassemble, distances, name_of
from cuasmrl.checker import Checker, Refusal, Rule
from tests.checker.plants import KINDS, Plant, Site
from tests.checker.rescheduling import rescheduled
from tests.checker.subjects import Subject

_TRIES = 12
"""Sites of a kind in a row at which nothing can be planted before it is given up in a cubin."""
_MOVES = 60
"""Legal moves in each kernel of a cubin that is rescheduled first."""
_BY_POSITION = (Rule.WORD, Rule.BLOCK, Rule.PINNED)
"""Refusals that name what stood in a place of the original, not what stands there now."""


@dataclass(frozen=True)
class Turn:
    """One cubin to plant faults in."""

    name: str
    load: Callable[[], Cubin]
    plants: int
    is_rescheduled: bool = False
    """First by legal moves; the checker then compares the broken cubin with what the compiler made."""


@dataclass
class Tally:
    planted: int = 0
    refused: int = 0
    named: int = 0
    complaints: list[str] = field(default_factory=list)

    def add(self, other: "Tally") -> None:
        self.planted += other.planted
        self.refused += other.refused
        self.named += other.named
        self.complaints += other.complaints


class Campaign:
    """Counts by kind, over as many cubins as it is given."""

    def __init__(self, kinds: Iterable[str] = KINDS) -> None:
        self.tallies = {kind: Tally() for kind in kinds}

    def plant(self, turn: Turn) -> "Campaign":
        """Faults shared evenly among the kinds that find a site; those planted least so far come first."""
        rng = random.Random(turn.name)
        cubin, count = turn.load(), turn.plants
        listings, table = disassemble(cubin), distances(cubin.arch)
        checker = _checker(cubin, listings)
        if turn.is_rescheduled:
            subjects = rescheduled(checker, listings, _MOVES, rng)
        else:
            subjects = {name: Subject(cubin, listing, table) for name, listing in listings.items()}
        sites = _sites(self.tallies, subjects, rng)
        kinds = sorted(sites, key=lambda kind: (self.tallies[kind].planted, rng.random()))
        while kinds and count > 0:
            for kind in list(kinds):
                found = _first_plant(sites[kind], rng)
                if found is None:
                    kinds.remove(kind)
                elif count > 0:
                    judge(checker, *found, self.tallies[kind])
                    count -= 1
        return self

    def add(self, tallies: Mapping[str, Tally]) -> None:
        for kind, tally in tallies.items():
            self.tallies[kind].add(tally)

    @property
    def planted(self) -> int:
        return sum(tally.planted for tally in self.tallies.values())

    @property
    def complaints(self) -> list[str]:
        return [f"{kind}: {text}" for kind, tally in self.tallies.items() for text in tally.complaints]

    def table(self) -> str:
        total = Tally()
        lines = [f"{'kind':70} {'planted':>8} {'refused':>8} {'named':>8}"]
        for kind, tally in [*self.tallies.items(), ("all", total)]:
            lines.append(f"{kind:70} {tally.planted:8} {tally.refused:8} {tally.named:8}")
            if tally is not total:
                total.add(tally)
        return "\n".join(lines)


def _checker(cubin: Cubin, listings: Mapping[str, Listing]) -> Checker:
    checker = Checker(cubin, listings)
    checker.check(cubin)
    return checker


def _sites(
    kinds: Iterable[str], subjects: Mapping[str, Subject], rng: random.Random
) -> dict[str, list[tuple[Subject, Site]]]:
    """By kind, in random order: each site is used once."""
    found = {}
    for kind in kinds:
        sites = [(subject, site) for subject in subjects.values() for site in KINDS[kind](subject)]
        if sites:
            rng.shuffle(sites)
            found[kind] = sites
    return found


def _first_plant(sites: list[tuple[Subject, Site]], rng: random.Random) -> tuple[Subject, Plant] | None:
    for _ in range(min(_TRIES, len(sites))):
        subject, site = sites.pop()
        plant = site(rng)
        if plant is not None:
            return subject, plant
    return None


def judge(checker: Checker, subject: Subject, plant: Plant, tally: Tally) -> None:
    tally.planted += 1
    where = f"{checker.original.source}, {subject.listing.kernel.name}: {plant.story}"
    try:
        checker.check(plant.broken)
    except Refusal as refusal:
        tally.refused += 1
        here = refusal.rule is Rule.CONTAINER or refusal.kernel == subject.listing.kernel.name
        found = _as_it_stands(subject, refusal)
        if here and _is_an_edge(subject, found) and refusal.rule in plant.rules and plant.named(found):
            tally.named += 1
        else:
            tally.complaints.append(f"{where}\n  {refusal.rule}: {refusal}")
    else:
        tally.complaints.append(f"{where}\n  was certified")


def _is_an_edge(subject: Subject, refusal: Refusal) -> bool:
    """If it names a register, that is one which producer and consumer share."""
    if refusal.register is None or refusal.producer is None or refusal.consumer is None:
        return refusal.register is None
    pairs = subject.hazards(refusal.producer, refusal.consumer)
    return refusal.register in {name_of(pair.register) for pair in pairs}


def _as_it_stands(subject: Subject, refusal: Refusal) -> Refusal:
    """The refusal with the indices of the schedule that the fault was planted in."""
    if subject.origin is None or refusal.rule in _BY_POSITION:
        return refusal
    indices = subject.origin.indices

    def now(i: int | None) -> int | None:
        return None if i is None else indices.index(i)

    return replace(refusal, producer=now(refusal.producer), consumer=now(refusal.consumer))


# ---- campaigns that go on where they were ----


@dataclass(frozen=True)
class Row:
    """What came of one turn."""

    turn: str
    rules: str
    """Digest of the checker, the table and the kinds: a row of others does not count."""
    tallies: dict[str, dict[str, object]]


def digest() -> str:
    package, tests = Path(cuasmrl.__file__).parent, Path(__file__).parent
    files = [*package.glob("checker/*.py"), *package.glob("binary/sass/**/*.*"), *tests.rglob("*.py")]
    files = [path for path in files if path.suffix in (".py", ".csv") and "test" not in path.stem]
    text = hashlib.sha256()
    for path in sorted(files):
        text.update(path.read_bytes())
    return text.hexdigest()[:16]


def run(turns: Iterable[Turn], rows: Path | None, progress: Callable[[int, int], None]) -> Campaign:
    """All of these turns, but for those that the file holds already."""
    by_name = {turn.name: turn for turn in turns}
    rules = digest()

    def make(left: list[tuple[str, str]]) -> Iterable[Row]:
        for name, _ in left:
            tallies = Campaign().plant(by_name[name]).tallies
            yield Row(name, rules, {kind: asdict(tally) for kind, tally in tallies.items() if tally.planted})

    wanted = [(name, rules) for name in by_name]
    campaign = Campaign()
    for row in Kept(Row, rows).complete(wanted, lambda row: (row.turn, row.rules), make, progress):
        campaign.add({kind: Tally(**tally) for kind, tally in row.tallies.items()})  # type: ignore[arg-type]
    return campaign
