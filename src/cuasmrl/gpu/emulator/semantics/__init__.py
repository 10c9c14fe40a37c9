"""What each opcode computes, one file per family; importing this package declares them all."""

from cuasmrl.gpu.emulator.semantics import (  # noqa: F401
    atomics,
    bits,
    bulk,
    convert,
    copies,
    double,
    extrema,
    half,
    integer,
    lanes,
    logic,
    matrices,
    mbarrier,
    memory,
    mixed,
    moves,
    packed,
    packed_conversion,
    permutation,
    predicates,
    products,
    relations,
    shift,
    single,
    special,
    special_functions,
    synchronisation,
    tensor_engine,
    tensor_memory,
    warpgroup,
)
from cuasmrl.gpu.emulator.semantics.registry import SEMANTICS, executes, step_of

__all__ = ["SEMANTICS", "executes", "step_of"]
