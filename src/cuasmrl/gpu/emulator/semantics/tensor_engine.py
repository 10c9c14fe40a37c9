"""Orders to the tensor core beside the warps (tcgen05): products, copies, and telling an mbarrier of them.

They are uniform instructions: a warp gives one order, whoever of its lanes is active. What is in flight is
kept in `tensor_memory.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from cuasmrl.binary.sass import Kind, Operand
from cuasmrl.gpu.emulator.addresses import near
from cuasmrl.gpu.emulator.events import Event
from cuasmrl.gpu.emulator.faults import LaneFault, UnsupportedError
from cuasmrl.gpu.emulator.forms import Form, Read, ReadMask, Step, register_reader
from cuasmrl.gpu.emulator.pending_reads import Numbers
from cuasmrl.gpu.emulator.semantics.mbarrier import of_warps
from cuasmrl.gpu.emulator.semantics.registry import executes
from cuasmrl.gpu.emulator.semantics.tensor_memory import cell_address, is_in_tensor_memory
from cuasmrl.gpu.emulator.tensor.engine import EngineForm, engine_form, fragments_of_rows, multiply_add
from cuasmrl.gpu.emulator.tensor.operands import (
    GRANULE,
    Descriptor,
    Table,
    decode_tensor_core_descriptor,
    gather,
    table_of_a,
    table_of_b,
)
from cuasmrl.gpu.emulator.tensor_memory import HALF, Region, tensor_memory_of
from cuasmrl.gpu.emulator.values import LANES, Value, join
from cuasmrl.gpu.emulator.warps import Warps

_UNITS = {1: np.uint8, 2: np.uint16, 4: np.uint32}
_ROW_WORDS = 8
_DEPTH_BYTES = 32
"""K of one product, whatever the type."""


class _Operands:
    """The operands of a product, understood."""

    def __init__(self, form: Form) -> None:
        first, second = form.operand(0), form.operand(1)
        self.a_cells = cell_address(form, 0) if is_in_tensor_memory(first) else None
        self.a_descriptor = None if self.a_cells else _descriptor(first)
        self.b_descriptor = _descriptor(second)
        self.sums = cell_address(form, 2)
        # The address of sparsity data stands here; where there is none, nothing is read.
        form.operand(3)
        instruction = form.operand(4)
        if instruction.space != "idesc" or instruction.uniform is None or instruction.offset:
            raise UnsupportedError(f"operand {instruction.text}")
        self.instruction = register_reader(instruction.uniform, 0)
        self.adds: ReadMask = form.predicate(5)


def _descriptor(operand: Operand) -> Callable[[Warps], np.ndarray]:
    if operand.kind is not Kind.ADDRESS or operand.space != "gdesc" or operand.uniform is None:
        raise UnsupportedError(f"operand {operand.text}")
    if operand.suffixes or operand.offset or operand.register is not None:
        raise UnsupportedError(f"operand {operand.text}")
    low, high = (register_reader(operand.uniform, k) for k in range(2))
    return lambda w: join(low(w), high(w))


@executes("UTCHMMA", "UTCIMMA", "UTCQMMA")
def multiply(form: Form) -> Step:
    """D = A B + D in tensor memory, with B and mostly A in shared memory."""
    # What the collector of A keeps changes no value.
    form.ignore("A_KEEP", "A_REUSE", "A_LASTUSE")
    if form.modifiers and not form.modifiers[0].startswith("A_"):
        raise UnsupportedError(f"modifier .{form.modifiers[0]}")
    operands = _Operands(form)

    def step(w: Warps) -> None:
        warps = np.flatnonzero(w.machine.warps_of(w))
        kinds = of_warps(w, operands.instruction(w))[warps]
        for order in _one_for_each_block(warps, w.machine.shape[1]):
            for kind in np.unique(kinds[order]):
                own = warps[order][kinds[order] == kind]
                try:
                    matrix = engine_form(form.opcode, int(kind), form.arch)
                except ValueError as error:
                    raise LaneFault(str(error), int(own[0]) * LANES) from None
                _Product(w, form, matrix, own).multiply(operands)

    return step


def _one_for_each_block(warps: Numbers, per_block: int) -> Iterator[np.ndarray]:
    """Orders of warps of one block are carried out one after the other."""
    blocks = warps // per_block
    first = np.searchsorted(blocks, blocks)
    turn = np.arange(warps.size) - first
    for k in range(int(turn.max(initial=-1)) + 1):
        yield np.flatnonzero(turn == k)


class _Product:
    """One product of some warps, each in a block of its own."""

    def __init__(self, w: Warps, form: Form, matrix: EngineForm, warps: Numbers) -> None:
        self.w = w
        self.index = form.instruction.index
        self.matrix = matrix
        self.warps = warps
        self.blocks = warps // w.machine.shape[1]
        self.memory = tensor_memory_of(w)
        self.complete = np.ones(warps.size, np.bool_)
        """Warps whose operands somebody has written."""

    def multiply(self, operands: _Operands) -> None:
        matrix, memory = self.matrix, self.memory
        adds = np.broadcast_to(operands.adds(self.w), (*self.w.machine.shape[:2], 1)).reshape(-1)[self.warps]
        memory.order(self.warps)
        self._note(operands.a_cells is None)
        if operands.a_cells is not None:
            a = self._rows_of_a(operands.a_cells(self.w))
        else:
            assert operands.a_descriptor is not None
            a = self._tiles(operands.a_descriptor, self._a_table, 4, matrix.rows // 16)
        b = self._tiles(operands.b_descriptor, self._b_table, 2, matrix.columns // 8)
        for fragments, sign in ((a, matrix.a_sign), (b, matrix.b_sign)):
            if sign:
                np.bitwise_xor(fragments, np.uint32(sign), out=fragments)
        at = of_warps(self.w, operands.sums(self.w))[self.warps].astype(np.int64)
        region = self._region(at, matrix.columns)
        extent = at << 20 | matrix.rows << 10 | matrix.columns
        memory.deliver(region, self.index, extent, bool(adds.any()))
        cells = (self.blocks[:, None, None], self._lanes(at)[:, :, None], region.columns[:, None, :])
        before = None
        if adds.any():
            before = memory.cells[cells]
            before[~adds] = 0
        memory.cells[cells] = multiply_add(matrix, a, b, before)
        held = memory.written[region.place] | ~adds[:, None, None]
        memory.written[region.place] = held & self.complete[:, None, None]

    def _note(self, reads_a: bool) -> None:
        """The event of a trace."""
        if self.w.machine.recorder is not None:
            rows, columns = self.matrix.rows, self.matrix.columns
            size = _DEPTH_BYTES * (columns + rows * reads_a)
            self.w.machine.recorder.event(
                Event.PRODUCT, self.index, self.warps, -1, phases=rows, counts=columns, moved=size
            )

    # operands in tensor memory

    def _region(self, at: Numbers, columns: int) -> Region:
        lane = at >> 16
        if (lane % HALF != 0).any() or (lane >= (32 if self.matrix.rows == 64 else 1)).any():
            raise LaneFault(
                f"works on {self.matrix.rows} rows from lane {int(lane.max())} on, which has no model",
                int(self.warps[lane.argmax()]) * LANES,
            )
        halves = lane[:, None] // HALF + np.unique(self.matrix.lanes // HALF)
        return self.memory.region(self.warps, halves, at & 0xFFFF, columns)

    def _lanes(self, at: Numbers) -> Numbers:
        return np.asarray((at >> 16)[:, None] + self.matrix.lanes)

    def _rows_of_a(self, address: Value) -> Value:
        """K lies packed in eight columns."""
        at = of_warps(self.w, address)[self.warps].astype(np.int64)
        region = self._region(at, _ROW_WORDS)
        self.memory.take(region, self.index)
        self.complete &= self.memory.written[region.place].all(axis=(1, 2))
        rows = self.memory.cells[
            self.blocks[:, None, None], self._lanes(at)[:, :, None], region.columns[:, None, :]
        ]
        return fragments_of_rows(rows)

    # operands in shared memory

    def _a_table(self, descriptor: Descriptor) -> Table:
        return table_of_a(descriptor, self.matrix.a_across, self.matrix.rows, self.matrix.element)

    def _b_table(self, descriptor: Descriptor) -> Table:
        return table_of_b(descriptor, self.matrix.b_across, self.matrix.columns, self.matrix.element)

    def _tiles(
        self,
        descriptor: Callable[[Warps], np.ndarray],
        table_of: Callable[[Descriptor], Table],
        registers: int,
        count: int,
    ) -> Value:
        """The fragments of an operand, product by product."""
        out = np.empty((registers, self.warps.size * count, LANES), np.uint32)
        each = of_warps(self.w, descriptor(self.w))[self.warps]
        shared = self.w.machine.shared
        for bits in np.unique(each):
            members = np.flatnonzero(each == bits)
            try:
                table = table_of(decode_tensor_core_descriptor(int(bits)))
            except ValueError as error:
                raise LaneFault(str(error), int(self.warps[members[0]]) * LANES) from None
            self._check(table, members)
            units = shared.window(_UNITS[table.unit_bytes]).units
            firsts = self.blocks[members] * (shared.stride // table.unit_bytes)
            gather(units, firsts, table.units, members * count, out)
        return out

    def _check(self, table: Table, members: Numbers) -> None:
        shared, granules = self.w.machine.shared, table.granules
        if granules[-1] * GRANULE + GRANULE > shared.limit:
            raise LaneFault(
                f"reads shared memory at {granules[-1] * GRANULE:#x}, out of bounds; {shared.limit} bytes "
                "are declared",
                int(self.warps[members[0]]) * LANES,
            )
        self.complete[members] &= ~shared.survey(self.blocks[members], granules)
        self.memory.read_tiles(self.warps[members], granules, self.index)


@executes("UTCBAR")
def commit(form: Form) -> Step:
    """One arrival at an mbarrier when all that the warp has ordered so far is done."""
    address: Read | Callable[[Warps], np.ndarray] = near(form, 0)
    if form.known(1) != 0:
        raise UnsupportedError("tells several blocks")
    index = form.instruction.index

    def step(w: Warps) -> None:
        machine, memory = w.machine, tensor_memory_of(w)
        addresses = of_warps(w, address(w))
        one, none = np.ones(1, np.int64), np.zeros(1, np.int64)
        for warp in np.flatnonzero(machine.warps_of(w)):
            block, at = np.array([warp // machine.shape[1]]), int(addresses[warp])
            position = int(warp) * LANES
            barrier = machine.mbarriers.at(at, block, position)
            memory.commit(int(warp), barrier.slot, int(barrier.phase[block[0]]))
            if machine.recorder is not None:
                phase, one_warp = barrier.phase[block], np.array([warp])
                machine.recorder.event(Event.COMMIT, index, one_warp, at, phases=phase, counts=1)
            machine.mbarriers.count(at, block, one, none, index, position)

    return step
