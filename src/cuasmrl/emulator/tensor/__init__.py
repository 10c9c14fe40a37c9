"""Warp-level matrix instructions as functions of registers; see docs/tensor-cores.md."""

import numpy as np
from numpy.typing import NDArray

from cuasmrl.emulator.tensor import exact, floating
from cuasmrl.emulator.tensor.forms import Accumulation, MatrixForm, accumulations, matrix_form

__all__ = ["Accumulation", "MatrixForm", "accumulations", "matrix_form", "multiply_accumulate"]

Registers = tuple[NDArray[np.uint32], ...]


def multiply_accumulate(
    form: MatrixForm, a: Registers, b: Registers, c: Registers, active: NDArray[np.bool_]
) -> Registers:
    """Registers of D = A B + C; each register is an array (warps, 32). Rows of inactive warps are zero."""
    given = len(a), len(b), len(c)
    wanted = form.a_registers, form.b_registers, form.c_registers
    if given != wanted:
        raise ValueError(f"{form.opcode} takes {wanted} registers of A, B and C, not {given}.")
    warps = len(active)
    d = np.zeros((form.d_registers, warps, 32), np.uint32)
    stacked = [np.concatenate(registers).reshape(-1, warps, 32) for registers in (a, b, c)]
    kernel = floating.multiply if form.accumulation else exact.multiply
    kernel(form, *stacked, d, active)
    return tuple(d)
