"""A second opinion on definitions and uses: the life-range columns of `nvdisasm -c -lrm narrow`.

nvdisasm draws one column per register next to each instruction: `^` defined, `v` used, `x` both. It derives
them from its own instruction tables, so agreement is evidence that two independent readings are the same.
Where the drawing is known to differ from what the instruction does, `quirks.py` says so.
"""

import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cuasmrl.cubin import Cubin
from cuasmrl.sass import File, Instruction, Listing, find_nvdisasm, resource

_CUDA_12, _CUDA_13 = (0x33, 7), (0x41, 8)
_TITLES = {"GPR": File.R, "PRED": File.P, "UGPR": File.UR, "UPRED": File.UP}
_SECTION = re.compile(r"\s*\.section\s+\.text\.([^,\s]+),")
_LINE = re.compile(r"\s+/\*([0-9a-f]{4,})\*/.*;.*?// \|(.*)\|")
_ROW = re.compile(r"// \|(.*)\|\s*$")


@dataclass(frozen=True)
class Marks:
    """What the oracle says about one instruction."""

    defs: frozenset[int]
    uses: frozenset[int]
    columns: frozenset[int]
    """Registers that have a column at all; the others the oracle says nothing about."""


def marks_of(cubin: Cubin) -> dict[str, dict[int, Marks]]:
    """Per kernel, the oracle's marks by address; it leaves out the padding behind the last branch."""
    tool = find_nvdisasm((13, 0))
    with tempfile.TemporaryDirectory(prefix="cuasmrl-oracle-") as folder:
        path = Path(folder) / "kernel.cubin"
        path.write_bytes(acceptable_copy(cubin))
        return parse_columns(tool.run(path, "-c", "-lrm", "narrow"))


def acceptable_copy(cubin: Cubin) -> bytes:
    """The cubin with two things changed that keep nvdisasm 13 from drawing columns, and no code.

    It draws none for the CUDA 12 container, whose header differs in six bytes, and refuses kernels with
    255 registers ("Invalid register count").
    """
    data = bytearray(cubin.data)
    if (data[7], data[8]) == _CUDA_12:
        data[7:9] = bytes(_CUDA_13)
        data[0x14:0x18] = (1).to_bytes(4, "little")
        data[0x30:0x34] = (0x0A000004 | cubin.arch << 8).to_bytes(4, "little")
    for kernel in cubin.kernels:
        if kernel.registers == 255:
            for record in kernel.file_records:
                if record.name == "REGCOUNT" and record.words()[1] == 255:
                    data[record.position + 4 : record.position + 8] = (254).to_bytes(4, "little")
    return bytes(data)


def parse_columns(output: str) -> dict[str, dict[int, Marks]]:
    result: dict[str, dict[int, Marks]] = {}
    rows: dict[int, Marks] = {}
    titles: list[str] = []
    groups: list[tuple[File, int, int]] = []
    columns: frozenset[int] = frozenset()
    for line in output.splitlines():
        if match := _SECTION.match(line):
            rows = result.setdefault(match[1], {})
        elif match := _LINE.match(line):
            rows[int(match[1], 16)] = _marks(match[2], groups, columns)
        elif match := _ROW.search(line):
            cells = match[1].split("|")
            if cells[0].strip() == "GPR":
                titles = [cell.strip() for cell in cells]
            elif cells[0].strip().startswith("#"):
                groups = list(_groups(titles, match[1]))
                columns = frozenset(resource(file, i) for file, _, count in groups for i in range(count))
    return result


def _groups(titles: list[str], header: str) -> Iterator[tuple[File, int, int]]:
    """(register file, text position of its register 0, number of columns) for each box of the header."""
    start = 0
    for title, cell in zip(titles, header.split("|"), strict=True):
        digits = cell.split("#")[1].strip() if "#" in cell else ""
        if digits:
            yield _TITLES[title], start + cell.index("#") + 2, len(digits)
        start += len(cell) + 1


def _marks(row: str, groups: list[tuple[File, int, int]], columns: frozenset[int]) -> Marks:
    defs, uses = set(), set()
    for file, start, count in groups:
        for i, mark in enumerate(row[start : start + count]):
            if mark in "^x":
                defs.add(resource(file, i))
            if mark in "vx":
                uses.add(resource(file, i))
    return Marks(frozenset(defs), frozenset(uses), columns)


def accesses(instruction: Instruction) -> tuple[frozenset[int], frozenset[int]]:
    """Our reading: (defs, uses) over the register files that the oracle draws."""
    drawn = range(resource(File.B, 0))
    return (
        frozenset(access.register for access in instruction.defs if access.register in drawn),
        frozenset(access.register for access in instruction.uses if access.register in drawn),
    )


def pairs(cubin: Cubin, listings: dict[str, Listing]) -> Iterator[tuple[Instruction, Marks]]:
    marks = marks_of(cubin)
    for name, listing in listings.items():
        for instruction in listing.instructions:
            if instruction.address in marks[name]:
                yield instruction, marks[name][instruction.address]
