"""Register file: two banks with one read port each, and the reuse cache.

Huerta et al. (MICRO 2025): an instruction with fixed latency waits in Allocate until all its operands can be
read in the three cycles that follow. The reuse cache holds one register per operand slot and bank; it serves
the same warp and slot, and any later read through the slot replaces it.
"""

from cuasmrl.timing.code import Int
from cuasmrl.timing.columns import SLOTS, Core, Row
from cuasmrl.timing.compiled import compiled

_READ_CYCLES = 3


@compiled
def read_operands(row: Int, warp: int, enter: int, core: Int) -> int:
    """When an instruction that comes to Allocate in cycle `enter` can go on; takes the ports."""
    even = odd = 0
    for slot in range(SLOTS):
        for k in range(2):
            register = row[Row.SOURCES + 2 * slot + k]
            if register >= 0:
                at = 2 * slot + (register & 1)
                if core[Core.CACHED + at] != register or core[Core.CACHED_WARP + at] != warp:
                    if register & 1:
                        odd += 1
                    else:
                        even += 1
                core[Core.CACHED + at] = register if row[Row.REUSE] >> slot & 1 else -1
                core[Core.CACHED_WARP + at] = warp
    grant = enter
    if even:
        grant = max(grant, core[Core.PORT_FREE] + even - 1 - _READ_CYCLES)
    if odd:
        grant = max(grant, core[Core.PORT_FREE + 1] + odd - 1 - _READ_CYCLES)
    if even:
        core[Core.PORT_FREE] = max(core[Core.PORT_FREE], grant + 1) + even
    if odd:
        core[Core.PORT_FREE + 1] = max(core[Core.PORT_FREE + 1], grant + 1) + odd
    return grant
