"""Instruction fetch: the L0 cache of a sub-core with a stream buffer that runs ahead."""

from cuasmrl.timing.code import Int
from cuasmrl.timing.compiled import compiled
from cuasmrl.timing.machine import Machine

INSTRUCTIONS_PER_LINE = 8


@compiled
def fetch(arrival: Int, holds: Int, place: int, now: int, machine: Machine) -> int:
    """When the line with the instruction at `place` is there; asks for the lines behind it too."""
    line = place // INSTRUCTIONS_PER_LINE
    size = arrival.size
    last = line + machine.prefetch_lines
    if holds[line % size] == line and holds[last % size] == last:
        return arrival[line % size]
    for k in range(machine.prefetch_lines + 1):
        at = (line + k) % size
        if holds[at] != line + k:
            holds[at] = line + k
            arrival[at] = now + machine.fetch_latency + k * machine.fetch_gap
    return arrival[line % size]
