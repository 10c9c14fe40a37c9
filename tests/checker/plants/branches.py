"""Branches that stall less than any live one does."""

from collections.abc import Iterator
from functools import partial

from cuasmrl.checker import Rule
from tests.checker.plants.base import Site, consumer, edit, kind
from tests.checker.squeezing import least_stall, with_stall
from tests.checker.subjects import Subject

FLOORS = dict.fromkeys(("BRA", "BRX", "EXIT", "RET", "BSYNC"), 5)
"""No compiler gives a live one less."""


def _declare(opcode: str) -> None:
    """With a floor of its own, or none and then what the table says."""
    floor = FLOORS.get(opcode)
    name = f"{opcode} that stalls too little"

    @kind(name)
    def sites(subject: Subject) -> Iterator[Site]:
        for i in subject.code:
            needed = min(subject.compiled(i.index).stall, floor) if floor else least_stall(subject, i.index)
            if i.opcode == opcode:
                for stall in range(needed):
                    control = with_stall(subject, i.index, stall)
                    yield partial(edit, subject, i.index, control, Rule.STALL, consumer(i.index), name)


for _opcode in (*FLOORS, "CALL", "BSSY", "WARPSYNC", "BAR", "MEMBAR"):
    _declare(_opcode)
