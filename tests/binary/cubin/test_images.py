"""Cubins taken out of fat binaries, objects, libraries and archives; what cannot be read is named."""

import struct
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from cuasmrl.binary.cubin import Cubin
from cuasmrl.binary.cubin.images import OVERRIDE, Skipped, find_cuobjdump, images, images_below
from cuasmrl.errors import CuasmrlError
from cuasmrl.workloads.cuda_compiler import find_nvcc
from tests.conftest import CompileCuda

FIRST = "__global__ void first(float *x) { x[threadIdx.x] *= 2; }"
SECOND = "__global__ void second(float *x) { x[threadIdx.x] += 2; }"
CHIPS = ["sm_80", "sm_90a", "sm_100f"]
NAMES = ["1.sm_80", "2.sm_90a", "3.sm_100"]

Compile = Callable[..., bytes]


@pytest.fixture(scope="session")
def compiled(kept: Callable[[str, list[str], str], bytes]) -> Compile:
    """compiled(source, "-fatbin"): for three chips, and PTX for a fourth."""

    def build(source: str, *options: str, chips: list[str] = CHIPS) -> bytes:
        codes = [f"arch={chip.replace('sm', 'compute')},code={chip}" for chip in chips]
        codes.append("arch=compute_75,code=compute_75")
        wanted = [word for code in codes for word in ("-gencode", code)]
        return kept(source, [str(find_nvcc()), *wanted, *options], ".cu")

    return build


def names(path: Path, archs: list[int] | None = None) -> list[str]:
    return [image.name for image in images(path, archs)]


@pytest.mark.parametrize("options", [["-fatbin"], ["-fatbin", "--compress-mode=size"], ["-c"], ["-dc"]])
def test_every_container(tmp_path: Path, compiled: Compile, options: list[str]) -> None:
    path = tmp_path / "file"
    path.write_bytes(compiled(FIRST, *options))
    found = list(images(path))
    assert [image.name for image in found] == NAMES
    assert [image.arch for image in found] == [80, 90, 100]
    assert {kernel.name for image in found for kernel in image.cubin.kernels} == {"_Z5firstPf"}
    assert {image.source for image in found} == {path}


def test_only_the_wanted_chips(tmp_path: Path, compiled: Compile) -> None:
    path = tmp_path / "two.fatbin"
    path.write_bytes(compiled(FIRST, "-fatbin"))
    assert names(path, [90]) == ["2.sm_90a"]
    assert names(path, [86]) == []


def test_a_library_and_an_archive(tmp_path: Path, compiled: Compile) -> None:
    for name, source in (("a.o", FIRST), ("b.o", SECOND)):
        (tmp_path / name).write_bytes(compiled(source, "-c", "-Xcompiler", "-fPIC"))
    library, archive = tmp_path / "lib.so", tmp_path / "lib.a"
    objects = [str(tmp_path / "a.o"), str(tmp_path / "b.o")]
    subprocess.run(["g++", "-shared", "-o", str(library), *objects], check=True)
    subprocess.run(["ar", "rc", str(archive), *objects], check=True)
    for path in (library, archive):
        found = list(images(path, [80]))
        assert [image.cubin.kernel().name for image in found] == ["_Z5firstPf", "_Z6secondPf"]


def test_a_cubin_is_its_own_image(tmp_path: Path, compile_cuda: CompileCuda) -> None:
    path = tmp_path / "k.cubin"
    path.write_bytes(compile_cuda(FIRST, "sm_80"))
    (image,) = images(path)
    assert (image.name, image.arch, image.data) == ("k.cubin", 80, path.read_bytes())
    assert names(path, [75]) == []


def test_any_file_name(tmp_path: Path, compiled: Compile) -> None:
    """cuobjdump changes blanks and reads a leading dash as an option."""
    path = tmp_path / "- two, three.1.sm_75.fatbin"
    path.write_bytes(compiled(FIRST, "-fatbin"))
    assert names(path) == NAMES


def test_a_walk_is_in_order_and_gives_the_same_bytes_once(tmp_path: Path, compiled: Compile) -> None:
    for name, source in (("z.fatbin", FIRST), ("a/b.fatbin", SECOND), ("m.fatbin", FIRST)):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(compiled(source, "-fatbin"))
    (tmp_path / "a/link.fatbin").symlink_to("b.fatbin")
    (tmp_path / "notes.txt").write_text("no device code")
    found = list(images_below(tmp_path, [80, 90]))
    where = [(image.source.relative_to(tmp_path).as_posix(), image.name) for image in found]
    assert where == [(name, chip) for name in ("a/b.fatbin", "m.fatbin") for chip in ("1.sm_80", "2.sm_90a")]


