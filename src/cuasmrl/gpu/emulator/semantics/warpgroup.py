"""Warpgroup products (wgmma) and waiting for them: values here, what is in flight in `warpgroups.py`."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from cuasmrl.binary.sass import Kind, Operand
from cuasmrl.gpu.emulator.faults import LaneFault, UnsupportedError
from cuasmrl.gpu.emulator.forms import Form, Read, Step, register_reader
from cuasmrl.gpu.emulator.semantics.registry import executes
from cuasmrl.gpu.emulator.tensor.operands import (
    GRANULE,
    Table,
    decode_warpgroup_descriptor,
    gather,
    table_of_a,
    table_of_b,
)
from cuasmrl.gpu.emulator.tensor.warpgroup import ROWS, WARPS, WarpgroupForm, multiply_warps, warpgroup_form
from cuasmrl.gpu.emulator.values import LANES, Value, join
from cuasmrl.gpu.emulator.warpgroups import products_of
from cuasmrl.gpu.emulator.warps import Warps

Numbers = npt.NDArray[np.int64]
ReadTable = Callable[[int], Table]
"""Where an operand lies, by the 64 bits of its descriptor."""


@executes("WARPGROUP")
def order_products(form: Form) -> Step:
    """ARRIVE: registers are ready for products; DEPBAR: wait until at most so many groups are in flight."""
    if form.choose("ARRIVE", "DEPBAR") == "ARRIVE":
        return lambda w: products_of(w).arrive(w)
    form.ignore("LE")
    if form.operand(0).text != "gsb0":
        raise UnsupportedError(f"waits for {form.sources[0].text}")
    count = form.immediate(1)
    return lambda w: products_of(w).wait(w, count)


class _Operands:
    """The operands of a product, understood."""

    def __init__(self, form: Form, matrix: WarpgroupForm) -> None:
        kinds = [operand.kind for operand in form.sources]
        at = kinds.index(Kind.ADDRESS)
        descriptor = form.operand(at)
        if descriptor.space != "gdesc" or descriptor.uniform is None or at > 1:
            raise UnsupportedError(f"operand {descriptor.text}")
        known = {"tnspA", "tnspB", "negA", "negB"}
        if not set(descriptor.suffixes) <= known:
            raise UnsupportedError(f"operand {descriptor.text}")
        if not {"tnspA", "tnspB"}.isdisjoint(descriptor.suffixes) and matrix.tile.a not in ("F16", "BF16"):
            raise UnsupportedError(f"operand {descriptor.text} of elements that are not 16 bits wide")
        words: list[Read] = [register_reader(descriptor.uniform, k) for k in range(4)]
        self.a_across, self.b_across = descriptor.has("tnspA"), descriptor.has("tnspB")
        self.a_descriptor = None if at else (words[0], words[1])
        self.b_descriptor = words[2], words[3]
        self.fragments = form.registers(0, 4) if at else None
        self.fragment_range = _range(form.sources[0], 4) if at else range(0)
        self.sums = form.registers(at + 1, matrix.accumulators)
        self.sum_range = _range(form.sources[at + 1], matrix.accumulators)
        self.adds = (
            form.predicate(at + 2)
            if at + 2 < len(form.sources) and self._is_predicate(form, at + 2)
            else None
        )
        rest = at + 2 + (self.adds is not None)
        self.closes = rest < len(form.sources) and form.operand(rest).text == "gsb0"
        self.negates = _sign(matrix, descriptor, "negA"), _sign(matrix, descriptor, "negB")

    @staticmethod
    def _is_predicate(form: Form, k: int) -> bool:
        return form.sources[k].is_predicate


def _range(operand: Operand, count: int) -> range:
    register = operand.register
    return (
        range(0)
        if register is None or register.index is None
        else range(register.index, register.index + count)
    )


def _sign(matrix: WarpgroupForm, descriptor: Operand, suffix: str) -> np.uint32 | None:
    if not descriptor.has(suffix):
        return None
    if matrix.sign is None:
        raise UnsupportedError(f"operand {descriptor.text}")
    return np.uint32(matrix.sign)


@executes("HGMMA", "IGMMA", "QGMMA")
def multiply_warpgroup(form: Form) -> Step:
    """D = A B + C, with B and mostly A in shared memory; the registers of D are in flight from here on."""
    form.ignore(*form.modifiers)
    try:
        matrix = warpgroup_form(form.instruction.mnemonic, form.arch)
    except ValueError as error:
        raise UnsupportedError(str(error)) from error
    operands = _Operands(form, matrix)
    writes = form.result_words(matrix.accumulators)
    results = _range(form.destinations[0], matrix.accumulators)

    def a_table(bits: int) -> Table:
        return table_of_a(decode_warpgroup_descriptor(bits), operands.a_across, ROWS)

    def b_table(bits: int) -> Table:
        return table_of_b(decode_warpgroup_descriptor(bits), operands.b_across, matrix.columns)

    def step(w: Warps) -> None:
        warps = products_of(w).issue(form.instruction, results, operands.fragment_range, w, operands.closes)
        c = _sums(w, operands, warps)
        place = np.arange(warps.size)
        if operands.fragments is not None:
            a, a_of = _registers(w, operands.fragments(w), warps), place
        else:
            assert operands.a_descriptor is not None
            reader = _Tiles(w, form, warps, operands.closes)
            a, a_of = reader.fragments(operands.a_descriptor, a_table, 4, ROWS // 16)
            a_of = a_of + warps % WARPS
        b, b_of = _Tiles(w, form, warps, operands.closes).fragments(
            operands.b_descriptor, b_table, 2, matrix.tiles
        )
        for fragments, sign in zip((a, b), operands.negates, strict=True):
            if sign is not None:
                np.bitwise_xor(fragments, sign, out=fragments)
        d = multiply_warps(matrix, a, b, c, a_of, b_of)
        shape = w.machine.shape
        for write, sums in zip(writes, d, strict=True):
            write(w, _spread(sums, warps, shape))

    return step


def _sums(w: Warps, operands: _Operands, warps: Numbers) -> Value | None:
    """C, or None where the sums begin at zero."""
    if not operands.sum_range:
        return None
    c = _registers(w, operands.sums(w), warps)
    if operands.adds is not None:
        kept = np.broadcast_to(operands.adds(w), (*w.machine.shape[:2], 1)).reshape(-1)[warps]
        c = np.where(kept[None, :, None], c, np.uint32(0))
    return c


def _registers(w: Warps, values: tuple[Value, ...], warps: Numbers) -> Value:
    """Registers (registers, warps, 32) of some warps."""
    shape = w.machine.shape
    found = np.empty((len(values), warps.size, LANES), np.uint32)
    for row, value in zip(found, values, strict=True):
        row[...] = np.broadcast_to(value, shape).reshape(-1, LANES)[warps]
    return found


def _spread(values: Value, warps: Numbers, shape: tuple[int, int, int]) -> Value:
    """One register of all warps of the slab, of which some have values."""
    if warps.size == shape[0] * shape[1]:
        return values.reshape(shape)
    spread = np.zeros((shape[0] * shape[1], LANES), np.uint32)
    spread[warps] = values
    return spread.reshape(shape)


class _Tiles:
    """Reads an operand from shared memory, once for every warpgroup."""

    def __init__(self, w: Warps, form: Form, warps: Numbers, closes: bool) -> None:
        self.w = w
        self.form = form
        self.warps = warps
        self.closes = closes
        self.groups, self.group_of = np.unique(warps // WARPS, return_inverse=True)
        """Warpgroups of the slab that take part, and to which of them each warp belongs."""

    def fragments(
        self, descriptor: tuple[Read, Read], table_of: ReadTable, registers: int, count: int
    ) -> tuple[Value, Numbers]:
        """All fragments, and where those of each warp begin."""
        out = np.empty((registers, self.groups.size * count, LANES), np.uint32)
        for bits, members in self._by_descriptor(descriptor):
            try:
                table = table_of(bits)
            except ValueError as error:
                raise LaneFault(str(error), int(self.warps[0]) * LANES) from None
            self._check(table, members)
            shared = self.w.machine.shared
            units = shared.window(np.uint32 if table.unit_bytes == 4 else np.uint16).units
            blocks = self.groups[members] * WARPS // self.w.machine.shape[1]
            firsts = blocks * (shared.stride // table.unit_bytes)
            gather(units, firsts, table.units, members * count, out)
        return out, self.group_of.astype(np.int64) * count

    def _by_descriptor(self, descriptor: tuple[Read, Read]) -> Iterator[tuple[int, Numbers]]:
        shape = self.w.machine.shape
        whole = join(descriptor[0](self.w), descriptor[1](self.w))
        if whole.size == 1:
            yield int(whole.item()), np.arange(self.groups.size)
            return
        each = np.broadcast_to(whole, (*shape[:2], 1)).reshape(-1)[self.warps]
        of_group = np.empty(self.groups.size, np.uint64)
        of_group[self.group_of] = each
        differing = of_group[self.group_of] != each
        if differing.any():
            raise LaneFault(
                "the warps of a warpgroup do not name the same operand",
                int(self.warps[differing.argmax()]) * LANES,
            )
        for bits in np.unique(of_group):
            yield int(bits), np.flatnonzero(of_group == bits)

    def _check(self, table: Table, members: Numbers) -> None:
        machine = self.w.machine
        shared, granules = machine.shared, table.granules
        warps = self.warps[np.isin(self.group_of, members)]
        if granules[-1] * GRANULE + GRANULE > shared.limit:
            raise LaneFault(
                f"reads shared memory at {granules[-1] * GRANULE:#x}, out of bounds; {shared.limit} bytes "
                "are declared",
                int(warps[0]) * LANES,
            )
        blocks = np.unique(warps // machine.shape[1])
        empty = shared.survey(blocks, granules)
        if empty.any():
            missing = np.zeros((len(self.form.instruction.defs), *machine.shape), np.bool_)
            those = warps[empty[np.searchsorted(blocks, warps // machine.shape[1])]]
            missing.reshape(len(missing), -1, LANES)[:, those] = True
            machine.undefined.begin(self.form.instruction, missing, int(granules[0]) * GRANULE)
        products_of(self.w).read_tiles(warps, granules, self.form.instruction.index, self.closes)
