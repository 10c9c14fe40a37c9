"""Register file: two banks with one read port each, and the reuse cache.

Huerta et al. (MICRO 2025): an instruction with fixed latency waits in Allocate until all its operands can be
read in the three cycles that follow. The reuse cache holds one register per operand slot and bank; it serves
the same warp and slot, and any later read through the slot replaces it.
"""

from cuasmrl.compiled import inlined
from cuasmrl.gpu.timing.code import Int
from cuasmrl.gpu.timing.records import Core, Row

_READ_CYCLES = 3
_PLACE, _SOURCES = 7, 1 << 16


@inlined
def read_operands(code: Int, state: Int, p: int, c: int, w: int, enter: int) -> int:
    """When an instruction that comes to Allocate in cycle `enter` can go on; takes the ports."""
    even = odd = 0
    reuse = code[p + Row.REUSE]
    # Without jumps that depend on the operands, which the processor would have to guess.
    for k in range(code[p + Row.SOURCE_COUNT]):
        source = code[p + Row.SOURCES + k]
        at = c + Core.CACHED + (source & _PLACE)
        wanted = w * _SOURCES + source
        missing = 0 + (state[at] != wanted)
        odd += missing & source
        even += missing & (source ^ 1)
        state[at] = wanted if reuse >> ((source & _PLACE) >> 1) & 1 else -1
    grant = enter
    if even:
        grant = max(grant, state[c + Core.PORT_FREE] + even - 1 - _READ_CYCLES)
    if odd:
        grant = max(grant, state[c + Core.PORT_FREE + 1] + odd - 1 - _READ_CYCLES)
    if even:
        state[c + Core.PORT_FREE] = max(state[c + Core.PORT_FREE], grant + 1) + even
    if odd:
        state[c + Core.PORT_FREE + 1] = max(state[c + Core.PORT_FREE + 1], grant + 1) + odd
    return grant
