"""Real cubins for the tests: compiled when first asked for, then kept in pytest's cache folder."""

import fcntl
import hashlib
import importlib.util
import os
import re
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

import pytest

from cuasmrl.binary.sass.disassembler import Nvdisasm


class CompileCuda(Protocol):
    def __call__(self, source: str, arch: str, *options: str) -> bytes: ...


class AssemblePtx(Protocol):
    def __call__(self, ptx: str, arch: str, *options: str) -> bytes: ...


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--renew-golden", action="store_true", help="Write golden files instead of comparing with them."
    )


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """golden(name, text): the text is that of a file in the folder `golden` beside the test."""

    def compare(name: str, text: str) -> None:
        path = Path(request.path).parent / "golden" / name
        if request.config.getoption("--renew-golden"):
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        assert text == path.read_text(), (
            f"{path} says otherwise; if the new text is right, use --renew-golden"
        )

    return compare


def run(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture(scope="session")
def triton_tool() -> Callable[[str], Path]:
    """Path of a binary that comes with Triton: ptxas (12.9, writes the old ABI), cuobjdump, nvdisasm."""

    def find(name: str) -> Path:
        spec = importlib.util.find_spec("triton")
        assert spec is not None, "triton is not installed; run the tests with `make test`"
        assert spec.origin is not None
        return Path(spec.origin).parent / "backends/nvidia/bin" / name

    return find


@pytest.fixture(scope="session")
def kept(pytestconfig: pytest.Config) -> Callable[[str, list[str], str], bytes]:
    """kept(source, command, suffix): output of `command`, run at most once over all workers and runs."""
    cache = pytestconfig.cache
    assert cache is not None
    folder = cache.mkdir("cuasmrl-cubins")

    def make(source: str, command: list[str], suffix: str) -> bytes:
        version = run([command[0], "--version"])
        key = hashlib.sha256("\0".join([source, version, *command]).encode()).hexdigest()[:24]
        output = folder / f"{key}.out"
        with (folder / f"{key}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not output.exists():
                text, scratch = folder / f"{key}{suffix}", folder / f"{key}.new"
                text.write_text(source)
                run([*command, "-o", str(scratch), str(text)])
                scratch.rename(output)
        return output.read_bytes()

    return make


@pytest.fixture(scope="session", autouse=True)
def _listed_once(pytestconfig: pytest.Config, triton_tool: Callable[[str], Path]) -> Iterator[None]:
    """What Triton's nvdisasm says of a file is kept as well; others are stand-ins that tests put there."""
    if importlib.util.find_spec("triton") is None:
        yield
        return
    assert pytestconfig.cache is not None
    folder, tool, run = pytestconfig.cache.mkdir("cuasmrl-listings"), triton_tool("nvdisasm"), Nvdisasm.run
    stamp = tool.stat()

    def run_once(self: Nvdisasm, path: str | Path, *options: str, source: str = "") -> str:
        if self.path != str(tool) or not Path(path).is_file():
            return run(self, path, *options, source=source)
        about = f"{tool} {stamp.st_size} {stamp.st_mtime_ns} {options}".encode()
        output = folder / hashlib.sha256(about + b"\0" + Path(path).read_bytes()).hexdigest()[:24]
        if not output.exists():
            scratch = output.with_suffix(f".{os.getpid()}.{threading.get_ident()}")
            scratch.write_text(run(self, path, *options, source=source))
            scratch.rename(output)
        return output.read_text()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Nvdisasm, "run", run_once)
        yield


@pytest.fixture(scope="session")
def compile_cuda(kept: Callable[[str, list[str], str], bytes]) -> CompileCuda:
    """Cubin of a CUDA C++ text; always the CUDA 13 ABI."""
    from cuasmrl.workloads.cuda_compiler import find_nvcc

    def build(source: str, arch: str, *options: str) -> bytes:
        return kept(source, [str(find_nvcc()), "-cubin", f"-arch={arch}", *options], ".cu")

    return build


@pytest.fixture(scope="session")
def assemble_ptx(
    kept: Callable[[str, list[str], str], bytes], triton_tool: Callable[[str], Path]
) -> AssemblePtx:
    """Cubin of a PTX text by Triton's ptxas 12.9: the CUDA 12 ABI."""

    def build(ptx: str, arch: str, *options: str) -> bytes:
        # ptxas 12.9 knows PTX up to 8.8; nvcc 13 stamps a later version on the same instructions.
        ptx = re.sub(r"^\.version .*$", ".version 8.8", ptx, flags=re.MULTILINE)
        return kept(ptx, [str(triton_tool("ptxas")), f"-arch={arch}", *options], ".ptx")

    return build


@pytest.fixture(scope="session")
def cuda_to_ptx(kept: Callable[[str, list[str], str], bytes]) -> Callable[[str, str], str]:
    """PTX of a CUDA C++ text."""
    from cuasmrl.workloads.cuda_compiler import find_nvcc

    def build(source: str, arch: str) -> str:
        return kept(source, [str(find_nvcc()), "-ptx", f"-arch={arch}"], ".cu").decode()

    return build
