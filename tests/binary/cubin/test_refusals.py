"""Bad input: one sentence that names the file, the place and what to do."""

import os
import re
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from cuasmrl.binary.cubin import SUPPORTED_ARCHS, Cubin, Kernel, Record
from cuasmrl.errors import CuasmrlError
from tests.binary.cubin.forge import edited, record_header, section_field, with_section_field


def refusal(data: bytes, source: str = "k.cubin") -> str:
    with pytest.raises(CuasmrlError) as caught:
        _ = Cubin.parse(data, source).kernels
    sentence = str(caught.value)
    assert sentence.startswith(source)
    assert "\n" not in sentence
    return sentence


def record(kernel: Kernel, name: str) -> Record:
    return next(r for r in kernel.records if r.name == name)


def test_every_truncation_is_refused(one_of_each: Cubin) -> None:
    # The program and section tables close the file, so no proper prefix is a cubin.
    for length in range(0, len(one_of_each.data), 7):
        sentence = refusal(one_of_each.data[:length])
        assert "truncated" in sentence if length >= 4 else "not an ELF file" in sentence


def test_truncation_at_the_boundary_of_every_section_is_refused(cubin: Cubin) -> None:
    for section in cubin.sections:
        for cut in (section.offset, section.offset + section.size if section.in_file else 0):
            for length in (cut - 1, cut, cut + 1):
                if 4 <= length < len(cubin.data):
                    assert "truncated" in refusal(cubin.data[:length])


@pytest.mark.parametrize(
    "data", [b"", b"\x7fEL", b"//\n.version 8.0", b"!<arch>\n", b"\x50\xed\x55\xba" * 64]
)
def test_something_that_is_not_elf(data: bytes) -> None:
    assert "is not an ELF file; give a cubin" in refusal(data)


def test_an_elf_file_of_the_host_says_how_to_get_at_the_cubin(one_of_each: Cubin) -> None:
    host = edited(one_of_each.data, 18, (62).to_bytes(2, "little"))
    assert "machine 62, not a CUDA cubin" in refusal(host)
    assert "cuobjdump -xelf all" in refusal(host)
    assert "not a CUDA cubin" in refusal(edited(one_of_each.data, 4, b"\x01"))
    assert "not a CUDA cubin" in refusal(Path("/proc/self/exe").read_bytes()[:4096])


@pytest.mark.parametrize(("sample_name", "shift"), [("cuda12-sm_80", 0), ("cuda13-sm_90", 8)])
def test_arch_too_old_or_unknown(sample: Callable[[str], Cubin], sample_name: str, shift: int) -> None:
    data = sample(sample_name).data
    (flags,) = struct.unpack_from("<I", data, 48)

    def for_arch(arch: int) -> bytes:
        return edited(data, 48, (flags & ~(0xFF << shift) | arch << shift).to_bytes(4, "little"))

    for arch in (35, 52, 61, 70, 72):
        assert f"compiled for sm_{arch}, older than any supported chip; use one of sm_75" in refusal(
            for_arch(arch)
        )
    for arch in (99, 130, 200):
        assert f"compiled for sm_{arch}, which this version does not know" in refusal(for_arch(arch))
    for arch in SUPPORTED_ARCHS:
        assert Cubin.parse(for_arch(arch)).arch == arch


def test_abi_unknown(one_of_each: Cubin) -> None:
    sentence = refusal(edited(one_of_each.data, 7, b"\x42"))
    assert "CUDA ELF ABI 0x42 is unknown; compile with CUDA 12 (0x33) or CUDA 13 (0x41)" in sentence


def test_an_unknown_record_is_reported_not_guessed(cubin: Cubin) -> None:
    plain = cubin.kernel("plain")
    for number in (0x57, 0x59, 0x70, 0xFE):
        data = edited(cubin.data, record_header(record(plain, "EXIT_INSTR_OFFSETS")) + 1, bytes([number]))
        kernel = Cubin.parse(data).kernel("plain")
        assert [r.number for r in kernel.unknown_records()] == [number]
        assert kernel.unknown_records()[0].name == f"ATTRIBUTE_{number:02X}"
        assert Cubin.parse(data).kernel("jump").unknown_records() == ()


