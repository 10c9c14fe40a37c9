"""A cubin: the ELF file around the kernels, read once and never re-written as a whole."""

import os
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from cuasmrl.binary.cubin.elf import Header, Section, Symbol, read_header, read_tables
from cuasmrl.binary.cubin.records import Record, parse_records
from cuasmrl.errors import CuasmrlError

WORD_BYTES = 16
SUPPORTED_ARCHS = (75, 80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121)
_OSABI_CUDA_12 = 0x33
_OSABI_CUDA_13 = 0x41
_TEXT = ".text."
_INFO = ".nv.info"
_MOST_REGISTERS = 255
_UNMEASURED = 0xFFFF_FFFF
"""What ptxas 13.5 writes as the stack of a kernel that recurses; earlier ones write nothing."""
# The largest library cubins are some hundred megabytes; a limit keeps a wrong path from filling memory.
_LARGEST_FILE = 1 << 30


@dataclass(frozen=True)
class Parameter:
    """One kernel parameter: `offset` counts from the start of the parameter area."""

    ordinal: int
    offset: int
    size: int


@dataclass(frozen=True)
class Kernel:
    """A kernel's code and everything the container says about it."""

    name: str
    arch: int
    text: Section
    words: tuple[bytes, ...]
    registers: int
    shared_bytes: int
    """Static shared memory of a block, as the driver counts it: from sm_90 on with 1 KiB reserved by CUDA."""
    parameters: tuple[Parameter, ...]
    parameter_base: int
    records: tuple[Record, ...]
    entry_points: tuple[tuple[int, str], ...]
    """Function symbols inside the code: (offset, name)."""
    has_relocations: bool
    stack_bytes: int = 0
    """Local memory a thread needs: spilled registers, arrays, frames of called functions. 0 if unknown."""
    file_records: tuple[Record, ...] = ()
    """Records of the whole file (`.nv.info`), which concern every kernel in it."""

    def record_offsets(self) -> dict[int, int]:
        """{file position of a u32: the code offset it holds} over all records that name instructions."""
        return {
            slot: int.from_bytes(record.payload[start : start + 4], "little")
            for record in self.records
            for slot in record.instruction_slots()
            for start in (slot - record.position,)
        }

    def unknown_records(self) -> tuple[Record, ...]:
        """Records that might name instructions without our knowing; such a kernel must not be rescheduled."""
        return tuple(record for record in self.records + self.file_records if record.attribute is None)

    def branch_targets(self) -> dict[int, tuple[int, ...]]:
        """Targets of indirect branches, as the compiler recorded them."""
        table: dict[int, tuple[int, ...]] = {}
        for record in self.records:
            if record.name == "INDIRECT_BRANCH_TARGETS":
                table |= record.branch_table()
        return table


