"""Instruction fetch: the L0 cache of a sub-core with a stream buffer that runs ahead."""

from cuasmrl.compiled import inlined
from cuasmrl.gpu.timing.code import Int
from cuasmrl.gpu.timing.machine import Layout, Machine


@inlined
def fetch(machine: Machine, layout: Layout, state: Int, c: int, line: int, now: int) -> int:
    """When a line of instructions is there; asks for the lines behind it too."""
    size, ahead = layout.l0_lines, machine.prefetch_lines
    arrival = c + layout.lines
    held = arrival + size
    first = line if line < size else line % size
    last = first + ahead if first + ahead < size else first + ahead - size
    if state[held + first] != line or state[held + last] != line + ahead:
        at = first
        for k in range(ahead + 1):
            if state[held + at] != line + k:
                state[held + at] = line + k
                state[arrival + at] = now + machine.fetch_latency + k * machine.fetch_gap
            at = at + 1 if at + 1 < size else 0
    return state[arrival + first]