def test_an_unknown_record_of_the_file_concerns_every_kernel(one_of_each: Cubin) -> None:
    frame = next(r for r in one_of_each.kernel("plain").file_records if r.name == "FRAME_SIZE")
    strange = Cubin.parse(edited(one_of_each.data, record_header(frame) + 1, b"\xfe"))
    assert all(len(kernel.unknown_records()) == 1 for kernel in strange.kernels)


@pytest.mark.parametrize("bad", [0, 5, 0xFF])
def test_record_of_unknown_format(cubin: Cubin, bad: int) -> None:
    position = record_header(cubin.kernel("plain").records[0])
    sentence = refusal(edited(cubin.data, position, bytes([bad])))
    assert f"kernel plain: record at file offset {position:#x} has unknown format {bad}" in sentence


def test_record_that_runs_past_its_section(cubin: Cubin) -> None:
    exits = record(cubin.kernel("plain"), "EXIT_INSTR_OFFSETS")
    sentence = refusal(edited(cubin.data, exits.position - 2, b"\xff\xff"))
    assert f"kernel plain: record 0x1c at file offset {record_header(exits):#x}" in sentence
    assert "runs past its section; recompile the cubin" in sentence


def test_record_cut_by_the_end_of_its_section(cubin: Cubin) -> None:
    info = cubin.section(".nv.info.plain")
    assert info is not None
    start = record_header(record(cubin.kernel("plain"), "EXIT_INSTR_OFFSETS"))
    for kept, words in ((2, "is cut short"), (6, "runs past its section")):
        data = with_section_field(cubin, ".nv.info.plain", "sh_size", start + kept - info.offset)
        assert f"at file offset {start:#x} {words}; recompile the cubin" in refusal(data)


def test_offset_list_of_odd_length(cubin: Cubin) -> None:
    exits = record(cubin.kernel("plain"), "EXIT_INSTR_OFFSETS")
    data = edited(cubin.data, exits.position - 2, (len(exits.payload) - 1).to_bytes(2, "little"))
    assert "record EXIT_INSTR_OFFSETS at file offset" in refusal(data)
    assert "does not hold u32 list of offsets" in refusal(data)


def test_branch_table_cut_inside_its_targets(cubin: Cubin) -> None:
    table = record(cubin.kernel("jump"), "INDIRECT_BRANCH_TARGETS")
    for count in (100, 0xFFFFFFFF):
        data = edited(cubin.data, table.position + 8, count.to_bytes(4, "little"))
        assert "kernel jump: record INDIRECT_BRANCH_TARGETS" in refusal(data)
        assert "is cut short inside the targets of branch" in refusal(data)


@pytest.mark.parametrize("offset", [8, 0x10000, 0xFFFFFFF0])
def test_record_that_names_no_instruction(cubin: Cubin, offset: int) -> None:
    slot = next(iter(cubin.kernel("plain").record_offsets()))
    sentence = refusal(edited(cubin.data, slot, offset.to_bytes(4, "little")))
    assert f"kernel plain: a record names code offset {offset:#x}, where no instruction is" in sentence


def test_code_of_odd_size(cubin: Cubin) -> None:
    size = cubin.kernel("plain").text.size
    data = with_section_field(cubin, ".text.plain", "sh_size", size - 8)
    assert f"kernel plain: code size {size - 8} is not a multiple of 16" in refusal(data)