@dataclass(frozen=True)
class Cubin:
    """The bytes of a cubin and its section table; every edit gives a new `Cubin` of the same length."""

    data: bytes
    source: str
    arch: int
    osabi: int
    sections: tuple[Section, ...]
    symbols: tuple[Symbol, ...]

    @staticmethod
    def load(path: str | Path) -> "Cubin":
        target = Path(path)
        try:
            # A device or a pipe may never end.
            if target.exists() and not target.is_file():
                raise CuasmrlError(f"{path} is not a regular file; name a cubin file")
            if target.stat().st_size > _LARGEST_FILE:
                raise CuasmrlError(f"{path} is larger than 1 GiB, which no cubin is; name a cubin file")
            data = target.read_bytes()
        except (OSError, ValueError) as error:
            raise CuasmrlError(
                f"cannot read {path}: {_reason(error)}; name an existing cubin file"
            ) from error
        return Cubin.parse(data, str(path))

    @staticmethod
    def parse(data: bytes, source: str = "<memory>") -> "Cubin":
        header = read_header(data, source)
        arch = _arch(header, source)
        sections, symbols = read_tables(data, header, source)
        _check_layout(header, sections, source)
        return Cubin(data, source, arch, header.osabi, sections, symbols)

    @cached_property
    def kernels(self) -> tuple[Kernel, ...]:
        found = tuple(self._kernel(s) for s in self.sections if s.name.startswith(_TEXT) and s.size)
        if not found:
            raise CuasmrlError(f"{self.source} holds no kernel (no .text.* section); give a compiled cubin")
        return found

    def kernel(self, name: str | None = None) -> Kernel:
        """The kernel of that name; without a name, the only one."""
        if name is None and len(self.kernels) == 1:
            return self.kernels[0]
        for kernel in self.kernels:
            if kernel.name == name:
                return kernel
        names = ", ".join(kernel.name for kernel in self.kernels)
        if name is None:
            raise CuasmrlError(f"{self.source} holds several kernels ({names}); choose one by name")
        raise CuasmrlError(f"{self.source} has no kernel {name}; it holds {names}")

    def section(self, name: str) -> Section | None:
        return self._by_name.get(name)

    def bytes_of(self, section: Section) -> bytes:
        return self.data[section.offset : section.offset + section.size] if section.in_file else b""

    def with_words(self, kernel: Kernel, words: tuple[bytes, ...], moved: Mapping[int, int]) -> "Cubin":
        """Replace a kernel's instruction words in place.

        `moved` maps old code offsets to new ones; records that name an instruction follow it. Both are
        relative to `kernel` as it was read, also when this cubin already holds another schedule of it.
        """
        where = f"{self.source}, kernel {kernel.name}"
        if self.section(kernel.text.name) != kernel.text:
            raise CuasmrlError(f"{where}: this kernel was read from another cubin")
        if len(words) != len(kernel.words) or any(len(word) != WORD_BYTES for word in words):
            raise CuasmrlError(f"{where}: a schedule must keep its {len(kernel.words)} 16-byte words")
        data = bytearray(self.data)
        data[kernel.text.offset : kernel.text.offset + kernel.text.size] = b"".join(words)
        for slot, old in kernel.record_offsets().items():
            new = moved.get(old, old)
            if not 0 <= new < kernel.text.size or new % WORD_BYTES:
                raise CuasmrlError(f"{where}: instruction {old:#x} cannot move to {new:#x}, outside the code")
            data[slot : slot + 4] = new.to_bytes(4, "little")
        return replace(self, data=bytes(data))

    def save(self, path: str | Path) -> None:
        """Write the file whole or not at all."""
        target = Path(path)
        # The process number keeps two writers of one file apart; the last one to finish wins.
        scratch = target.parent / f"{target.name}.{os.getpid()}.partial"
        try:
            try:
                scratch.write_bytes(self.data)
                scratch.replace(target)
            except BaseException:
                if scratch.exists():
                    scratch.unlink()
                raise
        except (OSError, ValueError) as error:
            raise CuasmrlError(f"cannot write {path}: {_reason(error)}; choose a writable place") from error

    @cached_property
    def _by_name(self) -> dict[str, Section]:
        return {section.name: section for section in reversed(self.sections)}

    @cached_property
    def _functions(self) -> dict[int, list[tuple[int, str]]]:
        """Function symbols of each section: (offset, name), in order of offset."""
        found: dict[int, list[tuple[int, str]]] = defaultdict(list)
        for symbol in self.symbols:
            if symbol.is_function:
                found[symbol.section].append((symbol.value, symbol.name))
        return {section: sorted(functions) for section, functions in found.items()}

    @cached_property
    def _file_records(self) -> tuple[Record, ...]:
        info = self.section(_INFO)
        return parse_records(self.data, info.offset, info.size, self.source) if info else ()

    def _recorded(self, attribute: str, kernel: str) -> int | None:
        """A number that the records of the whole file hold for each function."""
        for record in self._file_records:
            words = record.words()
            if record.name == attribute and len(words) == 2 and words[0] < len(self.symbols):  # noqa: SIM102
                if self.symbols[words[0]].name == kernel:
                    return words[1]
        return None

    def _stack_bytes(self, kernel: str) -> int:
        """What is recorded; 0 also where the compiler could not measure it, as with recursion."""
        least = self._recorded("MIN_STACK_SIZE", kernel) or 0
        return 0 if least == _UNMEASURED else max(self._recorded("FRAME_SIZE", kernel) or 0, least)

    def _kernel(self, text: Section) -> Kernel:
        name = text.name.removeprefix(_TEXT)
        where = f"{self.source}, kernel {name}"
        if text.size % WORD_BYTES:
            raise CuasmrlError(f"{where}: code size {text.size} is not a multiple of 16; recompile the cubin")
        code = self.bytes_of(text)
        info = self.section(f"{_INFO}.{name}")
        # Every compiler writes one for every function; without it no offset could follow its instruction.
        if info is None or info.info != text.index:
            raise CuasmrlError(f"{where}: section {_INFO}.{name} is missing; recompile the cubin")
        records = parse_records(self.data, info.offset, info.size, where)
        shared = self.section(f".nv.shared.{name}")
        relocations = (self.section(f".rel{text.name}"), self.section(f".rela{text.name}"))
        base, parameters = _parameters(records)
        kernel = Kernel(
            name=name,
            arch=self.arch,
            text=text,
            words=tuple(code[i : i + WORD_BYTES] for i in range(0, len(code), WORD_BYTES)),
            registers=self._register_count(name, text, where),
            shared_bytes=shared.size if shared else 0,
            parameters=parameters,
            parameter_base=base,
            records=records,
            entry_points=tuple(self._functions.get(text.index, ())),
            has_relocations=any(s is not None and s.size for s in relocations),
            stack_bytes=self._stack_bytes(name),
            file_records=self._file_records,
        )
        _check_offsets(kernel, where)
        return kernel

    def _register_count(self, name: str, text: Section, where: str) -> int:
        # Older compilers write only the section header's top byte; for sm_90 and later it is always 0.
        recorded = self._recorded("REGCOUNT", name)
        count = text.info >> 24 if recorded is None else recorded
        if not 0 < count <= _MOST_REGISTERS:
            raise CuasmrlError(f"{where}: no register count recorded; recompile the cubin")
        return count


