"""What a cubin runs: its code and all that goes with it, apart from what only debuggers read.

This module and the others that deploy are imported at every start of the ptxas shim, and check what other
code has made. So they read ELF by themselves and import nothing that takes long, as `dataclasses` does.
"""

from __future__ import annotations

import hashlib
import struct

from cuasmrl.errors import CuasmrlError

TEXT, INFO = ".text.", ".nv.info."
_FORMAT = b"cuasmrl code 1"
_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_NOTE = struct.Struct("<III")
_CUDA = 190
_ABI_12, _ABI_13 = 0x33, 0x41
# SHT_NULL, SHT_NOBITS and NVIDIA's own kinds of memory without bytes.
_WITHOUT_BYTES = (0, 8, 0x70000007, 0x70000009, 0x7000000A, 0x70000015)
# NOTYPE, SECTION, FILE: they come and go with debug information.
_IDLE_SYMBOLS = (0, 3, 4)
_IDLE = (".debug_", ".nv_debug_", ".note.")
_IDLE_TABLES = (".shstrtab", ".strtab", ".symtab", ".symtab_shndx")
_TOOLKIT_NOTE = ".note.nv.tkinfo"


class Code:
    """The sections of a cubin that decide what runs."""

    def __init__(self, arch: int, key: str, sections: dict[str, tuple[int, int]]) -> None:
        self.arch = arch
        self.key = key
        self.sections = sections
        """{name: (place in the file, size)} of those with bytes."""
        self.kernels = sorted(
            name.removeprefix(TEXT) for name, (_, size) in sections.items() if size and name.startswith(TEXT)
        )


def code_key(cubin: bytes) -> str:
    """Equal for two cubins that run the same code, made by the same toolchain for the same chip.

    Source lines and names of files do not count: they are in sections for debuggers.
    """
    return read_code(cubin).key


def read_code(cubin: bytes) -> Code:
    try:
        return _read(cubin)
    except (struct.error, ValueError, IndexError) as error:
        raise CuasmrlError(f"not a readable cubin ({error}); give one as the compiler wrote it") from None


def is_idle(name: str) -> bool:
    """Does the section hold nothing that runs? Whatever is not known to be idle counts as code."""
    # From sm_100 on there is a second description of the code, with debug sections of its own.
    bare = name.removeprefix(".nv.merc").removeprefix(".rela").removeprefix(".rel")
    return not name or bare.startswith(_IDLE) or bare in _IDLE_TABLES


def _read(cubin: bytes) -> Code:
    if cubin[:4] != b"\x7fELF":
        raise ValueError("it is not an ELF file")
    (identity, kind, machine, version, _, _, table, flags, _, _, _, width, count, names_index) = (
        _HEADER.unpack_from(cubin)
    )
    if machine != _CUDA or width != _SECTION.size or table + count * width > len(cubin):
        raise ValueError("it is not a whole CUDA ELF file")
    arch = {_ABI_12: flags & 0xFF, _ABI_13: flags >> 8 & 0xFF}.get(identity[7])
    if arch is None:
        raise ValueError(f"its ABI {identity[7]:#x} is unknown")
    raw = [_SECTION.unpack_from(cubin, table + i * width) for i in range(count)]
    names = [_name(cubin, raw[names_index], entry[0]) for entry in raw]
    digest = hashlib.sha256(_FORMAT)
    digest.update(struct.pack("<16sHII", identity, kind, version, flags))
    digest.update(_toolchain(cubin, raw, names))
    sections: dict[str, tuple[int, int]] = {}
    for name, i in sorted((name, i) for i, name in enumerate(names) if not is_idle(name)):
        _, type_, section_flags, _, offset, size, _, info, _, _ = raw[i]
        # The low bits of `info` are the number of a symbol or section, the high ones may count registers.
        digest.update(f"\0{name}\0{type_} {section_flags} {info >> 24} {size}\0".encode())
        if type_ not in _WITHOUT_BYTES:
            if offset + size > len(cubin) or name in sections:
                raise ValueError(f"section {name} is cut short or there twice")
            digest.update(cubin[offset : offset + size])
            sections[name] = (offset, size)
    for symbol in _symbols(cubin, raw, names):
        digest.update(symbol)
    code = Code(arch, digest.hexdigest(), sections)
    if not code.kernels:
        raise ValueError("it holds no kernel")
    return code


def _toolchain(cubin: bytes, raw: list[tuple[int, ...]], names: list[str]) -> bytes:
    """Release and build of the compiler, which CUDA 13 notes down; before that `e_version` is all there is.

    The note also names the tool and its options. They do not count: those that matter show in the code.
    """
    if _TOOLKIT_NOTE not in names:
        return b""
    entry = raw[names.index(_TOOLKIT_NOTE)]
    note = cubin[entry[4] : entry[4] + entry[5]]
    name_size, size, _ = _NOTE.unpack_from(note)
    start = _NOTE.size + (name_size + 3 & ~3)
    # A version, then where five strings begin behind these six numbers: file, tool, release, build, options.
    places = struct.unpack_from("<6I", note, start)
    strings = note[start + 24 : start + size]
    return b"\0".join(strings[place:].partition(b"\0")[0] for place in places[3:5])


def _symbols(cubin: bytes, raw: list[tuple[int, ...]], names: list[str]) -> list[bytes]:
    """Functions and variables: where each begins, and how long it is."""
    if ".symtab" not in names:
        raise ValueError("it has no symbol table")
    table = raw[names.index(".symtab")]
    found = []
    for name, info, other, section, value, size in _SYMBOL.iter_unpack(cubin[table[4] : table[4] + table[5]]):
        if info & 0xF not in _IDLE_SYMBOLS:
            home = names[section] if section < len(names) else str(section)
            label = _name(cubin, raw[table[6]], name)
            found.append(f"\0{label}\0{home}\0{info} {other} {value} {size}".encode())
    return sorted(found)


def _name(cubin: bytes, table: tuple[int, ...], place: int) -> str:
    start, end = table[4] + place, table[4] + table[5]
    stop = cubin.find(b"\0", start, end)
    if stop < 0 or start >= end:
        raise ValueError("a name lies outside its table")
    return cubin[start:stop].decode("utf-8", "backslashreplace")
