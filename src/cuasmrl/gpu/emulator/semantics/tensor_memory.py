"""Tensor memory as warps see it: allocating, freeing, loading and storing (tcgen05.alloc, .ld, .st)."""

from __future__ import annotations

import re

import numpy as np

from cuasmrl.binary.sass import Kind, Operand
from cuasmrl.gpu.emulator.faults import LaneFault, UnsupportedError
from cuasmrl.gpu.emulator.forms import Form, Read, Step, register_reader, register_writer
from cuasmrl.gpu.emulator.pending_reads import Numbers
from cuasmrl.gpu.emulator.semantics.float_extrema import FloatExtremum
from cuasmrl.gpu.emulator.semantics.mbarrier import of_warps
from cuasmrl.gpu.emulator.semantics.registry import executes
from cuasmrl.gpu.emulator.tensor.cells import SHAPES, CellLayout, cell_layout
from cuasmrl.gpu.emulator.tensor_memory import HALF, Region, tensor_memory_of
from cuasmrl.gpu.emulator.values import LANES, Mask, Value, constant
from cuasmrl.gpu.emulator.warps import Warps

_QUARTERS = 4
_QUARTER = 32
"""Lanes of tensor memory that a warp reaches."""


def cell_address(form: Form, k: int) -> Read:
    """`tmem[UR+n]`: the lane in the upper half, the column in the lower, to which n is added."""
    operand = form.operand(k)
    if not is_in_tensor_memory(operand) or operand.uniform is None:
        raise UnsupportedError(f"operand {operand.text}")
    base, offset = register_reader(operand.uniform, 0), constant(operand.offset)
    return lambda w: base(w) + offset


def is_in_tensor_memory(operand: Operand) -> bool:
    return operand.kind is Kind.ADDRESS and operand.space == "tmem" and operand.register is None


