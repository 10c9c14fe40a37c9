"""Every record, register count, shared size and parameter, compared with NVIDIA's own reader."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from cuasmrl.binary.cubin import Cubin, Format, Kernel, Offsets, Record
from cuasmrl.binary.cubin.records import parse_records
from tests.binary.cubin.conftest import SOURCES
from tests.binary.cubin.cuobjdump import Printed, info_sections, resource_usage
from tests.conftest import AssemblePtx, CompileCuda


@pytest.fixture
def listing(triton_tool: Callable[[str], Path], tmp_path: Path) -> Callable[[Cubin, str], str]:
    def show(cubin: Cubin, option: str) -> str:
        path = tmp_path / "k.cubin"
        cubin.save(path)
        done = subprocess.run(
            [str(triton_tool("cuobjdump")), option, str(path)], capture_output=True, text=True, check=False
        )
        # Line tables of ptxas 13.5 are younger than the cuobjdump 13.1 that Triton brings; it ends there.
        younger = done.stderr.startswith("Unrecognized opcode") and ".debug_line" in done.stdout
        assert done.returncode == 0 or younger, done.stdout + done.stderr
        return done.stdout

    return show


def test_every_record_has_cuobjdumps_name_format_and_value(
    cubin: Cubin, listing: Callable[[Cubin, str], str]
) -> None:
    printed = info_sections(listing(cubin, "-elf"))
    ours = {s.name: s for s in cubin.sections if s.name.startswith(".nv.info")}
    assert set(ours) == set(printed)
    for name, section in ours.items():
        records = parse_records(cubin.data, section.offset, section.size, name)
        assert len(records) == len(printed[name])
        for record, theirs in zip(records, printed[name], strict=True):
            compare(record, theirs, cubin)


def compare(record: Record, theirs: Printed, cubin: Cubin) -> None:
    assert record.attribute is not None
    assert record.format == theirs.format
    if theirs.name == "unknown Attribute":
        # Younger than cuobjdump 13.1, which Triton brings.
        assert record.name in ("LANGUAGE", "ATTRIBUTE_6B", "ATTRIBUTE_6D", "MERCURY_ISA_VERSION")
        return
    assert record.name == theirs.name
    words = list(record.words())
    match record.name:
        case "KPARAM_INFO" | "EXTERNS" | "MERCURY_ISA_VERSION" | "AT_ENTRY_FRAGMENTS":
            pass  # printed as fields, names or a version; parameters have a test of their own
        case "REGCOUNT" | "FRAME_SIZE" | "MIN_STACK_SIZE" | "MAX_STACK_SIZE":
            assert theirs.numbers()[-1] == words[1]
            assert f"{cubin.symbols[words[0]].name}({words[0]:#x})" in theirs.text
        case "INDIRECT_BRANCH_TARGETS":
            entries = [[branch, len(t), *t] for branch, t in record.branch_table().items()]
            assert theirs.numbers() == [number for entry in entries for number in entry]
        case "ANNOTATIONS":
            assert theirs.numbers() == words[1::2]
        case "MBARRIER_INSTR_OFFSETS":
            assert set(words[::4]) <= set(theirs.numbers())
        case _ if record.format is Format.SIZED:
            assert theirs.numbers() == words
        case _ if record.format is not Format.NONE:
            assert theirs.numbers() == [record.value]


def test_records_cover_their_section_to_the_last_byte(cubin: Cubin) -> None:
    for section in cubin.sections:
        if section.name.startswith(".nv.info"):
            records = parse_records(cubin.data, section.offset, section.size, section.name)
            header = {Format.SIZED: 4}
            covered = sum(header.get(r.format, 2) + len(r.payload) for r in records)
            assert covered == section.size


def test_registers_and_shared_bytes_are_those_of_res_usage(
    cubin: Cubin, listing: Callable[[Cubin, str], str]
) -> None:
    usage = resource_usage(listing(cubin, "-res-usage"))
    assert {k.name for k in cubin.kernels} == set(usage)
    for kernel in cubin.kernels:
        assert kernel.registers == usage[kernel.name]["REG"]
        assert kernel.shared_bytes == usage[kernel.name]["SHARED"]


def test_the_section_header_has_the_register_count_only_below_sm_90(cubin: Cubin) -> None:
    # It depends on the chip, not on the ABI: ptxas 12.9 for sm_90 writes the old ABI without it.
    for kernel in cubin.kernels:
        assert kernel.text.info >> 24 == (kernel.registers if cubin.arch < 90 else 0)


def check_parameters(kernel: Kernel, theirs: list[Printed], constant_bytes: int) -> None:
    fields = [[int(f, 16) for f in _fields(p.text)] for p in theirs if p.name.startswith("KPARAM_INFO")]
    printed = sorted((ordinal, offset, size) for _, ordinal, offset, size in fields)
    assert [(p.ordinal, p.offset, p.size) for p in kernel.parameters] == printed
    if kernel.parameters:
        last = kernel.parameters[-1]
        assert kernel.parameter_base + last.offset + last.size == constant_bytes


def _fields(text: str) -> list[str]:
    line = text.splitlines()[0]
    return [line.split(f"{key} :")[1].split()[0] for key in ("Index", "Ordinal", "Offset ", "Size   ")]


def test_parameters_are_laid_out_as_cuobjdump_says(
    cubin: Cubin, listing: Callable[[Cubin, str], str]
) -> None:
    printed = info_sections(listing(cubin, "-elf"))
    usage = resource_usage(listing(cubin, "-res-usage"))
    for kernel in cubin.kernels:
        check_parameters(kernel, printed[f".nv.info.{kernel.name}"], usage[kernel.name]["CONSTANT[0]"])
    assert [p.size for p in cubin.kernel("params").parameters] == [1, 2, 4, 8, 4, 8, 16, 8, 1, 1, 16, 8]
    assert cubin.kernel("empty").parameters == ()


@pytest.mark.parametrize("abi", ["cuda12", "cuda13"])
def test_large_parameters_use_the_second_record(
    abi: str,
    compile_cuda: CompileCuda,
    assemble_ptx: AssemblePtx,
    cuda_to_ptx: Callable[[str, str], str],
    listing: Callable[[Cubin, str], str],
) -> None:
    source = (SOURCES / "large_parameters.cu").read_text()
    new = abi == "cuda13"
    data = compile_cuda(source, "sm_90") if new else assemble_ptx(cuda_to_ptx(source, "compute_80"), "sm_80")
    cubin = Cubin.parse(data)
    kernel = cubin.kernel()
    printed = info_sections(listing(cubin, "-elf"))[".nv.info.large"]
    assert "KPARAM_INFO_V2" in {p.name for p in printed}
    constant_bytes = resource_usage(listing(cubin, "-res-usage"))["large"]["CONSTANT[0]"]
    check_parameters(kernel, printed, constant_bytes)
    assert [p.size for p in kernel.parameters] == [16360, 16000, 8, 4, 3, 8]


def test_the_samples_contain_the_records_they_were_written_for(sample: Callable[[str], Cubin]) -> None:
    met = {
        record.name
        for name in ("cuda12-sm_75", "cuda12-sm_80", "cuda13-sm_90")
        for kernel in sample(name).kernels
        for record in kernel.records
        if record.attribute and record.attribute.offsets is not Offsets.ABSENT
    }
    assert met >= {
        "ANNOTATIONS", "EXIT_INSTR_OFFSETS", "COOP_GROUP_INSTR_OFFSETS", "INDIRECT_BRANCH_TARGETS",
        "INT_WARP_WIDE_INSTR_OFFSETS", "MBARRIER_INSTR_OFFSETS", "SYSCALL_OFFSETS",
    }  # fmt: skip