def test_bad_files_do_not_stop_a_walk(tmp_path: Path, compiled: Compile, compile_cuda: CompileCuda) -> None:
    good, cubin = compiled(FIRST, "-fatbin"), compile_cuda(FIRST, "sm_80")
    files = {
        "cut.fatbin": good[:2000],
        "cut.cubin": cubin[:1000],
        "empty.cubin": b"",
        "good.fatbin": good,
        "host.o": compiled("int main() { return 0; }", "-c"),
        "old.cubin": _for_chip(compile_cuda(SECOND, "sm_80"), 70),
        "text.cubin": b"this is text",
    }
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    skipped: list[Skipped] = []
    assert [image.name for image in images_below(tmp_path, skip=skipped.append)] == NAMES
    reasons = {entry.path.name: entry.reason for entry in skipped}
    assert set(reasons) == set(files) - {"good.fatbin"}
    assert "refuses it" in reasons["cut.fatbin"]
    assert "truncated" in reasons["cut.cubin"]
    assert "without a kernel" in reasons["host.o"]
    assert "sm_70" in reasons["old.cubin"]
    assert "is no cubin" in reasons["empty.cubin"]
    assert "is no cubin" in reasons["text.cubin"]
    assert [entry.path.name for entry in skipped if not entry.is_fault] == ["host.o"]
    assert not any("\n" in reason or str(tmp_path) in reason for reason in reasons.values())


def test_a_damaged_image_is_named_and_the_others_come(tmp_path: Path, compiled: Compile) -> None:
    path = tmp_path / "damaged.fatbin"
    path.write_bytes(compiled(FIRST, "-fatbin", "--compress-mode=none"))
    first = next(images(path))
    text = first.cubin.kernel().text
    (section_table,) = struct.unpack_from("<Q", first.data, 40)
    data = bytearray(path.read_bytes())
    size = data.index(first.data) + section_table + 64 * text.index + 32
    struct.pack_into("<Q", data, size, text.size - 8)
    path.write_bytes(data)
    skipped: list[Skipped] = []
    assert [image.name for image in images(path, skip=skipped.append)] == NAMES[1:]
    (only,) = skipped
    assert only.reason.startswith(NAMES[0])


def test_chips_that_are_not_known_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listed = "".join(f"ELF file    {n}: image.{n}.sm_107a.cubin\n" for n in (1, 2))
    _pretend(tmp_path, monkeypatch, f"printf '{listed}'")
    path = tmp_path / "new.fatbin"
    path.write_bytes(b"\x50\xed\x55\xba")
    skipped: list[Skipped] = []
    assert list(images(path, skip=skipped.append)) == []
    assert skipped == [Skipped(path, "holds 2 cubins for sm_107, which this version does not know", 2)]
    assert names(path, [80]) == []


def test_a_tool_that_dies_is_one_skipped_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _pretend(tmp_path, monkeypatch, "kill -SEGV $$")
    path = tmp_path / "a.fatbin"
    path.write_bytes(b"\x50\xed\x55\xba")
    skipped: list[Skipped] = []
    assert list(images(path, skip=skipped.append)) == []
    assert "exit status -11" in skipped[0].reason


def test_one_file_by_itself_is_refused_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(CuasmrlError, match="no such file"):
        names(tmp_path / "missing")
    with pytest.raises(CuasmrlError, match="is not a directory"):
        list(images_below(tmp_path / "missing"))
    (tmp_path / "text").write_text("text")
    with pytest.raises(CuasmrlError, match="is no cubin"):
        names(tmp_path / "text")


def test_a_tool_that_cannot_be_started_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(OVERRIDE, str(tmp_path / "nothing"))
    path = tmp_path / "a.fatbin"
    path.write_bytes(b"\x50\xed\x55\xba")
    with pytest.raises(CuasmrlError, match="cannot be started"):
        list(images(path, skip=lambda skipped: None))


def test_without_a_tool_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.setattr("shutil.which", lambda name: None)
    with pytest.raises(CuasmrlError, match="pip install triton"):
        find_cuobjdump()


def _for_chip(cubin: bytes, arch: int) -> bytes:
    """The same cubin, of the CUDA 13 ABI, said to be for another chip."""
    assert Cubin.parse(cubin).osabi == 0x41
    flags = int.from_bytes(cubin[48:52], "little") & ~0xFF00 | arch << 8
    return cubin[:48] + flags.to_bytes(4, "little") + cubin[52:]


def _pretend(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    tool = folder / "cuobjdump"
    tool.write_text(f"#!/bin/sh\n{script}\n")
    tool.chmod(0o755)
    monkeypatch.setenv(OVERRIDE, str(tool))
