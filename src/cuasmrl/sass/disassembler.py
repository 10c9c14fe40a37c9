"""nvdisasm: found, version-checked, run once per cubin, and its listing turned into instructions."""

import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from cuasmrl.cubin import Cubin, Kernel
from cuasmrl.errors import CuasmrlError
from cuasmrl.sass.instruction import Instruction, parse_instruction

OVERRIDE = "CUASMRL_NVDISASM"
_RELEASE = re.compile(r"release (\d+)\.(\d+)")
_SECTION = re.compile(r"\s*\.section\s+\.text\.([^,\s]+),")
_LINE = re.compile(r"\s+/\*([0-9a-f]{4,})\*/\s+(.*?)\s*;")
_LABEL = re.compile(r"([\w.$]+):\s*$")
_COMMENT = re.compile(r"\s*\(\*.*?\*\)")
_TIMEOUT_SECONDS = 600


@dataclass(frozen=True)
class Nvdisasm:
    path: str
    version: tuple[int, int]

    def run(self, path: str | Path, *options: str) -> str:
        try:
            done = subprocess.run(
                [self.path, *options, str(path)], capture_output=True, text=True, timeout=_TIMEOUT_SECONDS, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise CuasmrlError(f"nvdisasm at {self.path} did not run on {path}: {error}") from error
        if done.returncode:
            reason = (done.stderr or done.stdout).strip().splitlines()
            raise CuasmrlError(
                f"nvdisasm {self.version[0]}.{self.version[1]} refuses {path}: {reason[-1] if reason else 'no reason given'}"
            )
        return done.stdout


@dataclass(frozen=True)
class Listing:
    """A kernel with its instructions."""

    kernel: Kernel
    instructions: tuple[Instruction, ...]

    @property
    def unknown(self) -> tuple[Instruction, ...]:
        return tuple(i for i in self.instructions if i.declaration is None)


def find_nvdisasm(minimum: tuple[int, int] = (12, 0)) -> Nvdisasm:
    """The first nvdisasm that is new enough: $CUASMRL_NVDISASM, Triton's, the PyPI package's, PATH's."""
    too_old = []
    for path in _candidates():
        version = _version(path)
        if version is None:
            continue
        if version >= minimum:
            return Nvdisasm(path, version)
        too_old.append(f"{path} is {version[0]}.{version[1]}")
    wanted = f"nvdisasm {minimum[0]}.{minimum[1]} or newer"
    if too_old:
        raise CuasmrlError(f"{wanted} is needed, but {'; '.join(too_old)}: pip install triton, or update CUDA")
    raise CuasmrlError(f"no nvdisasm found: pip install triton (it ships one), or set {OVERRIDE} to {wanted}")


def _candidates() -> Iterator[str]:
    if override := os.environ.get(OVERRIDE):
        yield override
        return
    for package, inside in (("triton", "backends/nvidia/bin"), ("nvidia", "cu13/bin"), ("nvidia", "cuda_nvdisasm/bin")):
        spec = importlib.util.find_spec(package)
        for folder in (spec.submodule_search_locations or ()) if spec else ():
            path = Path(folder) / inside / "nvdisasm"
            if path.exists():
                yield str(path)
    if path_tool := shutil.which("nvdisasm"):
        yield path_tool


@lru_cache
def _version(path: str) -> tuple[int, int] | None:
    try:
        done = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = _RELEASE.search(done.stdout)
    return (int(match[1]), int(match[2])) if match else None


def _minimum_version(cubin: Cubin) -> tuple[int, int]:
    if cubin.osabi == 0x41:
        return (13, 0)
    return (12, 8) if cubin.arch >= 100 else (12, 0)


def disassemble(cubin: Cubin) -> dict[str, Listing]:
    """All kernels of a cubin, by name, from one run of nvdisasm."""
    tool = find_nvdisasm(_minimum_version(cubin))
    with tempfile.TemporaryDirectory(prefix="cuasmrl-") as folder:
        path = Path(folder) / "kernel.cubin"
        path.write_bytes(cubin.data)
        # Without dataflow analysis nvdisasm is faster and accepts every cubin; the text is the same.
        output = tool.run(path, "-c", "-ndf")
    texts = parse_output(output)
    return {kernel.name: _listing(cubin, kernel, *texts.get(kernel.name, ([], {}))) for kernel in cubin.kernels}


def disassemble_kernel(cubin: Cubin, name: str | None = None) -> Listing:
    kernel = cubin.kernel(name)
    return disassemble(cubin)[kernel.name]


def parse_output(output: str) -> dict[str, tuple[list[str], dict[str, int]]]:
    """Per kernel: the instruction texts in order, and the labels with the offsets they stand at."""
    result: dict[str, tuple[list[str], dict[str, int]]] = {}
    texts: list[str] = []
    labels: dict[str, int] = {}
    for line in output.splitlines():
        if match := _LINE.match(line):
            texts.append(_COMMENT.sub("", match[2]).strip())
        elif match := _SECTION.match(line):
            texts, labels = result.setdefault(match[1], ([], {}))
        elif match := _LABEL.match(line):
            labels[match[1]] = 16 * len(texts)
    return result


def _listing(cubin: Cubin, kernel: Kernel, texts: list[str], labels: dict[str, int]) -> Listing:
    if len(texts) != len(kernel.words):
        raise CuasmrlError(
            f"{cubin.source}, kernel {kernel.name}: nvdisasm lists {len(texts)} instructions but the code holds "
            f"{len(kernel.words)} words; install a newer nvdisasm (pip install -U triton)"
        )
    instructions = []
    for index, (word, text) in enumerate(zip(kernel.words, texts, strict=True)):
        try:
            instructions.append(parse_instruction(index, word, text, kernel.arch, kernel.registers, labels))
        except ValueError as error:
            raise CuasmrlError(f"{cubin.source}, kernel {kernel.name}, address {16 * index:#06x}: {error}") from error
    return Listing(kernel, tuple(instructions))
