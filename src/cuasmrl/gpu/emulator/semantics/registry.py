"""The semantics of every opcode the emulator executes, found by name."""

from collections.abc import Callable
from typing import TypeAlias

from cuasmrl.gpu.emulator.faults import UnsupportedError
from cuasmrl.gpu.emulator.forms import Form, Step

Semantics: TypeAlias = Callable[[Form], Step]

SEMANTICS: dict[str, Semantics] = {}


def executes(*opcodes: str) -> Callable[[Semantics], Semantics]:
    """Declare that a function gives the semantics of these opcodes."""

    def declare(semantics: Semantics) -> Semantics:
        for opcode in opcodes:
            assert opcode not in SEMANTICS, opcode
            SEMANTICS[opcode] = semantics
        return semantics

    return declare


def step_of(form: Form) -> Step:
    """What this instruction does, without its guard; raises `UnsupportedError` with the reason."""
    semantics = SEMANTICS.get(form.opcode)
    if semantics is None:
        raise UnsupportedError("no semantics for this opcode")
    step = semantics(form)
    form.refuse_leftovers()
    return step