def _check_layout(header: Header, sections: tuple[Section, ...], source: str) -> None:
    """Refuse a file in which a byte of code or of a record could mean two things.

    Only those bytes are edited. Other sections do share bytes: sm_100 and later keep `.debug_str` and
    `.nv.merc.debug_str` in one place.
    """
    spans = [(start, end, what, False) for start, end, what in header.spans]
    seen: set[str] = set()
    for section in sections:
        edited = section.name.startswith((_TEXT, _INFO))
        if edited and section.name in seen:
            raise CuasmrlError(
                f"{source} is damaged: two sections are called {section.name}; recompile the cubin"
            )
        if edited and section.size and not section.in_file:
            raise CuasmrlError(
                f"{source} is damaged: section {section.name} has no bytes; recompile the cubin"
            )
        seen.add(section.name)
        if section.in_file:
            spans.append((section.offset, section.offset + section.size, f"section {section.name}", edited))
    furthest, owner, owner_edited = 0, "", False
    for start, end, what, edited in sorted(span for span in spans if span[0] < span[1]):
        if start < furthest and (edited or owner_edited):
            raise CuasmrlError(f"{source} is damaged: {owner} and {what} overlap; recompile the cubin")
        if end > furthest:
            furthest, owner, owner_edited = end, what, edited


def _check_offsets(kernel: Kernel, where: str) -> None:
    """Every recorded offset has to be that of an instruction, else the record is not what we think."""
    targets = [offset for branch, targets in kernel.branch_targets().items() for offset in (branch, *targets)]
    for offset in (*kernel.record_offsets().values(), *targets):
        if offset >= kernel.text.size or offset % WORD_BYTES:
            raise CuasmrlError(
                f"{where}: a record names code offset {offset:#x}, where no instruction is; recompile it"
            )


def _parameters(records: tuple[Record, ...]) -> tuple[int, tuple[Parameter, ...]]:
    base, parameters = 0, []
    for record in records:
        words = record.words()
        if record.name == "PARAM_CBANK" and len(words) == 2:
            base = words[1] & 0xFFFF
        elif record.name in ("KPARAM_INFO", "KPARAM_INFO_V2") and len(words) == 3:
            ordinal, offset = words[1] & 0xFFFF, words[1] >> 16
            # The first record has 14 bits for the size; for kernels with many kilobytes of parameters ptxas
            # writes the second. Both layouts checked bit by bit against cuobjdump 13.1.
            size = words[2] >> 18 if record.name == "KPARAM_INFO" else words[2] & 0xFFFF
            parameters.append(Parameter(ordinal, offset, size))
    return base, tuple(sorted(parameters, key=lambda p: p.ordinal))


def _arch(header: Header, source: str) -> int:
    if header.osabi == _OSABI_CUDA_12:
        arch = header.flags & 0xFF
    elif header.osabi == _OSABI_CUDA_13:
        arch = header.flags >> 8 & 0xFF
    else:
        raise CuasmrlError(
            f"{source}: CUDA ELF ABI {header.osabi:#x} is unknown; "
            f"compile with CUDA 12 ({_OSABI_CUDA_12:#x}) or CUDA 13 ({_OSABI_CUDA_13:#x})"
        )
    if arch in SUPPORTED_ARCHS:
        return arch
    supported = ", ".join(f"sm_{a}" for a in SUPPORTED_ARCHS)
    if arch < SUPPORTED_ARCHS[0]:
        raise CuasmrlError(
            f"{source} is compiled for sm_{arch}, older than any supported chip; use one of {supported}"
        )
    raise CuasmrlError(
        f"{source} is compiled for sm_{arch}, which this version does not know; use one of {supported}"
    )


def _reason(error: OSError | ValueError) -> str:
    return (isinstance(error, OSError) and error.strerror) or str(error)
