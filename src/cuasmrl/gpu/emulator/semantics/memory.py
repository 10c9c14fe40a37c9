"""Loads and stores: global, shared, local and constant memory."""

import numpy as np

from cuasmrl.binary.sass import File, Kind
from cuasmrl.gpu.emulator.addresses import far, near
from cuasmrl.gpu.emulator.faults import LaneFault, UnsupportedError
from cuasmrl.gpu.emulator.forms import Form, Step
from cuasmrl.gpu.emulator.semantics.registry import executes
from cuasmrl.gpu.emulator.spaces import unit_of
from cuasmrl.gpu.emulator.values import TRUE, Mask, constant
from cuasmrl.gpu.emulator.warps import Warps

_HINTS = ("EF", "EL", "EU", "EN", "LU", "NA", "LTC64B", "LTC128B", "LTC256B", "SYS", "STRONG", "WEAK",
          "CONSTANT", "PRIVATE", "GPU", "CTA", "SM", "VC", "CI", "U")  # fmt: skip
"""Cache policies and memory orders: one instruction is executed at a time, so they change no value."""

_PLACES = {"LDG": "memory", "LD": "generic", "STG": "memory", "ST": "generic", "LDS": "shared",
           "STS": "shared", "LDL": "local", "STL": "local"}  # fmt: skip


def access_size(form: Form) -> tuple[int, bool]:
    """Bytes per thread, and whether a narrow value is sign-extended."""
    name = form.choose("U8", "S8", "U16", "S16", "32", "64", "128", default="32")
    return {"8": 1, "16": 2, "32": 4, "64": 8, "28": 16}[name.lstrip("US")[-2:]], name.startswith("S")


@executes("LDG", "LD", "LDS", "LDL")
def load(form: Form) -> Step:
    form.ignore(*_HINTS)
    place = _PLACES[form.opcode]
    address = far(form, 0) if place in ("memory", "generic") else near(form, 0)
    size, signed = access_size(form)
    present = form.optional_predicate(1, TRUE)
    writes = form.result_words(max(1, size // 4))
    index = form.instruction.index
    is_plain = place == "memory" and len(form.sources) == 1

    def step(w: Warps) -> None:
        machine = w.machine
        where = address(w)
        if is_plain and where.shape[1:] == (1, 1) and machine.recorder is None:
            narrow = machine.memory.load_by_block(where, w.active, size, signed)
            for write, value in zip(writes, narrow, strict=True):
                write(w, value)
            return
        at, active = machine.slab.flat(where), machine.slab.active(w.active & present(w))
        machine.note_access(index, at, active, size)
        values = getattr(machine, place).load(at, active, size, signed)
        if place == "shared":
            missing = machine.shared.unwritten(at, active, size)
            if missing is not None:
                machine.undefined.begin(form.instruction, missing, int(at[missing.any(axis=0).argmax()]))
        for write, value in zip(writes, values, strict=True):
            write(w, value)

    return step


@executes("STG", "ST", "STS", "STL")
def store(form: Form) -> Step:
    form.ignore(*_HINTS)
    place = _PLACES[form.opcode]
    address = far(form, 0) if place in ("memory", "generic") else near(form, 0)
    size, _ = access_size(form)
    data = form.registers(1, max(1, size // 4))
    index = form.instruction.index

    def step(w: Warps) -> None:
        machine = w.machine
        if place == "memory" and machine.recorder is None and _are_few(w.active, machine.shape):
            machine.memory.store_by_few(address(w), w.active, size, data(w))
            return
        at, active = machine.slab.flat(address(w)), machine.slab.active(w.active)
        machine.note_access(index, at, active, size)
        getattr(machine, place).store(at, active, size, data(w))

    return step


def _are_few(active: Mask, shape: tuple[int, int, int]) -> bool:
    """Are they the same threads in every block, and less than one in a warp?"""
    return active.shape == (1, *shape[1:]) and int(np.count_nonzero(active)) < shape[1]


@executes("LDC", "ULDC", "LDCU")
def load_constant(form: Form) -> Step:
    operand = form.operand(0)
    if operand.kind is not Kind.CONSTANT or operand.bank is None or operand.descriptor is not None:
        raise UnsupportedError(f"expects a constant bank instead of {operand.text}")
    size, signed = access_size(form)
    bank, offset = operand.bank, operand.offset
    writes = form.result_words(max(1, size // 4))
    index = operand.uniform if operand.uniform is not None else operand.register
    if index is not None and index.index is not None:
        if index.file not in (File.R, File.UR):
            raise UnsupportedError(f"reads {operand.text}")
        return _load_indexed(form, bank, offset, size, signed)

    def step(w: Warps) -> None:
        for k, write in enumerate(writes):
            write(w, w.constant(bank, offset + 4 * k))

    def narrow(w: Warps) -> None:
        bits = int(w.constant(bank, offset & ~3).item()) >> 8 * (offset & 3) & (1 << 8 * size) - 1
        if signed and bits >> (8 * size - 1):
            bits -= 1 << 8 * size
        writes[0](w, constant(bits))

    return narrow if size < 4 else step


def _load_indexed(form: Form, bank: int, offset: int, size: int, signed: bool) -> Step:
    """A table of constants, indexed by a register."""
    operand = form.operand(0)
    register = operand.uniform if operand.uniform is not None else operand.register
    assert register is not None
    writes = form.result_words(max(1, size // 4))
    unit = np.dtype(unit_of(size, signed))

    def step(w: Warps) -> None:
        values = w.registers.general if register.file is File.R else w.registers.uniform
        table = w.machine.constants.bank(bank)
        at = (values[register.index or 0].astype(np.int64) + offset) & 0xFFFF_FFFF
        active = w.active if register.file is File.R else w.active.any(axis=2, keepdims=True)
        beyond = active & ((at + size > table.size) | (at % size != 0))
        if beyond.any():
            position = int(w.machine.slab.flat(beyond).argmax())
            where = int(w.machine.slab.flat(at)[position])
            raise LaneFault(
                f"{size} bytes of constant bank {bank} at {where:#x} are out of bounds or not aligned; "
                f"the bank has {table.size}",
                position,
            )
        units = table[: table.size // unit.itemsize * unit.itemsize].view(unit)
        at = np.where(active, at // unit.itemsize, 0)
        for k, write in enumerate(writes):
            write(w, units[at + k].astype(np.uint32))

    return step
