"""Warp-level matrix instructions as functions of registers; see docs/gpu/tensor-cores.md."""

import numpy as np
from numpy.typing import NDArray

from cuasmrl.gpu.emulator.tensor import exact, floating
from cuasmrl.gpu.emulator.tensor.forms import Accumulation, MatrixForm, accumulations, matrix_form

__all__ = [
    "Accumulation",
    "MatrixForm",
    "accumulations",
    "matrix_form",
    "multiply_accumulate",
    "multiply_fragments",
]

Words = NDArray[np.uint32]
Registers = tuple[Words, ...]
Places = tuple[NDArray[np.int64], NDArray[np.int64]]


def multiply_accumulate(
    form: MatrixForm, a: Registers, b: Registers, c: Registers, active: NDArray[np.bool_]
) -> Registers:
    """Registers of D = A B + C; each register is an array (warps, 32). Rows of inactive warps are zero."""
    given = len(a), len(b), len(c)
    wanted = form.a_registers, form.b_registers, form.c_registers
    if given != wanted:
        raise ValueError(f"{form.opcode} takes {wanted} registers of A, B and C, not {given}.")
    warps = len(active)
    d = np.empty((form.d_registers, warps, 32), np.uint32)
    own = np.arange(warps)
    multiply_fragments(form, _stack(a, warps), _stack(b, warps), _stack(c, warps), d, active, (own, own))
    return tuple(d)


def multiply_fragments(
    form: MatrixForm, a: Words, b: Words, c: Words, d: Words, active: NDArray[np.bool_], which: Places
) -> None:
    """The same over stacks of fragments (registers, fragments, 32), with C and D one for each of `active`.

    `which` are the fragments of A and B that each of them is the product of.
    """
    kernel = floating.multiply if form.accumulation else exact.multiply
    kernel(form, a, b, c, d, active, which)


def _stack(registers: Registers, warps: int) -> NDArray[np.uint32]:
    return np.concatenate(registers).reshape(len(registers), warps, 32)
