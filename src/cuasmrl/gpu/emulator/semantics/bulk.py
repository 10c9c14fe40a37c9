"""Bulk copies by the tensor memory accelerator (TMA): boxes of tensors, and plain stretches of bytes.

They are uniform instructions: a warp gives one order, whoever of its lanes is active. An order is carried out
when it is given. What it writes to shared memory may be read once its mbarrier has been waited for; what it
reads there must not be written before its group of stores has been waited for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from cuasmrl.binary.sass import Kind, Register
from cuasmrl.gpu.emulator.boxes import REDUCTIONS, read_box, reduction, sectors_of, write_box
from cuasmrl.gpu.emulator.events import Event, sectors_between
from cuasmrl.gpu.emulator.faults import LaneFault, UnsupportedError
from cuasmrl.gpu.emulator.forms import Form, Read, Step, register_reader
from cuasmrl.gpu.emulator.pending_reads import GRANULE, Numbers
from cuasmrl.gpu.emulator.regions import Bytes
from cuasmrl.gpu.emulator.semantics.mbarrier import of_warps
from cuasmrl.gpu.emulator.semantics.registry import executes
from cuasmrl.gpu.emulator.tensor.operands import swizzled
from cuasmrl.gpu.emulator.tensor_maps import (
    ALIGNMENT,
    BYTES,
    ImpossibleMapError,
    TensorMap,
    decode_tensor_map,
)
from cuasmrl.gpu.emulator.values import LANES
from cuasmrl.gpu.emulator.warps import Warps

_BOX_ALIGNMENT = 128
_UNITS = 16
"""Bytes that the size of a plain copy is counted in."""
_SIZE_MASK = 0xFFFF


@dataclass(frozen=True)
class _Order:
    """What one warp orders: its block, a thread to name in errors, and the words of each operand."""

    block: int
    position: int
    warp: int
    words: tuple[tuple[int, ...], ...]

    def address(self, operand: int, first: int = 0) -> int:
        low, high = self.words[operand][first : first + 2]
        return low | high << 32


Orders = Callable[[Warps], Iterator[_Order]]


def _orders(form: Form, *widths: int) -> Orders:
    """Reads the registers of the first operands, so many of each."""
    reads = [
        [register_reader(_uniform(form, k), word) for word in range(width)] for k, width in enumerate(widths)
    ]
    for k in range(len(widths), len(form.sources)):
        if form.sources[k].space != "desc":
            raise UnsupportedError(f"operand {form.sources[k].text}")
        # How L2 should treat the lines.
        form.operand(k)

    def orders(w: Warps) -> Iterator[_Order]:
        machine = w.machine
        warps = np.flatnonzero(machine.warps_of(w))
        values = [[_words(w, read)[warps] for read in operand] for operand in reads]
        for i, warp in enumerate(warps):
            words = tuple(tuple(int(word[i]) for word in operand) for operand in values)
            yield _Order(int(warp) // machine.shape[1], int(warp) * LANES, int(warp), words)

    return orders


def _words(w: Warps, read: Read) -> np.ndarray:
    return np.asarray(of_warps(w, read(w)))


def _uniform(form: Form, k: int) -> Register:
    operand = form.operand(k)
    register = operand.uniform if operand.kind is Kind.ADDRESS else operand.register
    if register is None or operand.offset or operand.space not in ("", "desc"):
        raise UnsupportedError(f"operand {operand.text}")
    return register


def _dimensions(form: Form) -> int:
    return int(form.choose("1D", "2D", "3D", "4D", "5D")[0])


@executes("UTMALDG")
def load_box(form: Form) -> Step:
    """A box from global to shared memory; its mbarrier is told all of its bytes, also those outside."""
    rank = _dimensions(form)
    orders = _orders(form, 2 + rank, 2)
    index = form.instruction.index

    def step(w: Warps) -> None:
        for order in orders(w):
            to, barrier, *at = order.words[0]
            map_ = _map(w, order, rank)
            data = read_box(w.machine.env.memory, map_, _signed(at), order.position)
            if w.machine.recorder is not None:
                w.machine.recorder.traffic(index, order.warp, sectors_of(map_, _signed(at)), data.size)
            _receive(w, order, _places(w, map_, to, order), data, barrier, index)

    return step


@executes("UTMASTG", "UTMAREDG")
def store_box(form: Form) -> Step:
    """A box from shared to global memory, or combined with what is there."""
    rank = _dimensions(form)
    combine = reduction(form.choose(*REDUCTIONS)) if form.opcode == "UTMAREDG" else None
    orders = _orders(form, 1 + rank, 2)
    index = form.instruction.index

    def step(w: Warps) -> None:
        for order in orders(w):
            start, *at = order.words[0]
            map_ = _map(w, order, rank)
            data = _taken(w, order, _places(w, map_, start, order), index)
            if w.machine.recorder is not None:
                w.machine.recorder.traffic(index, order.warp, sectors_of(map_, _signed(at)), data.size)
            write_box(w.machine.env.memory, map_, _signed(at), data, order.position, combine)

    return step


@executes("UBLKCP")
def copy_bytes(form: Form) -> Step:
    """A stretch of bytes between global and shared memory: `.S.G` into it, `.G.S` out of it."""
    if form.modifiers[:2] == ("S", "G"):
        form.ignore("S", "G")
        return _copy_in(form)
    if form.modifiers[:2] != ("G", "S"):
        raise UnsupportedError("copies to the shared memory of another block")
    form.ignore("S", "G")
    orders, index = _orders(form, 2, 1, 1), form.instruction.index

    def step(w: Warps) -> None:
        for order in orders(w):
            data = _taken(w, order, _stretch(w, order, order.words[1][0]), index)
            _note_stretch(w, order, order.address(0), data.size, index)
            w.machine.env.memory.write(order.address(0), data, order.position)

    return step


def _copy_in(form: Form) -> Step:
    orders, index = _orders(form, 2, 2, 1), form.instruction.index

    def step(w: Warps) -> None:
        for order in orders(w):
            to, barrier = order.words[0]
            places = _stretch(w, order, to)
            data = w.machine.env.memory.read(order.address(1), places.size * GRANULE, order.position)
            _note_stretch(w, order, order.address(1), data.size, index)
            _receive(w, order, places, data, barrier, index)

    return step


@executes("UTMACMDFLUSH")
def close_group(form: Form) -> Step:
    """All stores that a warp has ordered since the last one become a group that can be waited for."""
    return lambda w: w.machine.bulk_stores.close(np.flatnonzero(w.machine.warps_of(w)))


def finish_stores(w: Warps, in_flight: int) -> None:
    """All but the last `in_flight` groups of stores of these warps are done."""
    w.machine.bulk_stores.wait(np.flatnonzero(w.machine.warps_of(w)), in_flight)


@executes("UTMACCTL", "UTMAPF", "UBLKPF")
def prefetch(form: Form) -> Step:
    """Caches of maps and of memory: there are none here."""
    form.ignore(*form.modifiers)
    for k in range(len(form.sources)):
        form.operand(k)
    return lambda w: None


def _signed(coordinates: list[int]) -> tuple[int, ...]:
    return tuple((at ^ 1 << 31) - (1 << 31) for at in coordinates)


def _map(w: Warps, order: _Order, rank: int) -> TensorMap:
    address = order.address(1)
    if address % ALIGNMENT:
        raise LaneFault(f"the tensor map at {address:#x} is not aligned to {ALIGNMENT}", order.position)
    data = w.machine.env.memory.read(address, BYTES, order.position)
    try:
        map_ = decode_tensor_map(data.tobytes())
    except ImpossibleMapError as error:
        raise LaneFault(f"the tensor map at {address:#x} is impossible: {error}", order.position) from None
    if map_.rank != rank:
        raise LaneFault(
            f"the tensor map at {address:#x} has {map_.rank} dimensions, and {rank} coordinates are given",
            order.position,
        )
    return map_


def _places(w: Warps, map_: TensorMap, start: int, order: _Order) -> Numbers:
    """The granules of shared memory that a box takes, in the order of its bytes."""
    if start % _BOX_ALIGNMENT:
        raise LaneFault(
            f"a box at {start:#x} of shared memory is not aligned to {_BOX_ALIGNMENT}", order.position
        )
    _check_bounds(w, order, start, map_.box_bytes)
    at = start + GRANULE * np.arange(map_.box_bytes // GRANULE)
    return (swizzled(at, map_.swizzle) if map_.swizzle else at) // GRANULE


def _stretch(w: Warps, order: _Order, start: int) -> Numbers:
    size = (order.words[2][0] & _SIZE_MASK) * _UNITS
    if start % GRANULE:
        raise LaneFault(
            f"a bulk copy at {start:#x} of shared memory is not aligned to {GRANULE}", order.position
        )
    _check_bounds(w, order, start, size)
    return start // GRANULE + np.arange(size // GRANULE)


def _check_bounds(w: Warps, order: _Order, start: int, size: int) -> None:
    limit = w.machine.shared.limit
    if start + size > limit:
        raise LaneFault(
            f"{size} bytes of shared memory at {start:#x} are out of bounds; {limit} bytes are declared",
            order.position,
        )


def _note_stretch(w: Warps, order: _Order, address: int, size: int, index: int) -> None:
    if w.machine.recorder is not None:
        sectors = sectors_between(np.array([address]), size)
        w.machine.recorder.traffic(index, order.warp, sectors, size)


def _receive(w: Warps, order: _Order, places: Numbers, data: Bytes, barrier: int, index: int) -> None:
    machine = w.machine
    blocks = np.array([order.block])
    told = machine.mbarriers.at(barrier, blocks, order.position)
    if machine.recorder is not None:
        warp, size = np.array([order.warp]), data.size
        machine.recorder.event(Event.COPY_IN, index, warp, barrier, phases=told.phase[blocks], moved=size)
    machine.shared.receive(order.block, places, data, told.slot, int(told.phase[order.block]))
    none = np.zeros(1, np.int64)
    machine.mbarriers.count(barrier, blocks, none, none - data.size, index, order.position)


def _taken(w: Warps, order: _Order, places: Numbers, index: int) -> Bytes:
    """Bytes of shared memory, which must not change before the group of this order is done."""
    machine = w.machine
    blocks = np.array([order.block])
    if machine.shared.survey(blocks, places).any():
        raise LaneFault(
            f"stores shared memory from {int(places.min()) * GRANULE:#x} on, parts of which nobody wrote",
            order.position,
        )
    machine.bulk_stores.begin(order.warp, places, index)
    if machine.recorder is not None:
        size = places.size * GRANULE
        machine.recorder.event(Event.COPY_OUT, index, np.array([order.warp]), -1, moved=size)
    first = order.block * machine.shared.stride // GRANULE
    taken: Bytes = machine.shared.data.reshape(-1, GRANULE)[first + places].reshape(-1)
    return taken
