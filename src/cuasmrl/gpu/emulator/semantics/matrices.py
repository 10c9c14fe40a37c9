"""Matrix fragments: LDSM and STSM between shared memory and registers, MOVM, and the tensor-core products."""

import numpy as np
from numba import njit

from cuasmrl.gpu.emulator.access import Addresses, Flat
from cuasmrl.gpu.emulator.addresses import near
from cuasmrl.gpu.emulator.faults import LaneFault, UnsupportedError
from cuasmrl.gpu.emulator.forms import Form, Step
from cuasmrl.gpu.emulator.semantics.registry import executes
from cuasmrl.gpu.emulator.tensor import matrix_form, multiply_accumulate
from cuasmrl.gpu.emulator.values import LANES, Value
from cuasmrl.gpu.emulator.warps import Warps

_ROW_BYTES = 16


@njit(cache=True)
def load_matrices(units, stride, address, warps, threads, transposed, out):  # type: ignore[no-untyped-def]
    """Rows of 8 halves: lane 8m + r names row r of matrix m; a lane gets two neighbours of each matrix.

    Plain, lane l holds row l // 4, columns 2 (l % 4) and the next; transposed, rows and columns change
    places.
    """
    for warp in range(warps.size):
        if not warps[warp]:
            continue
        first = warp * 32
        block = first // threads * stride
        for m in range(out.shape[0]):
            for lane in range(32):
                near, far = lane // 4, 2 * (lane % 4)
                if transposed:
                    low = units[block + address[first + 8 * m + far] // 2 + near]
                    high = units[block + address[first + 8 * m + far + 1] // 2 + near]
                else:
                    at = block + address[first + 8 * m + near] // 2 + far
                    low, high = units[at], units[at + 1]
                out[m, first + lane] = np.uint32(low) | np.uint32(high) << np.uint32(16)


@njit(cache=True)
def store_matrices(units, stride, address, warps, threads, transposed, data):  # type: ignore[no-untyped-def]
    """The reverse of `load_matrices`."""
    for warp in range(warps.size):
        if not warps[warp]:
            continue
        first = warp * 32
        block = first // threads * stride
        for m in range(data.shape[0]):
            for lane in range(32):
                near, far = lane // 4, 2 * (lane % 4)
                value = data[m, first + lane]
                low, high = value & np.uint32(0xFFFF), value >> np.uint32(16)
                if transposed:
                    units[block + address[first + 8 * m + far] // 2 + near] = low
                    units[block + address[first + 8 * m + far + 1] // 2 + near] = high
                else:
                    at = block + address[first + 8 * m + near] // 2 + far
                    units[at] = low
                    units[at + 1] = high


def _matrix_shape(form: Form) -> tuple[int, bool]:
    """Number of matrices, and whether they are transposed."""
    form.ignore("16")
    transposed = form.choose("M88", "MT88") == "MT88"
    return int(form.choose("1", "2", "4", default="1")), transposed


def _rows(w: Warps, form: Form, address: Addresses, count: int) -> tuple[Addresses, Flat, Flat]:
    """Addresses of all lanes, the lanes whose address is used, and the warps that take part."""
    slab = w.machine.slab
    at = slab.flat(address)
    active = slab.active(w.active).reshape(-1, LANES)
    warps = np.logical_or.reduce(active, axis=1)
    partial = warps & ~np.logical_and.reduce(active, axis=1)
    if partial.any():
        raise LaneFault(f"{form.opcode} needs all lanes of a warp", int(partial.argmax()) * LANES)
    named = np.zeros_like(active)
    named[:, : 8 * count] = warps[:, None]
    return at, named.reshape(-1), warps


@executes("LDSM")
def load_matrix(form: Form) -> Step:
    count, transposed = _matrix_shape(form)
    address = near(form, 0)
    writes = form.result_words(count)
    index = form.instruction.index

    def step(w: Warps) -> None:
        machine, slab, shared = w.machine, w.machine.slab, w.machine.shared
        at, named, warps = _rows(w, form, address(w), count)
        machine.note_access(index, at, named, _ROW_BYTES)
        shared.check(at, named, _ROW_BYTES)
        out = np.zeros((count, slab.size), np.uint32)
        units = shared.window(np.uint16).units
        load_matrices(units, shared.stride // 2, at, warps, slab.threads, transposed, out)
        rows = shared.unwritten(at, named, _ROW_BYTES)
        if rows is not None:
            holes = np.zeros_like(out)
            load_matrices(
                shared.unwritten_halves(), shared.stride // 2, at, warps, slab.threads, transposed, holes
            )
            machine.undefined.begin(form.instruction, holes != 0, int(at[rows.any(axis=0).argmax()]))
        for write, row in zip(writes, out, strict=True):
            write(w, row.reshape(slab.shape))

    return step


@executes("STSM")
def store_matrix(form: Form) -> Step:
    count, transposed = _matrix_shape(form)
    address = near(form, 0)
    data = form.registers(1, count)
    index = form.instruction.index

    def step(w: Warps) -> None:
        machine, slab, shared = w.machine, w.machine.slab, w.machine.shared
        at, named, warps = _rows(w, form, address(w), count)
        machine.note_access(index, at, named, _ROW_BYTES)
        shared.check(at, named, _ROW_BYTES)
        values = np.stack([slab.flat(value) for value in data(w)])
        units = shared.window(np.uint16).units
        store_matrices(units, shared.stride // 2, at, warps, slab.threads, transposed, values)
        shared.mark(at, named, _ROW_BYTES)

    return step


@executes("HMMA", "IMMA", "QMMA", "DMMA")
def multiply(form: Form) -> Step:
    form.ignore(*form.modifiers)
    try:
        matrix = matrix_form(form.instruction.mnemonic, form.arch)
    except ValueError as error:
        raise UnsupportedError(str(error)) from error
    for operand, role in zip(form.sources[:2], ("ROW", "COL"), strict=True):
        if not set(operand.suffixes) <= {"reuse", role}:
            raise UnsupportedError(f"operand {operand.text}")
    a, b, c = (
        form.registers(k, count)
        for k, count in enumerate((matrix.a_registers, matrix.b_registers, matrix.c_registers))
    )
    writes = form.result_words(matrix.c_registers)

    def step(w: Warps) -> None:
        slab = w.machine.slab

        def fragments(values: tuple[Value, ...]) -> tuple[np.ndarray, ...]:
            return tuple(slab.flat(value).reshape(-1, LANES) for value in values)

        results = multiply_accumulate(
            matrix, fragments(a(w)), fragments(b(w)), fragments(c(w)), w.machine.warps_of(w)
        )
        for write, value in zip(writes, results, strict=True):
            write(w, value.reshape(slab.shape))

    return step
