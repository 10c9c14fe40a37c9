"""The campaign on code that users run, on a small wheel of our own."""

import random
import subprocess
import sys
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cuasmrl.bench.vendor import examination
from cuasmrl.bench.vendor.campaign import Effort, campaign
from cuasmrl.bench.vendor.closeness import too_close
from cuasmrl.bench.vendor.download import download, main
from cuasmrl.bench.vendor.evidence import evidence
from cuasmrl.bench.vendor.examination import Depth, Examined, examine
from cuasmrl.bench.vendor.row import Row
from cuasmrl.bench.vendor.sample import kernel_sizes, only, sample
from cuasmrl.bench.vendor.table import findings, vendor_table
from cuasmrl.bench.vendor.unpacking import skipped_in, unpack
from cuasmrl.bench.vendor.wheels import Wheel, wheels
from cuasmrl.binary.cubin import Cubin
from cuasmrl.binary.sass import Hazard, disassemble
from cuasmrl.checker import Checker
from cuasmrl.errors import CuasmrlError
from cuasmrl.schedule import Schedule
from cuasmrl.schedule.mining import Key
from cuasmrl.workloads.cuda_compiler import find_nvcc
from tests.assembly import listing

SOURCE = """
__global__ void scale(float *x, float a) { x[threadIdx.x] *= a; }
__global__ void mix(float *x, const float *y, int n) {
    float sum = 0;
    for (int i = 0; i < n; i++) sum += x[i] * y[i + threadIdx.x];
    x[threadIdx.x] = sum;
}
"""
TITLE = "kernels-1.0"
DEPTH = Depth(schedules=1, tries=20)
EFFORT = Effort(instructions=10, depth=DEPTH)
WHEEL = Wheel("some-kernels", "1.0", "3.11", "manylinux_2_28_x86_64", "MIT", "")


def silent(done: int, total: int) -> None:
    pass


@pytest.fixture
def root(tmp_path: Path, kept: Callable[[str, list[str], str], bytes]) -> Path:
    """A directory with one wheel: a library for two chips, a damaged one, and what wheels hold besides."""
    chips = [word for chip in (80, 90) for word in ("-gencode", f"arch=compute_{chip},code=sm_{chip}")]
    library = kept(SOURCE, [str(find_nvcc()), "-fatbin", *chips], ".cu")
    (tmp_path / "wheels").mkdir()
    with zipfile.ZipFile(tmp_path / "wheels" / f"{TITLE}-py3-none-any.whl", "w") as wheel:
        wheel.writestr("kernels/lib/device.fatbin", library)
        wheel.writestr("kernels/damaged.fatbin", library[:1000])
        wheel.writestr("kernels/__init__.py", "")
    return tmp_path


@pytest.fixture
def unpacked(root: Path) -> Path:
    (wheel,) = (root / "wheels").iterdir()
    unpack(wheel, root, (80, 90, 120))
    return root / "cubins" / TITLE


def test_the_wheels_are_pinned_open_and_known_once() -> None:
    assert len(wheels()) >= 12
    assert len({wheel.name for wheel in wheels()}) == len(wheels())
    for wheel in wheels():
        assert all(part.isdigit() for part in wheel.version.removesuffix(".post1").split("."))
        assert wheel.licence.startswith(("MIT", "BSD", "Apache", "LGPL"))


def test_a_wheel_that_is_there_is_not_downloaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commands: list[list[str]] = []

    def pip(command: list[str], **options: Any) -> subprocess.CompletedProcess[bytes]:
        commands.append(command)
        folder = Path(command[command.index("--dest") + 1])
        (folder / "some_kernels-1.0-py3-none-any.whl").write_bytes(b"wheel")
        return subprocess.CompletedProcess(command, 0, b"", b"")

    monkeypatch.setattr(subprocess, "run", pip)
    for _ in range(2):
        (path,) = download(tmp_path, [WHEEL])
        assert path == tmp_path / "wheels" / "some_kernels-1.0-py3-none-any.whl"
        assert path.read_bytes() == b"wheel"
    (command,) = commands
    assert command[:4] == [sys.executable, "-m", "pip", "download"]
    assert command[-1] == "some-kernels==1.0"
    assert list((tmp_path / "wheels").iterdir()) == [path]


