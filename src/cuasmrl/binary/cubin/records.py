"""The `.nv.info` records: what each attribute is called, and where its payload names instructions.

A record is `{u8 format, u8 attribute, u16 value}` or, for the sized format, `{.., u16 size, payload}`.
Attribute names are those printed by cuobjdump.
"""

import struct
from dataclasses import dataclass
from enum import Enum, IntEnum

from cuasmrl.errors import CuasmrlError


class Format(IntEnum):
    NONE = 1
    BYTE = 2
    HALF = 3
    SIZED = 4


_FORMATS = {int(format_): format_ for format_ in Format}


class Offsets(Enum):
    """How a payload refers to instruction offsets."""

    ABSENT = "names no instruction"
    LIST = "u32 list of offsets"
    FIRST_OF_16 = "16-byte entries that begin with an offset"
    FIRST_OF_12 = "12-byte entries that begin with an offset"
    FIRST_OF_8 = "8-byte entries that begin with an offset"
    SECOND_OF_8 = "8-byte entries {kind, offset}"
    BRANCH_TABLE = "indirect branches and their targets"


# (first word that holds an offset, words per entry)
_STRIDE = {
    Offsets.LIST: (0, 1),
    Offsets.FIRST_OF_16: (0, 4),
    Offsets.FIRST_OF_12: (0, 3),
    Offsets.FIRST_OF_8: (0, 2),
    Offsets.SECOND_OF_8: (1, 2),
}


@dataclass(frozen=True)
class Attribute:
    number: int
    name: str
    offsets: Offsets = Offsets.ABSENT


def _attributes() -> dict[int, Attribute]:
    # Left out on purpose are numbers whose payload we have never seen and whose name speaks of offsets or
    # patches: 0x2E ATOM16_EMUL_INSTR_REG_MAP, 0x3A COROUTINE_RESUME_ID_OFFSETS, 0x43 UCODE_SECTION_DATA,
    # 0x4B TOOLS_PATCH_FUNC, 0x57 STACK_CANARY_TRAP_OFFSETS, 0x59 LOCAL_CTA_ASYNC_STORE_OFFSETS,
    # 0x61 RTCORE_ENTRY. They count as unknown.
    plain = {
        0x01: "PAD", 0x02: "IMAGE_SLOT", 0x03: "JUMPTABLE_RELOCS", 0x04: "CTAIDZ_USED", 0x05: "MAX_THREADS",
        0x06: "IMAGE_OFFSET", 0x07: "IMAGE_SIZE", 0x08: "TEXTURE_NORMALIZED", 0x09: "SAMPLER_INIT",
        0x0A: "PARAM_CBANK", 0x0B: "SMEM_PARAM_OFFSETS", 0x0C: "CBANK_PARAM_OFFSETS", 0x0D: "SYNC_STACK",
        0x0E: "TEXID_SAMPID_MAP", 0x0F: "EXTERNS", 0x10: "REQNTID", 0x11: "FRAME_SIZE",
        0x12: "MIN_STACK_SIZE", 0x13: "SAMPLER_FORCE_UNNORMALIZED", 0x14: "BINDLESS_IMAGE_OFFSETS",
        0x15: "BINDLESS_TEXTURE_BANK", 0x16: "BINDLESS_SURFACE_BANK", 0x17: "KPARAM_INFO",
        0x18: "SMEM_PARAM_SIZE", 0x19: "CBANK_PARAM_SIZE", 0x1A: "QUERY_NUMATTRIB", 0x1B: "MAXREG_COUNT",
        0x1E: "CRS_STACK_SIZE", 0x1F: "NEED_CNP_WRAPPER", 0x20: "NEED_CNP_PATCH", 0x21: "EXPLICIT_CACHING",
        0x22: "ISTYPEP_USED", 0x23: "MAX_STACK_SIZE", 0x24: "SUQ_USED", 0x26: "LOAD_CACHE_REQUEST",
        0x29: "COOP_GROUP_MASK_REGIDS", 0x2A: "SW1850030_WAR", 0x2B: "WMMA_USED",
        0x2C: "HAS_PRE_V10_OBJECT", 0x2F: "REGCOUNT", 0x30: "SW2393858_WAR", 0x32: "SHARED_SCRATCH",
        0x33: "STATISTICS", 0x35: "SW2861232_WAR", 0x36: "SW_WAR", 0x37: "CUDA_API_VERSION",
        0x38: "NUM_MBARRIERS", 0x3B: "SAM_REGION_STACK_SIZE", 0x3C: "PER_REG_TARGET_PERF_STATS",
        0x3D: "CTA_PER_CLUSTER", 0x3E: "EXPLICIT_CLUSTER", 0x3F: "MAX_CLUSTER_RANK",
        0x41: "RESERVED_SMEM_USED", 0x42: "RESERVED_SMEM_0_SIZE", 0x45: "KPARAM_INFO_V2",
        0x48: "GRAPHICS_GLOBAL_CBANK", 0x49: "SHADER_TYPE", 0x4A: "VRC_CTA_INIT_COUNT",
        0x4C: "NUM_BARRIERS", 0x4D: "TEXMODE_INDEPENDENT", 0x4E: "PERF_STATISTICS",
        # A list of enumerators (tcgen05 kernels carry TMEM_CTA1_V2), not of offsets.
        0x4F: "AT_ENTRY_FRAGMENTS",
        0x50: "SPARSE_MMA_MASK", 0x51: "TCGEN05_1CTA_USED", 0x52: "TCGEN05_2CTA_USED",
        0x53: "GEN_ERRBAR_AT_EXIT", 0x54: "REG_RECONFIG", 0x58: "STUB_FUNCTION_KIND",
        0x5A: "MERCURY_FINALIZER_OPTIONS", 0x5B: "BLOCKS_ARE_CLUSTERS", 0x5C: "SANITIZE",
        0x5D: "SYSCALLS_FALLBACK", 0x5E: "CUDA_REQ", 0x5F: "MERCURY_ISA_VERSION", 0x66: "LANGUAGE",
        # No tool at hand names these two; ptxas 13.4 emits them as scalars without any offset.
        0x6B: "ATTRIBUTE_6B", 0x6D: "ATTRIBUTE_6D",
    }  # fmt: skip
    carriers = {
        0x1C: ("EXIT_INSTR_OFFSETS", Offsets.LIST),
        0x1D: ("S2RCTAID_INSTR_OFFSETS", Offsets.LIST),
        0x25: ("LD_CACHEMOD_INSTR_OFFSETS", Offsets.LIST),
        0x27: ("ATOM_SYS_INSTR_OFFSETS", Offsets.LIST),
        0x28: ("COOP_GROUP_INSTR_OFFSETS", Offsets.LIST),
        0x2D: ("ATOMF16_EMUL_INSTR_OFFSETS", Offsets.LIST),
        0x31: ("INT_WARP_WIDE_INSTR_OFFSETS", Offsets.LIST),
        0x34: ("INDIRECT_BRANCH_TARGETS", Offsets.BRANCH_TABLE),
        0x39: ("MBARRIER_INSTR_OFFSETS", Offsets.FIRST_OF_16),
        0x40: ("INSTR_REG_MAP", Offsets.FIRST_OF_12),
        0x44: ("UNUSED_LOAD_BYTE_OFFSET", Offsets.FIRST_OF_8),
        0x46: ("SYSCALL_OFFSETS", Offsets.LIST),
        0x47: ("SW_WAR_MEMBAR_SYS_INSTR_OFFSETS", Offsets.LIST),
        0x55: ("ANNOTATIONS", Offsets.SECOND_OF_8),
    }
    table = {number: Attribute(number, name) for number, name in plain.items()}
    table |= {number: Attribute(number, name, kind) for number, (name, kind) in carriers.items()}
    return table


