"""Which accesses keep their order: hand-written pairs."""

import pytest

from cuasmrl.binary.sass import Listing
from cuasmrl.schedule.memory import MemoryOrder
from tests.assembly import listing


def keeps_order(*texts: str, arch: int = 90) -> bool:
    """Of the first and the last instruction."""
    code: Listing = listing("\n".join(f"B------:R-:W-:-:S04  {text}" for text in texts), arch)
    order, found = MemoryOrder(), 0
    for number, instruction in enumerate(code.instructions):
        found = order.enter(instruction, number)
    return bool(found & 1)


@pytest.mark.parametrize(
    ("texts", "ordered"),
    [
        (("LDS R0, [R2]", "LDS R1, [R2]"), False),
        (("STS [R2], R0", "LDS R1, [R3]"), True),
        (("STS [R2], R0", "LDG.E R1, desc[UR4][R6.64]"), False),
        (("STS [R2], R0", "STS [R2+0x4], R1"), False),
        (("STS [R2], R0", "STS [R2+0x3], R1"), True),
        (("STS.128 [R2], R4", "STS [R2+0x8], R1"), True),
        (("STS [R2], R0", "STS [R3+0x4], R1"), True),
        (("STS [R2+UR4], R0", "STS [R2+0x4], R1"), True),
        # The base is written in between: the same name is another value.
        (("STS [R2], R0", "IADD3 R2, R2, 0x10, RZ", "STS [R2+0x4], R1"), True),
        # Lanes of a warp may talk through shared memory without a barrier in the code.
        (("STS [R2], R0", "LDS R1, [R2+0x4]"), True),
        (("STL [R1], R0", "LDL R3, [R1+0x4]"), False),
        (("STL [R1], R0", "LDL R3, [R1]"), True),
        (("STL.64 [R1], R4", "LDL R3, [R1+0x4]"), True),
        # An asynchronous copy reads global and writes shared memory.
        (("LDGSTS.E.128 [R2], desc[UR4][R6.64]", "LDS R0, [R3]"), True),
        (("LDGSTS.E.128 [R2], desc[UR4][R6.64]", "LDG.E R0, desc[UR4][R8.64]"), False),
        (("LDGSTS.E.128 [R2], desc[UR4][R6.64]", "STG.E desc[UR4][R8.64], R0"), True),
        # Generic addresses may be anything.
        (("ST.E [R2.64], R0", "LDS R1, [R4]"), True),
        (("LD.E R0, [R2.64]", "LDS R1, [R4]"), False),
        # Strong and atomic accesses keep their order even when both only read.
        (("LDG.E.STRONG.GPU R0, desc[UR4][R6.64]", "LDG.E R1, desc[UR4][R8.64]"), True),
        (("ATOMS.ADD R0, [R2], R1", "LDS R3, [R4]"), True),
        (("REDG.E.ADD.STRONG.GPU desc[UR4][R2.64], R5", "REDG.E.ADD.STRONG.GPU desc[UR4][R6.64], R7"), True),
        # Padding loads count slots of the shared-memory queue.
        (("@!PT LDS RZ, [RZ]", "LDS R0, [R2]"), True),
    ],
)
def test_pairs(texts: tuple[str, ...], ordered: bool) -> None:
    assert keeps_order(*texts) is ordered
