"""The shim as a compiler meets it: like the real ptxas, whatever happens behind."""

import os
import re
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from cuasmrl.deploy.store import Store
from tests.deploy.shim.conftest import PTX, put

Make = Callable[..., Path]
MODEL = ("--gpu-name=sm_80", str(PTX))


CALLER = """
import mmap, subprocess, sys
files = [open(path, "rb") for path in sys.argv[2:]]
held = [mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) for file in files]
subprocess.run([sys.argv[1]], check=True)
"""
"""Calls a tool with files in its memory."""


def call(tool: Path, *arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[bytes]:
    command = [str(tool), *map(str, arguments)]
    return subprocess.run(
        command, capture_output=True, check=False, timeout=60, env={**os.environ, **environment}
    )


@pytest.fixture
def ptxas(triton_tool: Callable[[str], Path]) -> Path:
    return triton_tool("ptxas")


def test_stored_code_takes_the_place_of_compiled_code(
    tmp_path: Path, store: Store, cubin: bytes, ptxas: Path, make_shim: Make
) -> None:
    better = put(store, cubin)
    output = tmp_path / "a.cubin"
    done = call(make_shim(ptxas), *MODEL, "-o", output)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert output.read_bytes() == better
    assert list(tmp_path.glob("*.partial")) == []


def test_an_empty_store_changes_nothing(
    tmp_path: Path, store: Store, cubin: bytes, ptxas: Path, make_shim: Make
) -> None:
    shim, output = make_shim(ptxas), tmp_path / "a.cubin"
    said = call(shim, *MODEL, "-v", "-o", output)
    expected = call(ptxas, *MODEL, "-v", "-o", tmp_path / "b.cubin")
    assert output.read_bytes() == cubin
    # With -v ptxas also says how long it took.
    without_times = [re.sub(rb"\d+\.\d+ ms", b"", text) for text in (said.stderr, expected.stderr)]
    assert (said.stdout, without_times[0]) == (expected.stdout, without_times[1])
    assert call(shim, "--version").stdout == call(ptxas, "--version").stdout
    assert not Path(store.root).exists()


def test_the_version_names_the_state_of_the_store(
    store: Store, cubin: bytes, ptxas: Path, make_shim: Make
) -> None:
    shim = make_shim(ptxas)
    put(store, cubin)
    said = call(shim, "--version").stdout
    assert said == call(ptxas, "--version").stdout + f"cuasmrl {store.epoch}\n".encode()
    (key,) = store.keys()
    store.remove(key)
    assert call(shim, "--version").stdout == call(ptxas, "--version").stdout


def test_recording_keeps_the_cubin(
    tmp_path: Path, store: Store, cubin: bytes, ptxas: Path, make_shim: Make
) -> None:
    shim, output = make_shim(ptxas), tmp_path / "a.cubin"
    call(shim, *MODEL, "-o", output, CUASMRL_MODE="record")
    (seen,) = store.recorded()
    assert seen.cubin.read_bytes() == output.read_bytes() == cubin
    assert seen.launches == ()
    assert seen.origin["compiler"] == str(ptxas)
    assert seen.origin["arguments"] == [*MODEL, "-o", str(output)]
    # A cache filled without us, or for another store, must not hide kernels from this one.
    assert b"cuasmrl record-" in call(shim, "--version", CUASMRL_MODE="record").stdout


def test_what_is_stored_is_not_recorded(
    tmp_path: Path, store: Store, cubin: bytes, ptxas: Path, make_shim: Make
) -> None:
    put(store, cubin)
    call(make_shim(ptxas), *MODEL, "-o", tmp_path / "a.cubin", CUASMRL_MODE="record")
    assert store.recorded() == []


def test_a_process_that_records_launches_records_alone(
    tmp_path: Path, store: Store, ptxas: Path, make_shim: Make
) -> None:
    shim = make_shim(ptxas, beside="ptxas")
    call(shim, *MODEL, "-o", tmp_path / "a", CUASMRL_MODE="record", CUASMRL_TRITON="record")
    assert store.recorded() == []


def test_a_failure_of_ptxas_is_passed_on(tmp_path: Path, store: Store, ptxas: Path, make_shim: Make) -> None:
    broken = tmp_path / "broken.ptx"
    broken.write_text(PTX.read_text().replace("fma.rn", "fna.rn"))
    said, expected = (
        call(tool, "--gpu-name=sm_80", broken, "-o", tmp_path / "x") for tool in (make_shim(ptxas), ptxas)
    )
    assert said.returncode == expected.returncode == 255
    assert (said.stdout, said.stderr) == (expected.stdout, expected.stderr)
    assert b"'fna'" in said.stderr


@pytest.mark.parametrize("status", [1, 3, 127, 128, 200, 255])
def test_every_status_is_kept(store: Store, fake_tool: Make, make_shim: Make, status: int) -> None:
    assert call(make_shim(fake_tool(f"exit {status}")), "-o", "x").returncode == status


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGKILL, signal.SIGTERM])
def test_the_signal_that_ended_ptxas_ends_the_shim(
    store: Store, fake_tool: Make, make_shim: Make, number: signal.Signals
) -> None:
    assert call(make_shim(fake_tool(f"kill -{number} $$")), "-o", "x").returncode == -number


def test_arguments_input_and_output_are_untouched(store: Store, fake_tool: Make, make_shim: Make) -> None:
    shim = make_shim(fake_tool("printf '<%s>\\n' \"$@\"; cat; echo loud >&2"))
    odd = ["", "a b", "*", "$HOME", "'", '"', "\\n", "é\n", "-x=1"]
    done = subprocess.run([str(shim), *odd], input=b"typed\n", capture_output=True, check=True, timeout=60)
    assert done.stdout == "".join(f"<{a}>\n" for a in odd).encode() + b"typed\n"
    assert done.stderr == b"loud\n"


