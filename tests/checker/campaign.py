"""Plants many faults and counts how many are refused, and for the right reason."""

import random
from collections.abc import Iterable
from dataclasses import dataclass, field

from cuasmrl.binary.cubin import Cubin
from cuasmrl.binary.sass import disassemble, distances
from cuasmrl.checker import Checker, Refusal
from tests.checker.plants import KINDS, Site
from tests.checker.subjects import Subject


@dataclass
class Tally:
    planted: int = 0
    refused: int = 0
    named: int = 0
    complaints: list[str] = field(default_factory=list)


def run_campaign(cubins: Iterable[Cubin], per_cubin: int, seed: int = 0) -> dict[str, Tally]:
    """About `per_cubin` plants in each, shared evenly among the kinds that find a site in it."""
    tallies = {kind: Tally() for kind in KINDS}
    for number, cubin in enumerate(cubins):
        rng = random.Random(f"{seed} {number}")
        listings = disassemble(cubin)
        checker = Checker(cubin, listings)
        subjects = [Subject(cubin, listing, distances(cubin.arch)) for listing in listings.values()]
        sites = {kind: [s for subject in subjects for s in find(subject)] for kind, find in KINDS.items()}
        open_kinds = [kind for kind, found in sites.items() if found]
        rng.shuffle(open_kinds)
        for turn in range(per_cubin if open_kinds else 0):
            kind = open_kinds[turn % len(open_kinds)]
            _plant_one(checker, rng.choice(sites[kind]), tallies[kind], rng)
    return tallies


def _plant_one(checker: Checker, site: Site, tally: Tally, rng: random.Random) -> None:
    plant = site(rng)
    if plant is None:
        return
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


def table(tallies: dict[str, Tally]) -> str:
    total = Tally()
    lines = [f"{'kind':45} {'planted':>8} {'refused':>8} {'named':>8}"]
    for kind, tally in [*tallies.items(), ("all", total)]:
        lines.append(f"{kind:45} {tally.planted:8} {tally.refused:8} {tally.named:8}")
        total.planted += tally.planted
        total.refused += tally.refused
        total.named += tally.named
    return "\n".join(lines)
