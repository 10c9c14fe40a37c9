"""Relocations: places in a section that the loader fills with the address of a symbol."""

import struct
from dataclasses import dataclass

from cuasmrl.binary.cubin.container import Cubin
from cuasmrl.binary.cubin.elf import Section, Symbol
from cuasmrl.errors import CuasmrlError

_REL = struct.Struct("<QII")
_RELA = struct.Struct("<QIIq")


@dataclass(frozen=True)
class Relocation:
    offset: int
    """Where in its section the address goes."""
    type: int
    symbol: Symbol
    addend: int | None
    """What is added to the address; None if it stands at that place already."""


def relocations_of(cubin: Cubin, section: Section) -> tuple[Relocation, ...]:
    """All relocations of a section, in the order of the file."""
    found = []
    for prefix, entry in ((".rel", _REL), (".rela", _RELA)):
        table = cubin.section(prefix + section.name)
        if table is None or not table.size or table.info != section.index:
            continue
        data = cubin.bytes_of(table)
        if len(data) % entry.size:
            raise CuasmrlError(
                f"{cubin.source} is damaged: section {table.name} is cut short; recompile the cubin"
            )
        for offset, kind, symbol, *addend in entry.iter_unpack(data):
            if symbol >= len(cubin.symbols) or offset >= section.size:
                raise CuasmrlError(
                    f"{cubin.source} is damaged: section {table.name} names a place or a symbol that is not "
                    "there; recompile the cubin"
                )
            found.append(Relocation(offset, kind, cubin.symbols[symbol], addend[0] if addend else None))
    return tuple(found)
