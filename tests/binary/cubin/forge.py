"""Damage a cubin on purpose: precise edits for the refusals, random ones for the fuzz."""

import struct
from random import Random

from cuasmrl.binary.cubin import Cubin, Record

SECTION_BYTES = 64
SYMBOL_BYTES = 24
# Field positions in a section header, by the names of the ELF specification.
FIELDS = {
    "sh_name": (0, 4), "sh_type": (4, 4), "sh_flags": (8, 8), "sh_addr": (16, 8), "sh_offset": (24, 8),
    "sh_size": (32, 8), "sh_link": (40, 4), "sh_info": (44, 4), "sh_addralign": (48, 8),
    "sh_entsize": (56, 8),
}  # fmt: skip
EXTREMES = (
    0,
    1,
    2,
    3,
    4,
    8,
    15,
    16,
    24,
    64,
    0x7F,
    0xFF,
    0x7FFF,
    0xFFFF,
    0x7FFFFFFF,
    0xFFFFFFFF,
    1 << 40,
    (1 << 64) - 1,
)


def edited(data: bytes, position: int, new: bytes) -> bytes:
    return data[:position] + new + data[position + len(new) :]


def section_field(cubin: Cubin, name: str, field: str) -> int:
    """File position of a field of a section's header."""
    (table,) = struct.unpack_from("<Q", cubin.data, 40)
    section = cubin.section(name)
    assert section is not None
    return int(table) + section.index * SECTION_BYTES + FIELDS[field][0]


def with_section_field(cubin: Cubin, name: str, field: str, value: int) -> bytes:
    return edited(cubin.data, section_field(cubin, name, field), value.to_bytes(FIELDS[field][1], "little"))


def record_header(record: Record) -> int:
    """File position of a record's format byte."""
    return record.position - (4 if record.format == 4 else 2)


def mutate(data: bytes, random: Random) -> bytes:
    """One to four random damages, most of them where the reader looks."""
    changed = bytearray(data)
    for _ in range(random.randint(1, 4)):
        random.choice(_MUTATIONS)(changed, random)
    return bytes(changed)


def _flip(data: bytearray, random: Random) -> None:
    if data:
        data[random.randrange(len(data))] ^= 1 << random.randrange(8)


def _truncate(data: bytearray, random: Random) -> None:
    del data[random.randint(0, len(data)) :]


def _put(data: bytearray, position: int, width: int, random: Random) -> None:
    """Overwrite one field by an extreme, by a size near that of the file, or by a small change."""
    if position + width > len(data):
        return
    old = int.from_bytes(data[position : position + width], "little")
    near = (
        len(data),
        len(data) - 1,
        len(data) // 2,
        old + 1,
        old - 1,
        old + 16,
        old * 2,
        random.getrandbits(16),
    )
    value = random.choice((*EXTREMES, *near)) % (1 << 8 * width)
    data[position : position + width] = value.to_bytes(width, "little")


def _header_field(data: bytearray, random: Random) -> None:
    widths = {4: 1, 7: 1, 16: 2, 18: 2, 32: 8, 40: 8, 48: 4, 52: 2, 54: 2, 56: 2, 58: 2, 60: 2, 62: 2}
    position = random.choice(list(widths))
    _put(data, position, widths[position], random)


def _sections(data: bytearray) -> tuple[int, int]:
    if len(data) < 64:
        return 0, 0
    (table,), (count,) = struct.unpack_from("<Q", data, 40), struct.unpack_from("<H", data, 60)
    return table, max(0, min(count, (len(data) - table) // SECTION_BYTES))


def _section_field(data: bytearray, random: Random) -> None:
    table, count = _sections(data)
    if count:
        offset, width = random.choice(list(FIELDS.values()))
        _put(data, table + random.randrange(count) * SECTION_BYTES + offset, width, random)


def _inside_section(data: bytearray, random: Random) -> tuple[int, int] | None:
    """(position, size) of a section's bytes, small sections as likely as large ones."""
    table, count = _sections(data)
    if not count:
        return None
    offset, size = struct.unpack_from("<QQ", data, table + random.randrange(count) * SECTION_BYTES + 24)
    return (offset, size) if size and offset + size <= len(data) else None


def _section_word(data: bytearray, random: Random) -> None:
    place = _inside_section(data, random)
    if place is not None:
        width = random.choice((1, 2, 4))
        _put(data, place[0] + random.randrange(place[1]) // width * width, width, random)


def _fill_section(data: bytearray, random: Random) -> None:
    """One byte all over: a string table without end, or nothing but one kind of record."""
    place = _inside_section(data, random)
    if place is not None:
        data[place[0] : place[0] + place[1]] = bytes([random.choice((0, 1, 4, 0x41, 0xFF))]) * place[1]


def _copy_section_header(data: bytearray, random: Random) -> None:
    table, count = _sections(data)
    if count:
        a, b = (table + random.randrange(count) * SECTION_BYTES for _ in range(2))
        data[a : a + SECTION_BYTES] = data[b : b + SECTION_BYTES]


def _move_block(data: bytearray, random: Random) -> None:
    if len(data) > 64:
        size = random.choice((1, 4, 16, 64, 256))
        a, b = random.randrange(len(data)), random.randrange(len(data))
        block = data[a : a + size]
        if random.random() < 0.5:
            data[b:b] = block
        else:
            data[b : b + size] = block


_MUTATIONS = (
    _flip, _flip, _truncate, _header_field, _section_field, _section_field, _section_field, _section_word,
    _section_word, _section_word, _fill_section, _copy_section_header, _move_block,
)  # fmt: skip
