"""Registers of an instruction as the replay counts them: what needs read ports, and what products write."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from cuasmrl.binary.sass import File, Instruction, Operand, Pipe, file_of
from cuasmrl.binary.sass import Kind as Form
from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.timing.records import READS, RESULT_GROUPS, SLOTS, WRITES


def sources(i: Instruction) -> list[tuple[int, int]]:
    """Up to two registers in each of the three operand slots, with the slot: those that need a read port.

    An operand keeps its slot also when an earlier one is a constant, as the reuse flags do.
    """
    found: list[tuple[int, int]] = []
    if i.declaration is None or i.declaration.pipe not in (Pipe.ALU, Pipe.FMA, Pipe.HALF, Pipe.FP64):
        return found
    used = {use.register for use in i.uses}
    operands = [o for o in i.operands[i.destinations :] if not o.is_predicate][:SLOTS]
    for slot, operand in enumerate(operands):
        register = operand.register if operand.kind is Form.REGISTER else None
        if register is not None and register.file is File.R and register.index is not None:
            found.append((slot, register.index))
            if register.index + 1 in used and _is_pair(i, operand):
                found.append((slot, register.index + 1))
    return found


def _is_pair(i: Instruction, operand: Operand) -> bool:
    """Does this operand stand for two registers? Only if no other operand names the second one."""
    assert operand.register is not None
    second = (operand.register.index or 0) + 1
    return not any(
        o is not operand and o.kind is Form.REGISTER and o.register is not None and o.register.index == second
        for o in i.operands
    )


def packed(slot: int, register: int) -> int:
    """A register with its place in the reuse cache, which goes by slot and bank."""
    return register << 3 | slot << 1 | register & 1


def written(i: Instruction) -> list[int]:
    """General registers that a tensor product writes."""
    return _general(d.register for d in i.defs)[:WRITES]


def read(i: Instruction, results: set[int]) -> list[int]:
    """General registers among these results that an instruction reads."""
    return _general(use.register for use in i.uses if use.register in results)[:READS]


def result_groups(written_by: Sequence[Sequence[int]]) -> dict[int, int]:
    """A number for each register that products write; what the same products write has one number."""
    writers: dict[int, list[int]] = {}
    for number, registers in enumerate(written_by):
        for register in registers:
            writers.setdefault(register, []).append(number)
    numbers: dict[tuple[int, ...], int] = {}
    found = {r: numbers.setdefault(tuple(by), len(numbers)) for r, by in sorted(writers.items())}
    if len(numbers) > RESULT_GROUPS:
        raise CuasmrlError(
            f"Tensor products write {len(numbers)} groups of registers, and the model follows "
            f"{RESULT_GROUPS}; raise RESULT_GROUPS in gpu/timing/records.py."
        )
    return found


def grouped(registers: Iterable[int], group_of: dict[int, int]) -> list[int]:
    return sorted({group_of[r] for r in registers if r in group_of})


def _general(registers: Iterable[int]) -> list[int]:
    return sorted(r for r in set(registers) if file_of(r) is File.R)