def test_sections_that_share_bytes_with_code(cubin: Cubin) -> None:
    text, other = cubin.kernel("plain").text, cubin.kernel("jump").text
    data = with_section_field(cubin, ".text.plain", "sh_offset", other.offset)
    assert re.search(r"damaged: section \.text\.\w+ and section \.text\.\w+ overlap", refusal(data))
    header = with_section_field(cubin, ".text.plain", "sh_offset", 0)
    assert "damaged: the ELF header and section .text.plain overlap" in refusal(header)
    nobits = with_section_field(cubin, ".text.plain", "sh_type", 8)
    assert "section .text.plain has no bytes" in refusal(nobits)
    assert text.size


def test_two_sections_of_one_name(cubin: Cubin) -> None:
    name = cubin.data[section_field(cubin, ".text.jump", "sh_name") :][:4]
    data = edited(cubin.data, section_field(cubin, ".text.plain", "sh_name"), name)
    assert "two sections are called .text.jump" in refusal(data)


def test_kernel_without_its_records(cubin: Cubin) -> None:
    data = with_section_field(cubin, ".nv.info.plain", "sh_name", 0)
    assert "kernel plain: section .nv.info.plain is missing" in refusal(data)
    other = with_section_field(cubin, ".nv.info.plain", "sh_info", 0)
    assert "kernel plain: section .nv.info.plain is missing" in refusal(other)


def test_no_symbol_table(cubin: Cubin) -> None:
    for field, value in (("sh_name", 0), ("sh_type", 1), ("sh_size", 25), ("sh_link", 0xFFFF)):
        assert "no readable symbol table" in refusal(with_section_field(cubin, ".symtab", field, value))


def test_names_outside_their_string_table(cubin: Cubin) -> None:
    for field, value in (("sh_size", 8), ("sh_type", 1)):
        assert "a name lies outside its string table" in refusal(
            with_section_field(cubin, ".strtab", field, value)
        )


def test_a_name_cannot_break_the_sentence(one_of_each: Cubin) -> None:
    names = one_of_each.section(".shstrtab")
    assert names is not None
    place = one_of_each.data.index(b".text.plain\0", names.offset) + len(b".text.")
    strange = Cubin.parse(edited(one_of_each.data, place, b"\n\x1b[2\xff"), "k.cubin")
    assert r".text.\n\x1b[2" in {section.name[:14] for section in strange.sections}
    assert refusal(strange.data).startswith(r"k.cubin, kernel \n\x1b[2")


def test_no_register_count(sample: Callable[[str], Cubin]) -> None:
    for name in ("cuda12-sm_90", "cuda13-sm_90"):
        data = with_section_field(sample(name), ".nv.info", "sh_size", 0)
        assert "no register count recorded" in refusal(data)


def test_the_register_count_may_stand_in_the_section_header_alone(sample: Callable[[str], Cubin]) -> None:
    cubin = sample("cuda12-sm_80")
    alone = Cubin.parse(with_section_field(cubin, ".nv.info", "sh_size", 0))
    assert alone.kernel("jump").registers == cubin.kernel("jump").registers


def test_a_cubin_without_kernels(one_of_each: Cubin) -> None:
    data = one_of_each.data
    for section in one_of_each.sections:
        if section.name.startswith(".text."):
            data = with_section_field(Cubin.parse(data), section.name, "sh_size", 0)
    assert "holds no kernel" in refusal(data)


def test_file_that_cannot_be_read(tmp_path: Path) -> None:
    pipe, large = tmp_path / "pipe", tmp_path / "large"
    os.mkfifo(pipe)
    with large.open("wb") as file:
        file.truncate((1 << 30) + 1)
    for path, words in (
        (tmp_path / "none", "cannot read .*No such file or directory; name an existing cubin file"),
        (tmp_path / "nul\0", "cannot read .*null byte; name an existing cubin file"),
        (tmp_path, "is not a regular file; name a cubin file"),
        (pipe, "is not a regular file; name a cubin file"),
        (Path("/dev/zero"), "is not a regular file; name a cubin file"),
        (large, "is larger than 1 GiB, which no cubin is"),
    ):
        with pytest.raises(CuasmrlError, match=words):
            Cubin.load(path)
