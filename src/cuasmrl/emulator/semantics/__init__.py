"""What each opcode computes, one file per family; importing this package declares them all."""

from cuasmrl.emulator.semantics import (  # noqa: F401
    atomics,
    copies,
    integer,
    matrices,
    memory,
    special,
    synchronisation,
)
from cuasmrl.emulator.semantics.registry import SEMANTICS, executes, step_of

__all__ = ["SEMANTICS", "executes", "step_of"]
