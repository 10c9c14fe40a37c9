"""nvdisasm: found, version-checked, run once per cubin, and its listing turned into instructions."""

import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from cuasmrl.binary.cubin import Cubin, Kernel
from cuasmrl.binary.sass.instruction import Instruction, parse_instruction
from cuasmrl.errors import CuasmrlError

OVERRIDE = "CUASMRL_NVDISASM"
_RELEASE = re.compile(r"release (\d+)\.(\d+)")
_SECTION = re.compile(r"\s*\.section\s+\.text\.([^,\s]+),")
_LINE = re.compile(r"\s+/\*([0-9a-f]{4,})\*/\s+(.*?)\s*;")
_LABEL = re.compile(r"([\w.$]+):\s*$")
_COMMENT = re.compile(r"\s*\(\*.*?\*\)")
_TIMEOUT_SECONDS = 600
_PLACES = (
    ("triton", "backends/nvidia/bin"),
    ("nvidia", "cu13/bin"),
    ("nvidia", "cuda_nvdisasm/bin"),
)


@dataclass(frozen=True)
class Nvdisasm:
    path: str
    version: tuple[int, int]

    def run(self, path: str | Path, *options: str, source: str = "") -> str:
        """Standard output; an error speaks of `source` where `path` is only a scratch copy of it."""
        what = source or str(path)
        release = f"nvdisasm {self.version[0]}.{self.version[1]}"
        command = [self.path, *options, str(path)]
        try:
            done = subprocess.run(command, capture_output=True, timeout=_TIMEOUT_SECONDS, check=False)
        except subprocess.TimeoutExpired:
            raise CuasmrlError(
                f"{release} did not finish {what} in {_TIMEOUT_SECONDS} seconds; is the machine overloaded?"
            ) from None
        except OSError as error:
            raise CuasmrlError(
                f"{release} at {self.path} cannot be started ({error.strerror}); pip install -U triton"
            ) from error
        if done.returncode:
            printed = (done.stderr or done.stdout).decode(errors="replace").strip().splitlines()
            reason = printed[-1] if printed else f"exit status {done.returncode}"
            raise CuasmrlError(f"{release} refuses {what} ({reason}); recompile it, or pip install -U triton")
        return done.stdout.decode(errors="replace")


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
    wanted = f"nvdisasm {minimum[0]}.{minimum[1]} or newer"
    found = []
    for path in _candidates():
        version = _version(path)
        if version is not None and version >= minimum:
            return Nvdisasm(path, version)
        found.append(
            f"{path} is {version[0]}.{version[1]}" if version else f"{path} does not say its version"
        )
    if found:
        raise CuasmrlError(
            f"{wanted} is needed, but {' and '.join(found)}; pip install -U triton, or set {OVERRIDE}"
        )
    raise CuasmrlError(f"no nvdisasm found; pip install triton (it ships one), or set {OVERRIDE} to {wanted}")


def _candidates() -> Iterator[str]:
    if override := os.environ.get(OVERRIDE):
        yield override
        return
    for package, inside in _PLACES:
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
        done = subprocess.run([path, "--version"], capture_output=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = _RELEASE.search(done.stdout.decode(errors="replace"))
    return (int(match[1]), int(match[2])) if match else None


def _minimum_version(cubin: Cubin) -> tuple[int, int]:
    if cubin.osabi == 0x41:
        return (13, 0)
    return (12, 8) if cubin.arch >= 100 else (12, 0)


def disassemble(cubin: Cubin, names: Collection[str] | None = None) -> dict[str, Listing]:
    """All kernels of a cubin, by name, from one run of nvdisasm.

    If only those of some names are wanted, labels may have other numbers: nvdisasm counts what it prints.
    """
    tool = find_nvdisasm(_minimum_version(cubin))
    kernels = [kernel for kernel in cubin.kernels if names is None or kernel.name in names]
    with tempfile.TemporaryDirectory(prefix="cuasmrl-") as folder:
        path = Path(folder) / "kernel.cubin"
        path.write_bytes(cubin.data)
        # Without dataflow analysis nvdisasm is faster and accepts every cubin; the text is the same.
        output = tool.run(path, "-c", "-ndf", *_only(cubin, names), source=cubin.source)
    texts = parse_output(output)
    return {k.name: _listing(cubin, k, *texts.get(k.name, ([], {}))) for k in kernels}


def _only(cubin: Cubin, names: Collection[str] | None) -> list[str]:
    """Makes nvdisasm skip other kernels: of libraries with thousands that saves most of the time."""
    if not names:
        return []
    chosen = [str(n) for n, s in enumerate(cubin.symbols) if s.is_function and s.name in names]
    return ["-fun", ",".join(chosen)] if len(chosen) == len(names) else []


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
    where = f"{cubin.source}, kernel {kernel.name}"
    if len(texts) != len(kernel.words):
        raise CuasmrlError(
            f"{where}: nvdisasm lists {len(texts)} instructions for {len(kernel.words)} words of code; "
            "pip install -U triton for a newer nvdisasm"
        )
    instructions = []
    for index, (word, text) in enumerate(zip(kernel.words, texts, strict=True)):
        try:
            instructions.append(parse_instruction(index, word, text, kernel.arch, kernel.registers, labels))
        except ValueError as error:
            raise CuasmrlError(
                f"{where}, address {16 * index:#06x}: {error}; this nvdisasm may be too new for cuasmrl"
            ) from error
    return Listing(kernel, tuple(instructions))