def test_a_failure_of_pip_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def pip(command: list[str], **options: Any) -> subprocess.CompletedProcess[bytes]:
        return subprocess.CompletedProcess(command, 1, b"", b"WARNING: slow\nERROR: No matching wheel.\n")

    monkeypatch.setattr(subprocess, "run", pip)
    with pytest.raises(CuasmrlError, match=r"pip cannot download some-kernels 1.0 \(No matching wheel\)"):
        download(tmp_path, [WHEEL])
    assert list((tmp_path / "wheels").iterdir()) == []
    assert main([str(tmp_path)]) == 2
    assert "pip cannot download" in capsys.readouterr().err


def test_a_wheel_is_unpacked_once_by_chip(root: Path, unpacked: Path) -> None:
    assert sorted(path.name for path in unpacked.iterdir()) == ["sm_120", "sm_80", "sm_90"]
    (cubin,) = (unpacked / "sm_90").glob("*.cubin")
    assert cubin.name == "kernels-lib-device.fatbin.2.sm_90.cubin"
    assert Cubin.load(cubin).arch == 90
    assert not list((unpacked / "sm_120").glob("*.cubin"))
    assert skipped_in(unpacked / "sm_90") == 1
    cubin.unlink()
    (wheel,) = (root / "wheels").iterdir()
    unpack(wheel, root, (80, 90))
    assert not cubin.exists()


def test_a_damaged_wheel_leaves_nothing(tmp_path: Path) -> None:
    wheel = tmp_path / "bad-1.0-py3-none-any.whl"
    wheel.write_bytes(b"no zip")
    with pytest.raises(CuasmrlError, match="download it again"):
        unpack(wheel, tmp_path, (80,))
    assert list((tmp_path / "cubins" / "bad-1.0").iterdir()) == []


def test_a_sample_is_the_same_for_a_seed_and_ends_when_it_is_large_enough(unpacked: Path) -> None:
    folder = unpacked / "sm_80"
    (path,) = folder.glob("*.cubin")
    sizes = kernel_sizes(Cubin.load(path))
    assert len(sizes) == 2
    smallest = min(sizes, key=lambda name: sizes[name])

    def draw(instructions: int, largest: int | None, seed: int = 0) -> list[str]:
        found = sample(folder, instructions, largest, random.Random(seed))
        assert found.too_large == (largest is not None)
        return found.kernels.get(path, [])

    assert {tuple(draw(1, None)) for _ in range(5)} == {tuple(draw(1, None))}
    assert {draw(1, None, seed)[0] for seed in range(20)} == set(sizes)
    assert sorted(draw(10**6, None)) == sorted(sizes)
    assert draw(10**6, sizes[smallest]) == [smallest]


def test_a_kernel_by_itself_can_be_checked(unpacked: Path) -> None:
    (path,) = (unpacked / "sm_90").glob("*.cubin")
    cubin = Cubin.load(path)
    name = cubin.kernels[0].name
    alone = only(cubin, [name])
    assert [kernel.name for kernel in alone.kernels] == [name]
    assert alone.data == cubin.data
    assert Checker(alone, disassemble(alone)).check(alone).kernels == (name,)


def examined(unpacked: Path, depth: Depth) -> Examined:
    (path,) = (unpacked / "sm_80").glob("*.cubin")
    cubin = Cubin.load(path)
    name = max(kernel_sizes(cubin), key=lambda kernel: kernel_sizes(cubin)[kernel])
    alone = only(cubin, [name])
    return examine(alone, disassemble(alone)[name], depth, random.Random(0))


def test_a_kernel_is_examined_to_the_end(unpacked: Path) -> None:
    found = examined(unpacked, Depth(schedules=2, tries=50))
    assert (found.stage, found.slow, found.failed) == ("done", False, "")
    assert (found.unchanged, found.refused, found.hazards) == (True, "", [])
    assert found.schedules == 4
    assert found.moves > 10