def test_without_a_ptxas_it_says_so(tmp_path: Path, store: Store, make_shim: Make) -> None:
    done = call(make_shim(tmp_path / "none"), "--version")
    assert done.returncode == 127
    assert b"there is no ptxas to run" in done.stderr
    assert done.stdout == b""


def test_a_shim_that_would_call_itself_stops(store: Store, make_shim: Make) -> None:
    shim = make_shim("placeholder")
    shim = make_shim(shim)
    done = call(shim, "--version")
    assert done.returncode == 127
    assert done.stderr.count(b"would call itself") == 1


def test_two_shims_that_call_each_other_stop(store: Store, make_shim: Make) -> None:
    first = make_shim("placeholder")
    second = make_shim(first, name="second")
    make_shim(second)
    done = call(first, "--version")
    assert done.returncode == 127
    assert done.stderr.count(b"would call itself") == 1


def test_a_shim_behind_a_shim_only_passes_on(
    tmp_path: Path, store: Store, cubin: bytes, ptxas: Path, make_shim: Make
) -> None:
    better = put(store, cubin)
    outer = make_shim(make_shim(ptxas), name="outer")
    assert call(outer, *MODEL, "-o", tmp_path / "a").returncode == 0
    assert (tmp_path / "a").read_bytes() == better
    assert call(outer, "--version").stdout.count(b"cuasmrl") == 1


@pytest.mark.parametrize("line", ["python=/nowhere/python", "program=/nowhere/substitute.py"])
def test_without_cuasmrl_the_build_goes_on(
    tmp_path: Path, store: Store, cubin: bytes, ptxas: Path, make_shim: Make, line: str
) -> None:
    put(store, cubin)
    shim, output = make_shim(ptxas), tmp_path / "a"
    text = shim.read_text()
    shim.write_text(re.sub(rf"^{line.partition('=')[0]}=.*$", line, text, count=1, flags=re.MULTILINE))
    session = tmp_path / "session"
    session.mkdir()
    first, second = (call(shim, *MODEL, "-o", output, CUASMRL_SESSION=str(session)) for _ in range(2))
    assert first.returncode == second.returncode == 0
    assert output.read_bytes() == cubin
    assert b"ptxas's own code is kept" in first.stderr
    assert b"ptxas's own code is kept" not in second.stderr
    assert len((session / "events.jsonl").read_text().splitlines()) == 2
    assert b"ptxas's own code is kept" in call(shim, *MODEL, "-o", output).stderr


def test_it_takes_the_tool_of_the_triton_that_calls(
    tmp_path: Path, store: Store, fake_tool: Make, make_shim: Make
) -> None:
    """Several Tritons may be installed; the library of the one that calls is in the memory of its process."""
    shim = make_shim(fake_tool("echo another one"), beside="ptxas-blackwell", kept="CUASMRL_PTXAS_BLACKWELL")
    triton = tmp_path / "a b" / "triton"
    own = triton / "backends/nvidia/bin/ptxas-blackwell"
    for folder in (triton / "_C", own.parent):
        folder.mkdir(parents=True)
    (triton / "_C/libtriton.so").write_bytes(b"library")
    own.write_text("#!/bin/sh\necho the caller own\n")
    own.chmod(0o755)
    # A process of its own: this one may have loaded a Triton for another test.
    bare = partial(call, Path(sys.executable), "-c", CALLER, shim)
    holding = partial(bare, triton / "_C/libtriton.so")
    assert bare().stdout == b"another one\n"
    assert holding().stdout == b"the caller own\n"
    asked = str(fake_tool("echo the wish of the user"))
    assert holding(CUASMRL_PTXAS_BLACKWELL=asked).stdout == b"the wish of the user\n"


def test_permissions_and_links_stay(
    tmp_path: Path, store: Store, cubin: bytes, ptxas: Path, make_shim: Make
) -> None:
    better = put(store, cubin)
    target, link = tmp_path / "target.cubin", tmp_path / "link.cubin"
    link.symlink_to(target)
    shim = make_shim(ptxas)
    subprocess.run(
        ["sh", "-c", f"umask 027; exec {shim} {' '.join(MODEL)} -o {link}"], check=True, timeout=60
    )
    assert link.is_symlink()
    assert target.read_bytes() == better
    assert stat.S_IMODE(target.stat().st_mode) == 0o640


def test_what_is_no_file_is_left_alone(store: Store, cubin: bytes, ptxas: Path, make_shim: Make) -> None:
    put(store, cubin)
    done = call(make_shim(ptxas), *MODEL, "-o", "/dev/null")
    assert (done.returncode, done.stderr) == (0, b"")
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)


def test_the_python_of_the_shim_sees_no_settings_of_the_program(
    tmp_path: Path, store: Store, cubin: bytes, ptxas: Path, make_shim: Make
) -> None:
    """Whatever a program does to its own Python must not reach ours."""
    better = put(store, cubin)
    (tmp_path / "json.py").write_text("raise RuntimeError('not the json you want')")
    hostile = {"PYTHONPATH": str(tmp_path), "PYTHONHOME": "/nowhere", "PYTHONSTARTUP": "x", "LC_ALL": "C"}
    done = subprocess.run(
        [str(make_shim(ptxas)), *MODEL, "-o", "a"],
        env={**os.environ, **hostile}, cwd=tmp_path, capture_output=True, check=True, timeout=60,
    )  # fmt: skip
    assert (done.stdout, done.stderr) == (b"", b"")
    assert (tmp_path / "a").read_bytes() == better
