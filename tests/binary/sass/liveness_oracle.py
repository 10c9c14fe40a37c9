"""A second opinion on definitions and uses: the life-range columns of `nvdisasm -c -lrm narrow`.

nvdisasm draws one column per register next to each instruction: `^` defined, `v` used, `x` both. It derives
them from its own instruction tables, so agreement is evidence that two independent readings are the same.
Where the drawing is known to differ from what an instruction does, a function in `quirks.py` says so.
"""

import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from cuasmrl.binary.cubin import Cubin
from cuasmrl.binary.sass import File, Instruction, Listing, find_nvdisasm, resource

_CUDA_12, _CUDA_13 = (0x33, 7), (0x41, 8)
_TITLES = {"GPR": File.R, "PRED": File.P, "UGPR": File.UR, "UPRED": File.UP}
_SECTION = re.compile(r"\s*\.section\s+\.text\.([^,\s]+),")
_LINE = re.compile(r"\s+/\*([0-9a-f]{4,})\*/.*;.*?// \|(.*)\|")
_ROW = re.compile(r"// \|(.*)\|\s*$")


class Reading(NamedTuple):
    """What one instruction defines and uses, over the register files that the oracle draws."""

    defs: frozenset[int]
    uses: frozenset[int]


class _Box(NamedTuple):
    """One box of the drawing: where in the row the column of register 0 stands, and how many there are."""

    file: File
    start: int
    columns: int


def ours(instruction: Instruction) -> Reading:
    drawn = range(resource(File.B, 0))
    return Reading(
        frozenset(access.register for access in instruction.defs if access.register in drawn),
        frozenset(access.register for access in instruction.uses if access.register in drawn),
    )


def oracle(cubin: Cubin) -> dict[str, dict[int, Reading]]:
    """Per kernel, what nvdisasm draws, by address; it leaves out the padding behind the last branch."""
    with tempfile.TemporaryDirectory(prefix="cuasmrl-oracle-") as folder:
        path = Path(folder) / "kernel.cubin"
        path.write_bytes(acceptable_copy(cubin))
        return parse_columns(find_nvdisasm((13, 0)).run(path, "-c", "-lrm", "narrow"))


def acceptable_copy(cubin: Cubin) -> bytes:
    """The cubin without the two things that keep nvdisasm 13 from drawing; no code is changed.

    It draws nothing for the container of CUDA 12, whose header differs from that of CUDA 13 in a few bytes,
    and it refuses kernels with 255 registers ("Invalid register count").
    """
    data = bytearray(cubin.data)
    if (data[7], data[8]) == _CUDA_12:
        data[7:9] = bytes(_CUDA_13)
        data[0x14:0x18] = (1).to_bytes(4, "little")
        data[0x30:0x34] = (0x0A000004 | cubin.arch << 8).to_bytes(4, "little")
    for record in cubin.kernels[0].file_records:
        if record.name == "REGCOUNT" and record.words()[1] == 255:
            data[record.position + 4 : record.position + 8] = (254).to_bytes(4, "little")
    return bytes(data)


def parse_columns(output: str) -> dict[str, dict[int, Reading]]:
    result: dict[str, dict[int, Reading]] = {}
    rows: dict[int, Reading] = {}
    titles: list[str] = []
    boxes: list[_Box] = []
    for line in output.splitlines():
        if match := _SECTION.match(line):
            rows = result.setdefault(match[1], {})
        elif match := _LINE.match(line):
            rows[int(match[1], 16)] = _reading(match[2], boxes)
        elif match := _ROW.search(line):
            first = match[1].split("|")[0].strip()
            if first == "GPR":
                titles = [cell.strip() for cell in match[1].split("|")]
            elif first.startswith("#"):
                boxes = list(_boxes(titles, match[1]))
    return result


def _boxes(titles: list[str], header: str) -> Iterator[_Box]:
    start = 0
    for title, cell in zip(titles, header.split("|"), strict=True):
        if "#" in cell and (digits := cell.split("#")[1].strip()):
            yield _Box(_TITLES[title], start + cell.index("#") + 2, len(digits))
        start += len(cell) + 1


def _reading(row: str, boxes: list[_Box]) -> Reading:
    marks = [
        (resource(box.file, i), mark)
        for box in boxes
        for i, mark in enumerate(row[box.start : box.start + box.columns])
    ]
    return Reading(
        frozenset(register for register, mark in marks if mark in "^x"),
        frozenset(register for register, mark in marks if mark in "vx"),
    )


def readings(cubin: Cubin, listings: dict[str, Listing]) -> Iterator[tuple[Instruction, Reading]]:
    """Every instruction that the oracle draws, with what it draws."""
    drawn = oracle(cubin)
    for name, listing in listings.items():
        for instruction in listing.instructions:
            if instruction.address in drawn[name]:
                yield instruction, drawn[name][instruction.address]
