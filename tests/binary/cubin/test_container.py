"""Sections, symbols and kernels as they are read, and the file written back."""

import io
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from cuasmrl.binary.cubin import Cubin
from cuasmrl.errors import CuasmrlError
from tests.binary.cubin.conftest import SOURCES
from tests.conftest import CompileCuda

KERNELS = {"plain", "jump", "warp", "tile", "params", "empty", "calls", "heap", "barrier", "spill"}


def test_load_and_save_leave_every_byte(cubin: Cubin, tmp_path: Path) -> None:
    first, second = tmp_path / "a.cubin", tmp_path / "b.cubin"
    first.write_bytes(cubin.data)
    Cubin.load(first).save(second)
    assert second.read_bytes() == cubin.data


def test_sections_and_symbols_are_those_of_pyelftools(cubin: Cubin) -> None:
    elf = ELFFile(io.BytesIO(cubin.data))
    theirs = [(s.name, s["sh_offset"], s["sh_size"], s["sh_info"]) for s in elf.iter_sections()]
    assert [(s.name, s.offset, s.size, s.info) for s in cubin.sections] == theirs
    symbols = [
        (s.name, s["st_shndx"] if isinstance(s["st_shndx"], int) else -1, s["st_value"],
         s["st_info"]["type"] == "STT_FUNC")
        for s in elf.get_section_by_name(".symtab").iter_symbols()
    ]  # fmt: skip
    assert [tuple(s) for s in cubin.symbols] == symbols


def test_abi_and_arch_come_from_different_bytes_of_the_flags(sample: Callable[[str], Cubin]) -> None:
    assert (sample("cuda12-sm_80").osabi, sample("cuda12-sm_80").arch) == (0x33, 80)
    assert (sample("cuda13-sm_80").osabi, sample("cuda13-sm_80").arch) == (0x41, 80)
    assert sample("cuda12-sm_75").arch == 75
    assert sample("cuda13-sm_120").arch == 120


def test_every_kernel_of_the_file_is_found(cubin: Cubin) -> None:
    assert {kernel.name for kernel in cubin.kernels} == KERNELS
    for kernel in cubin.kernels:
        assert b"".join(kernel.words) == cubin.bytes_of(kernel.text)
        assert (0, kernel.name) in kernel.entry_points
        assert kernel.unknown_records() == ()
        assert not kernel.has_relocations


def test_a_device_function_is_an_entry_point_inside_its_kernel(cubin: Cubin) -> None:
    kernel = cubin.kernel("calls")
    inner = [offset for offset, name in kernel.entry_points if "recurse" in name]
    assert len(inner) == 1
    assert 0 < inner[0] < kernel.text.size
    assert inner[0] % 16 == 0


def test_jump_table_names_blocks_of_the_kernel(cubin: Cubin) -> None:
    kernel = cubin.kernel("jump")
    targets = kernel.branch_targets()
    assert targets
    for branch, heads in targets.items():
        assert branch < kernel.text.size
        assert len(heads) > 1
    assert cubin.kernel("plain").branch_targets() == {}


def test_shared_memory_has_a_size_but_no_bytes(cubin: Cubin) -> None:
    section = cubin.section(".nv.shared.tile")
    assert section is not None
    assert cubin.bytes_of(section) == b""
    # From sm_90 on the size includes 1 KiB that CUDA keeps for itself.
    reserved = 1024 if cubin.arch >= 90 else 0
    assert cubin.kernel("tile").shared_bytes == 33 * 32 * 4 + 7 * 8 + reserved


def test_separate_compilation_shows_as_relocations(compile_cuda: CompileCuda) -> None:
    cubin = Cubin.parse(compile_cuda((SOURCES / "many.cu").read_text(), "sm_80", "-rdc=true"))
    assert cubin.kernel("calls").has_relocations
    assert not cubin.kernel("empty").has_relocations
    assert {kernel.name for kernel in cubin.kernels} > KERNELS


def test_one_kernel_needs_no_name_and_several_do(compile_cuda: CompileCuda, cubin: Cubin) -> None:
    single = Cubin.parse(
        compile_cuda('extern "C" __global__ void only(int *x) { *x = 1; }', "sm_80"), "s.cubin"
    )
    assert single.kernel().name == "only"
    with pytest.raises(CuasmrlError, match="holds several kernels .* choose one by name"):
        cubin.kernel()
    with pytest.raises(CuasmrlError, match="has no kernel nobody; it holds only"):
        single.kernel("nobody")


def test_save_replaces_the_file_and_leaves_no_scratch(sample: Callable[[str], Cubin], tmp_path: Path) -> None:
    target = tmp_path / "k.cubin"
    target.write_bytes(b"old")
    sample("cuda13-sm_80").save(target)
    assert target.read_bytes() == sample("cuda13-sm_80").data
    assert [path.name for path in tmp_path.iterdir()] == ["k.cubin"]
    assert stat.S_IMODE(target.stat().st_mode) & stat.S_IRUSR


def test_a_save_that_fails_keeps_the_old_file(
    sample: Callable[[str], Cubin], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "k.cubin"
    target.write_bytes(b"old")

    def full(self: Path, data: bytes) -> int:
        with self.open("wb") as file:
            file.write(data[:100])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(CuasmrlError, match="cannot write .*No space left on device; choose a writable place"):
        sample("cuda13-sm_80").save(target)
    assert target.read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["k.cubin"]


@pytest.mark.parametrize("place", ["", "missing/k.cubin", "file/k.cubin", "x" * 300, "nul\0.cubin", "."])
def test_save_to_an_impossible_place_is_one_sentence(
    place: str, sample: Callable[[str], Cubin], tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CuasmrlError, match="cannot write"):
        sample("cuda13-sm_80").save(f"{tmp_path}/{place}")
    assert {path.name for path in tmp_path.iterdir()} == {"file"}
