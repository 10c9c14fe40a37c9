"""Plants many faults and counts how many are refused, and for the right reason."""

import random
from collections.abc import Iterable
from dataclasses import dataclass, field

from cuasmrl.binary.cubin import Cubin
from cuasmrl.binary.sass import disassemble, distances
from cuasmrl.checker import Checker, Refusal
from tests.checker.plants import KINDS, Plant, Site
from tests.checker.subjects import Subject

_TRIES = 12
"""Sites of a kind that are tried where nothing can be planted at the first ones."""


@dataclass
class Tally:
    planted: int = 0
    refused: int = 0
    named: int = 0
    complaints: list[str] = field(default_factory=list)


class Campaign:
    """Counts by kind, over as many cubins as it is given."""

    def __init__(self, seed: int = 0) -> None:
        self.tallies = {kind: Tally() for kind in KINDS}
        self._seed = seed
        self._cubins = 0

    def plant(self, cubins: Iterable[Cubin], per_cubin: int) -> "Campaign":
        """About `per_cubin` faults in each, shared evenly among the kinds that find a site in it."""
        for cubin in cubins:
            rng = random.Random(f"{self._seed} {self._cubins}")
            self._cubins += 1
            self._plant_in(cubin, per_cubin, rng)
        return self

    def _plant_in(self, cubin: Cubin, count: int, rng: random.Random) -> None:
        listings = disassemble(cubin)
        checker = Checker(cubin, listings)
        subjects = [Subject(cubin, listing, distances(cubin.arch)) for listing in listings.values()]
        sites = {kind: [s for subject in subjects for s in find(subject)] for kind, find in KINDS.items()}
        open_kinds = [kind for kind, found in sites.items() if found]
        rng.shuffle(open_kinds)
        while open_kinds and count > 0:
            for kind in list(open_kinds):
                plant = _first_plant(sites[kind], rng)
                if plant is None:
                    open_kinds.remove(kind)
                elif count > 0:
                    judge(checker, plant, self.tallies[kind])
                    count -= 1

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
            total.planted += tally.planted
            total.refused += tally.refused
            total.named += tally.named
        return "\n".join(lines)


def _first_plant(sites: list[Site], rng: random.Random) -> Plant | None:
    for _ in range(_TRIES):
        plant = rng.choice(sites)(rng)
        if plant is not None:
            return plant
    return None


def judge(checker: Checker, plant: Plant, tally: Tally) -> None:
    tally.planted += 1
    try:
        checker.check(plant.broken)
    except Refusal as refusal:
        tally.refused += 1
        if refusal.rule in plant.rules and plant.named(refusal):
            tally.named += 1
        else:
            tally.complaints.append(f"{checker.original.source}: {plant.story}\n  {refusal.rule}: {refusal}")
    else:
        tally.complaints.append(f"{checker.original.source}: {plant.story}\n  was certified")
