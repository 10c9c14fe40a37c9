"""Instruction fetch: the L0 cache of a sub-core with a stream buffer that runs ahead."""

from cuasmrl.compiled import inlined
from cuasmrl.gpu.timing.code import Int
from cuasmrl.gpu.timing.machine import Machine
from cuasmrl.gpu.timing.records import Core


@inlined
def fetch(machine: Machine, state: Int, c: int, line: int, now: int) -> int:
    """When a line of instructions is there; asks for the lines behind it too."""
    size = machine.l0_lines
    arrival = c + Core.LINES
    held = arrival + size
    last = line + machine.prefetch_lines
    if state[held + line % size] != line or state[held + last % size] != last:
        for k in range(machine.prefetch_lines + 1):
            at = (line + k) % size
            if state[held + at] != line + k:
                state[held + at] = line + k
                state[arrival + at] = now + machine.fetch_latency + k * machine.fetch_gap
    return state[arrival + line % size]
