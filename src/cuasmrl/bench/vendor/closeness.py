"""Pairs of instructions that a schedule brings closer together than compilers of libraries do."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import lru_cache

from cuasmrl.binary.sass import Hazard
from cuasmrl.binary.sass.distances import vendor_rows
from cuasmrl.schedule import Schedule
from cuasmrl.schedule.blocks import control_flow
from cuasmrl.schedule.boundaries import issue_times
from cuasmrl.schedule.mining import Key, observations

_BY_REGISTER = (Hazard.RAW, Hazard.WAW, Hazard.WAR)


@lru_cache
def vendor_minima(arch: int) -> Mapping[Key, int]:
    """The smallest distance of each pair that five places in libraries show."""
    return {
        (r.arch, r.hazard, r.file, r.producer, r.producer_role, r.consumer, r.consumer_role): r.distance
        for r in vendor_rows(arch)
        if r.hazard in _BY_REGISTER
    }


def too_close(schedule: Schedule, minima: Mapping[Key, int]) -> Iterator[str]:
    """Dependent pairs below the minimum that were farther apart in the original, in words."""
    listing = schedule.listing
    code, blocks = listing.instructions, control_flow(listing)
    before = issue_times(blocks, code)
    for block in blocks:
        order = schedule.order[block.start : block.end]
        if any(code[i].declaration is None for i in order):
            continue
        now = tuple(replace(code[i], control=schedule.controls[i]) for i in order)
        for key, distance, first, second in observations(listing.kernel.arch, now):
            was = before[second.index] - before[first.index]
            if distance < min(minima.get(key, 0), was):
                yield f"{second} comes {distance} cycles after {first}, compilers leave {minima[key]}"