@executes("UTCATOMSWS")
def share(form: Form) -> Step:
    """Allocate: find free units in a row and take them; or free all units whose bit is not set."""
    index = form.instruction.index
    if form.choose("FIND_AND_SET", "AND") == "AND":
        return _free(form, index)
    form.choose("ALIGN")
    count, write, found = form.integer(0), form.result(), form.result_predicate(0)

    def step(w: Warps) -> None:
        memory, shape = tensor_memory_of(w), w.machine.shape
        counts = of_warps(w, count(w))
        firsts = np.zeros(shape[0] * shape[1], np.uint32)
        any_free = np.zeros(shape[0] * shape[1], np.bool_)
        for warp in np.flatnonzero(w.machine.warps_of(w)):
            first = memory.allocate(int(warp) // shape[1], int(counts[warp]), index, int(warp) * LANES)
            any_free[warp] = first is not None
            firsts[warp] = first or 0
        write(w, firsts.reshape(*shape[:2], 1))
        if found is not None:
            found(w, any_free.reshape(*shape[:2], 1))

    return step


def _free(form: Form, index: int) -> Step:
    if any(d.register is not None and d.register.index is not None for d in form.destinations):
        raise UnsupportedError("wants to know what was allocated before")
    kept = form.integer(0)

    def step(w: Warps) -> None:
        memory, shape = tensor_memory_of(w), w.machine.shape
        masks = of_warps(w, kept(w))
        for warp in np.flatnonzero(w.machine.warps_of(w)):
            memory.free(int(warp) // shape[1], int(masks[warp]), index, int(warp) * LANES)

    return step


@executes("UVIRTCOUNT")
def give_up_allocating(form: Form) -> Step:
    """The block will not allocate any more: here every block has tensor memory of its own."""
    form.choose("DEALLOC")
    form.choose("SMPOOL")
    form.immediate(0)
    return lambda w: None


@executes("LDTM")
def load(form: Form) -> Step:
    layout = _layout(form, "PACK16BIT")
    leading, *others = [d.register for d in form.destinations if d.register is not None]
    data, extremum = leading, None
    if form.has("STAT"):
        (data,), extremum = others, _extremum(form, layout)
    writes = [register_writer(data, word) for word in range(layout.registers)]
    address = cell_address(form, 0)
    instruction = form.instruction

    def step(w: Warps) -> None:
        machine, memory = w.machine, tensor_memory_of(w)
        region, first = _region(w, address(w), layout)
        memory.read(region)
        lanes, columns = _cells(region, first, layout)
        found = memory.cells[region.blocks[:, None], lanes, columns]
        if layout.halves:
            following = memory.cells[region.blocks[:, None], lanes, columns + 1]
            found = found & np.uint32(0xFFFF) | following << np.uint32(16)
        written: Mask = np.logical_and.reduce(memory.written[region.place], axis=1)
        if not written.all():
            absent = _absent(written, layout)
            missing = np.zeros((layout.registers, *machine.shape), np.bool_)
            missing.reshape(layout.registers, -1, LANES)[:, region.warps] = absent & layout.active
            column = int(region.columns[0, 0])
            machine.undefined.begin(instruction, missing, column, "tensor memory at column")
        some = w.where(layout.active.reshape(1, 1, LANES))
        if some is None:
            return
        shape, everybody = machine.shape, region.warps.size == machine.shape[0] * machine.shape[1]
        for write, values in zip(writes, found, strict=True):
            write(some, values.reshape(shape) if everybody else _spread(values, region.warps, shape))
        if extremum is not None:
            values = extremum.along(0, found, np.ones_like(found, np.bool_))[0]
            register_writer(leading, 0)(some, _spread(values, region.warps, shape))

    return step


@executes("STTM")
def store(form: Form) -> Step:
    layout = _layout(form, "EXPAND16BIT")
    address, data = cell_address(form, 0), form.registers(1, layout.registers)
    index = form.instruction.index

    def step(w: Warps) -> None:
        machine, memory = w.machine, tensor_memory_of(w)
        region, first = _region(w, address(w), layout)
        memory.write(region, index)
        lanes, columns = _cells(region, first, layout)
        given = np.empty((layout.registers, region.warps.size, LANES), np.uint32)
        for row, value in zip(given, data(w), strict=True):
            row[...] = np.broadcast_to(value, machine.shape).reshape(-1, LANES)[region.warps]
        here = layout.active
        blocks = region.blocks[:, None]
        if layout.halves:
            memory.cells[blocks, lanes[..., here], columns[..., here] + 1] = given[..., here] >> np.uint32(16)
            given &= np.uint32(0xFFFF)
        memory.cells[blocks, lanes[..., here], columns[..., here]] = given[..., here]

    return step


def _extremum(form: Form, layout: CellLayout) -> FloatExtremum:
    """Of the columns that each lane loads: its own register takes it."""
    if layout.rows != _QUARTER or layout.halves or not form.has("F32"):
        raise UnsupportedError("has an extremum of a shape or type without a model")
    return FloatExtremum.of(form)


def _layout(form: Form, halves: str) -> CellLayout:
    shape = next((shape for shape in SHAPES if form.has(shape)), "")
    repeats = [modifier for modifier in form.modifiers if re.fullmatch(r"x\d+", modifier)]
    form.ignore(*repeats)
    try:
        return cell_layout(shape, int(repeats[0][1:]) if repeats else 1, form.has(halves))
    except ValueError as error:
        raise UnsupportedError(str(error)) from error


def _region(w: Warps, address: Value, layout: CellLayout) -> tuple[Region, tuple[Numbers, Numbers]]:
    """What the warps touch, and the lane and column at which each of them begins."""
    machine = w.machine
    warps = np.flatnonzero(machine.warps_of(w))
    active = np.broadcast_to(w.active, machine.shape).reshape(-1, LANES)[warps]
    if not active.all():
        raise LaneFault("needs all lanes of a warp", int(warps[(~active.all(axis=1)).argmax()]) * LANES)
    at = of_warps(w, address)[warps].astype(np.int64)
    lane, column = at >> 16, at & 0xFFFF
    quarter = warps % machine.shape[1] % _QUARTERS * _QUARTER
    away = (lane < quarter) | (lane + layout.rows > quarter + _QUARTER) | (lane % HALF != 0)
    if away.any():
        warp = int(away.argmax())
        raise LaneFault(
            f"touches tensor memory from lane {int(lane[warp])} on, and its warp reaches lanes "
            f"{int(quarter[warp])} to {int(quarter[warp]) + _QUARTER - 1}",
            int(warps[warp]) * LANES,
        )
    halves = lane[:, None] // HALF + np.arange(layout.rows // HALF)
    region = tensor_memory_of(w).region(warps, halves, column, layout.width)
    return region, (lane, column)


def _cells(region: Region, first: tuple[Numbers, Numbers], layout: CellLayout) -> tuple[Numbers, Numbers]:
    """Lane and column by register, warp and lane of the warp."""
    lane, column = first
    return lane[:, None] + layout.lanes[:, None, :], column[:, None] + layout.columns[:, None, :]


def _absent(written: Mask, layout: CellLayout) -> Mask:
    """By register, warp and lane: is it a cell in a column of which nobody has written all?"""
    absent: Mask = ~written[:, layout.columns]
    if layout.halves:
        absent |= ~written[:, layout.columns + 1]
    return absent.transpose(1, 0, 2)


def _spread(values: Value, warps: Numbers, shape: tuple[int, int, int]) -> Value:
    spread = np.zeros((shape[0] * shape[1], LANES), np.uint32)
    spread[warps] = values
    return spread.reshape(shape)