def test_a_slow_kernel_says_where_it_was_stopped(unpacked: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def forever(listing: object) -> None:
        while True:
            pass

    monkeypatch.setattr(examination, "lint", forever)
    found = examined(unpacked, Depth(seconds=0.5))
    assert (found.slow, found.stage, found.failed) == (True, "lint", "")


def test_an_error_is_reported_and_not_raised(unpacked: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(listing: object) -> None:
        raise IndexError("list index out of range")

    monkeypatch.setattr(examination, "lint", broken)
    found = examined(unpacked, DEPTH)
    assert (found.stage, found.failed) == ("lint", "IndexError: list index out of range")


CLOSE = """
B------:R-:W-:-:S05  FADD R1, R8, R9
B------:R-:W-:-:S05  FMUL R2, R1, R9
B------:R-:W-:-:S05  EXIT
"""


@pytest.mark.parametrize(("stall", "minimum", "found"), [(5, 6, 0), (4, 4, 0), (4, 5, 1), (1, 4, 1)])
def test_a_pair_is_too_close_if_it_was_brought_below_what_compilers_leave(
    stall: int, minimum: int, found: int
) -> None:
    code = listing(CLOSE)
    as_compiled = Schedule.original(code)
    first = replace(as_compiled.controls[0], stall=stall)
    schedule = as_compiled.replaced(controls=(first, *as_compiled.controls[1:]))
    minima: dict[Key, int] = {(90, Hazard.RAW, "R", "FADD", "data", "FMUL", "data"): minimum}
    sentences = list(too_close(schedule, minima))
    assert len(sentences) == found
    assert all(f"after FADD R1, R8, R9 at 0x0000, compilers leave {minimum}" in text for text in sentences)


def test_a_sample_is_mined_with_the_wheel_as_witness(root: Path) -> None:
    mined = evidence(root, 10**6, 0, silent, archs=(80, 90), jobs=1)
    assert mined.cubins == 2
    assert {key[0] for key in mined.evidence} == {80, 90}
    assert mined.instructions == sum(
        size
        for path in (root / "cubins").rglob("*.cubin")
        for size in kernel_sizes(Cubin.load(path)).values()
    )
    assert {row.witness for row in mined.summary} == {TITLE}
    assert evidence(root, 10**6, 0, silent, archs=(80, 90)) == mined


def test_rows_do_not_depend_on_the_number_of_jobs_and_are_made_once(root: Path) -> None:
    file = root / "rows.jsonl"
    steps: list[tuple[int, int]] = []
    rows = campaign(root, EFFORT, lambda *step: steps.append(step), archs=(80, 90, 120), keep=file)
    assert [(row.wheel, row.arch) for row in rows] == [(TITLE, 80), (TITLE, 90)]
    assert steps[-1] == (2, 2)
    for row in rows:
        assert row.instructions >= EFFORT.instructions
        assert (row.changed, row.refused, row.refused_schedules, row.slow, row.failed) == (0, 0, 0, [], [])
        assert row.schedules == 2 * row.kernels
        assert row.skipped == 1
    text = file.read_text()
    assert campaign(root, EFFORT, silent, archs=(80, 90), keep=file) == rows
    assert file.read_text() == text
    assert campaign(root, EFFORT, silent, wheels=["kernels"], archs=(80, 90), jobs=1) == rows


def test_what_is_missing_is_said(root: Path, tmp_path: Path) -> None:
    with pytest.raises(CuasmrlError, match="no wheel other in .*; there are kernels-1.0"):
        campaign(root, EFFORT, silent, wheels=["other"])
    with pytest.raises(CuasmrlError, match="cuasmrl.bench.vendor.download"):
        campaign(tmp_path / "empty", EFFORT, silent)


ROW = Row(
    wheel="a-1", arch=80, effort="", cubins=1, kernels=2, instructions=3000, changed=0, refused=1,
    unexplained=4, hazards={"unprotected result": 7}, unknown={"TEX": 2}, moves=9, schedules=8,
    refused_schedules=0, too_close=0, slow=["9000 instructions, stopped in lint: k.cubin, kernel k"],
    failed=[], too_large=0, skipped=0, seconds=1.5,
    examples={"refused": ["why"], "unprotected result": ["one", "two"]},
)  # fmt: skip


def test_the_table_has_sums() -> None:
    table = vendor_table([ROW, replace(ROW, arch=90)])
    assert list(table.columns[0].cells) == ["a-1", "a-1", "1 wheels"]
    assert list(table.columns[4].cells) == ["3,000", "3,000", "6,000"]


def test_findings_are_counted_and_shown() -> None:
    lines = list(findings([ROW, replace(ROW, arch=90)], shown=1))
    assert lines == [
        "refused: 2",
        "  a-1 sm_80, why",
        "unprotected result: 14",
        "  a-1 sm_80, one",
        "slow: 2",
        "  a-1 sm_80, 9000 instructions, stopped in lint: k.cubin, kernel k",
        "unknown opcodes: TEX 4",
    ]
