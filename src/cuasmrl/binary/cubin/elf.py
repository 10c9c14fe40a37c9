"""The ELF64 tables of a cubin, read within strict bounds.

A cubin arrives from anywhere, so every table is checked against the file before it is walked: damaged
input costs one sentence, never more time or memory than the size of the file allows. Field layouts
are those of the System V ABI; NVIDIA's own section types need no special treatment here.
"""

import struct
from dataclasses import dataclass
from typing import NamedTuple

from cuasmrl.errors import CuasmrlError

MACHINE_CUDA = 190

_MAGIC = b"\x7fELF"
_CLASS_64, _LITTLE_ENDIAN = 2, 1
_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_PROGRAM_HEADER_BYTES = 56
_SYMBOL_TABLE, _STRING_TABLE = 2, 3
# SHT_NULL, SHT_NOBITS, and what cubins from separate compilation have in place of the latter:
# CUDA_GLOBAL, CUDA_LOCAL, CUDA_SHARED, CUDA_SHARED_RESERVED. They announce memory and have no bytes.
_WITHOUT_BYTES = (0, 8, 0x70000007, 0x70000009, 0x7000000A, 0x70000015)
_FIRST_SPECIAL_INDEX = 0xFF00
_FUNCTION = 2
# Names may share their tails, so their total length can pass the size of the string table; real cubins
# stay below the size of the file. Without a limit a table of overlapping names costs its square.
_NAME_BYTES_PER_FILE_BYTE = 4


@dataclass(frozen=True)
class Section:
    index: int
    name: str
    offset: int
    size: int
    info: int
    in_file: bool = True
    """False for a section that only announces memory, such as shared memory."""


class Symbol(NamedTuple):
    name: str
    section: int
    """Index of its section, or -1 for none."""
    value: int
    is_function: bool


@dataclass(frozen=True)
class Header:
    osabi: int
    flags: int
    section_table: int
    section_count: int
    names_index: int
    spans: tuple[tuple[int, int, str], ...]
    """Bytes taken by the header and its tables: (start, end, what)."""


class _RawSection(NamedTuple):
    name: int
    type: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    alignment: int
    entry_size: int


def read_header(data: bytes, source: str) -> Header:
    """The file header, after checking that this is a CUDA cubin and holds its tables whole."""
    if data[:4] != _MAGIC:
        raise CuasmrlError(
            f"{source} is not an ELF file; give a cubin (nvcc -cubin, or Triton's .cubin), "
            "not PTX, a fat binary or an object archive"
        )
    if len(data) < _HEADER.size:
        raise CuasmrlError(f"{source} is truncated: it ends inside the ELF header; recompile the cubin")
    (identity, _, machine, _, _, program_table, section_table, flags, _, program_bytes, program_count,
     section_bytes, section_count, names_index) = _HEADER.unpack_from(data)  # fmt: skip
    if identity[4] != _CLASS_64 or identity[5] != _LITTLE_ENDIAN or machine != MACHINE_CUDA:
        raise CuasmrlError(
            f"{source} is an ELF file for machine {machine}, not a CUDA cubin; "
            "if it is a program or object file, take the cubin out with cuobjdump -xelf all"
        )
    if section_count == 0 or section_bytes != _SECTION.size or not 0 < names_index < section_count:
        raise CuasmrlError(f"{source} is damaged: its section table is not readable; recompile the cubin")
    if program_count and program_bytes != _PROGRAM_HEADER_BYTES:
        raise CuasmrlError(f"{source} is damaged: its program table is not readable; recompile the cubin")
    spans = (
        (0, _HEADER.size, "the ELF header"),
        (section_table, section_table + section_count * _SECTION.size, "the section table"),
        (program_table, program_table + program_count * _PROGRAM_HEADER_BYTES, "the program table"),
    )
    for _, end, what in spans:
        if end > len(data):
            raise CuasmrlError(f"{source} is truncated: {what} ends beyond the file; recompile the cubin")
    return Header(identity[7], flags, section_table, section_count, names_index, spans)


def read_tables(data: bytes, header: Header, source: str) -> tuple[tuple[Section, ...], tuple[Symbol, ...]]:
    """All sections, and the symbols of `.symtab`."""
    raw = [
        _RawSection(*_SECTION.unpack_from(data, header.section_table + i * _SECTION.size))
        for i in range(header.section_count)
    ]
    names = _Names(data, source)
    sections = []
    for index, entry in enumerate(raw):
        name = names.read(raw[header.names_index], entry.name)
        in_file = entry.type not in _WITHOUT_BYTES
        if in_file and entry.offset + entry.size > len(data):
            raise CuasmrlError(
                f"{source} is truncated: section {name or index} ends beyond the file; recompile the cubin"
            )
        sections.append(Section(index, name, entry.offset, entry.size, entry.info, in_file))
    return tuple(sections), _symbols(data, raw, sections, names, source)


def _symbols(
    data: bytes, raw: list[_RawSection], sections: list[Section], names: "_Names", source: str
) -> tuple[Symbol, ...]:
    table = next((r for r, s in zip(raw, sections, strict=True) if s.name == ".symtab"), None)
    if table is None or table.type != _SYMBOL_TABLE or table.size % _SYMBOL.size or table.link >= len(raw):
        raise CuasmrlError(f"{source} is damaged: it has no readable symbol table; recompile the cubin")
    found = []
    for name, info, _, section, value, _ in _SYMBOL.iter_unpack(data[table.offset :][: table.size]):
        home = section if 0 < section < _FIRST_SPECIAL_INDEX else -1
        found.append(Symbol(names.read(raw[table.link], name), home, value, info & 0xF == _FUNCTION))
    return tuple(found)


class _Names:
    """Strings of the string tables, with their total length limited."""

    def __init__(self, data: bytes, source: str) -> None:
        self._data = data
        self._source = source
        self._left = len(data) * _NAME_BYTES_PER_FILE_BYTE

    def read(self, table: _RawSection, position: int) -> str:
        end = min(table.offset + table.size, len(self._data))
        start = table.offset + position
        stop = self._data.find(0, start, end)
        if table.type != _STRING_TABLE or start >= end or stop < 0:
            raise CuasmrlError(
                f"{self._source} is damaged: a name lies outside its string table; recompile the cubin"
            )
        self._left -= stop - start
        if self._left < 0:
            raise CuasmrlError(
                f"{self._source} is damaged: its names overlap without end; recompile the cubin"
            )
        name = self._data[start:stop].decode("utf-8", "backslashreplace")
        # Names go into messages and onto terminals; a damaged one must not break a line or move a cursor.
        return name if name.isprintable() else name.encode("unicode_escape").decode()