ATTRIBUTES = _attributes()


@dataclass(frozen=True)
class Record:
    """One record; `position` is the file offset of its payload (or of its 16-bit value)."""

    number: int
    format: Format
    position: int
    payload: bytes

    @property
    def attribute(self) -> Attribute | None:
        return ATTRIBUTES.get(self.number)

    @property
    def name(self) -> str:
        return self.attribute.name if self.attribute else f"ATTRIBUTE_{self.number:02X}"

    @property
    def value(self) -> int:
        return int.from_bytes(self.payload, "little")

    def words(self) -> tuple[int, ...]:
        return struct.unpack(f"<{len(self.payload) // 4}I", self.payload[: len(self.payload) & ~3])

    def instruction_slots(self) -> list[int]:
        """File positions of every u32 that names an instruction and has to follow it when it moves."""
        attribute = self.attribute
        if attribute is None or attribute.offsets not in _STRIDE:
            return []
        first, stride = _STRIDE[attribute.offsets]
        return [self.position + 4 * i for i in range(first, len(self.payload) // 4, stride)]

    def branch_table(self, where: str = "cubin") -> dict[int, tuple[int, ...]]:
        """Targets of each indirect branch: entries are {branch, flags, count, target * count}."""
        words, table, i = self.words(), {}, 0
        while i < len(words):
            # A lone or half entry counts as one with more targets than there are.
            branch, count = words[i], words[i + 2] if i + 3 <= len(words) else len(words)
            if i + 3 + count > len(words):
                raise CuasmrlError(
                    f"{where}: record {self.name} at file offset {self.position:#x} is cut short inside the "
                    f"targets of branch {branch:#x}; recompile the cubin"
                )
            table[branch] = tuple(words[i + 3 : i + 3 + count])
            i += 3 + count
        return table


def parse_records(data: bytes, start: int, size: int, where: str) -> tuple[Record, ...]:
    """All records of one section; a malformed record is an error that names it."""
    records, position, end = [], start, start + size
    while position < end:
        if position + 4 > end:
            raise CuasmrlError(
                f"{where}: record at file offset {position:#x} is cut short; recompile the cubin"
            )
        kind, number, value = struct.unpack_from("<BBH", data, position)
        if kind not in _FORMATS:
            raise CuasmrlError(
                f"{where}: record at file offset {position:#x} has unknown format {kind}; "
                "the file is damaged or newer than this version of cuasmrl"
            )
        length = value if kind == Format.SIZED else 2
        body = position + 4 if kind == Format.SIZED else position + 2
        if body + length > end:
            raise CuasmrlError(
                f"{where}: record {number:#x} at file offset {position:#x} runs past its section; "
                "recompile the cubin"
            )
        record = Record(number, _FORMATS[kind], body, data[body : body + length])
        _check_carrier(record, where)
        records.append(record)
        # Sized payloads are padded so that the next record starts on a 4-byte boundary.
        position = start + ((body + length - start + 3) & ~3)
    return tuple(records)


def _check_carrier(record: Record, where: str) -> None:
    """A record that names instructions must have the layout we know, or an offset in it would stay behind."""
    attribute = record.attribute
    if attribute is None or attribute.offsets is Offsets.ABSENT:
        return
    _, stride = _STRIDE.get(attribute.offsets, (0, 1))
    if record.format is not Format.SIZED or len(record.payload) % (4 * stride):
        raise CuasmrlError(
            f"{where}: record {record.name} at file offset {record.position:#x} does not hold "
            f"{attribute.offsets.value}; the file is damaged or newer than this version of cuasmrl"
        )
    if attribute.offsets is Offsets.BRANCH_TABLE:
        record.branch_table(where)
