"""Cubins inside other files: fat binaries, objects, libraries, programs, archives.

NVIDIA's cuobjdump takes them out, compressed ones too. A file is read whole or not at all: what cannot be
read is named, and the next file comes.
"""

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from cuasmrl.binary.cubin.container import SUPPORTED_ARCHS, Cubin
from cuasmrl.binary.cubin.elf import MACHINE_CUDA
from cuasmrl.errors import CuasmrlError

OVERRIDE = "CUASMRL_CUOBJDUMP"
_PLACES = (
    ("triton", "backends/nvidia/bin"),
    ("nvidia", "cu13/bin"),
    ("nvidia", "cuda_nvcc/bin"),
    ("nvidia", "cuda_cuobjdump/bin"),
)
_ELF, _FAT_BINARY, _ARCHIVE = b"\x7fELF", b"\x50\xed\x55\xba", b"!<arch>\n"
_SUFFIXES = (".cubin", ".fatbin")
"""Files so called claim to hold device code, whatever their first bytes are."""
_LISTED = re.compile(r"^ELF file +\d+: \S*?\.(\d+)\.(sm_(\d+)[a-z]?)\.cubin$", re.MULTILINE)
_RELEASE = re.compile(r"release (\d+\.\d+)")
_NO_DEVICE_CODE = "does not contain device code"
_TIMEOUT_SECONDS = 600


@dataclass(frozen=True)
class Image:
    """A cubin that can be read, and where it was found."""

    source: Path
    name: str
    """Number and chip inside the source, such as `12.sm_90a`; for a cubin by itself the name of the file."""
    cubin: Cubin

    @property
    def arch(self) -> int:
        return self.cubin.arch

    @property
    def data(self) -> bytes:
        return self.cubin.data


@dataclass(frozen=True)
class Skipped:
    """Cubins of a file that were left out, or the file itself."""

    path: Path
    reason: str
    count: int = 1
    """Of cubins, or of files."""
    is_fault: bool = True
    """False where there is nothing to read: a library without device code, a cubin without a kernel."""

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}"


Skip = Callable[[Skipped], None]


@dataclass(frozen=True)
class _Entry:
    number: int
    chip: str
    """With the letter of a chip's own instructions: sm_90a."""
    arch: int


@dataclass(frozen=True)
class _Wanted:
    archs: Collection[int] | None
    seen: set[bytes] | None = None
    """Digests of cubins that were given already, where each is given once."""

    def chip(self, arch: int) -> bool:
        return self.archs is None or arch in self.archs

    def takes(self, data: bytes) -> bool:
        """Asked before a cubin is read, which takes longer."""
        if self.seen is None:
            return True
        digest, before = hashlib.sha256(data).digest(), len(self.seen)
        self.seen.add(digest)
        return len(self.seen) > before


def images(
    path: str | Path, archs: Collection[int] | None = None, skip: Skip | None = None
) -> Iterator[Image]:
    """The cubins in one file, in its order; those for other chips than `archs` are not even taken out.

    Without `skip`, the first thing that cannot be read is an error.
    """
    return _images(Path(path), _Wanted(archs), skip or _refuse)


def images_below(
    directory: str | Path, archs: Collection[int] | None = None, skip: Skip | None = None
) -> Iterator[Image]:
    """The cubins in all files below a directory, in the order of paths, the same bytes only once."""
    root = Path(directory)
    if not root.is_dir():
        raise CuasmrlError(f"{directory} is not a directory; name one that holds libraries or cubins")
    wanted = _Wanted(archs, set())
    files = sorted((path for path in root.rglob("*") if path.is_file()), key=lambda path: path.as_posix())
    # A library is often linked to under several names.
    first_names: dict[Path, Path] = {}
    for path in files:
        first_names.setdefault(path.resolve(), path)
    for path in first_names.values():
        if _may_hold_cubins(path):
            yield from _images(path, wanted, skip or _refuse)


def find_cuobjdump() -> str:
    """$CUASMRL_CUOBJDUMP, Triton's, the PyPI packages', PATH's."""
    if override := os.environ.get(OVERRIDE):
        return override
    for package, inside in _PLACES:
        spec = importlib.util.find_spec(package)
        for folder in (spec.submodule_search_locations or ()) if spec else ():
            path = Path(folder) / inside / "cuobjdump"
            if path.exists():
                return str(path)
    if on_path := shutil.which("cuobjdump"):
        return on_path
    raise CuasmrlError(f"no cuobjdump found; pip install triton (it ships one), or set {OVERRIDE}")


def _refuse(skipped: Skipped) -> None:
    raise CuasmrlError(str(skipped))


def _kind(path: Path) -> str | None:
    """What a file is by its first bytes; None if nothing that can hold a cubin."""
    if not path.is_file():
        raise FileNotFoundError(0, "no such file")
    with path.open("rb") as file:
        start = file.read(20)
    if start.startswith(_ELF):
        return "cubin" if int.from_bytes(start[18:20], "little") == MACHINE_CUDA else "host"
    return "container" if start.startswith((_FAT_BINARY, _ARCHIVE)) else None


def _may_hold_cubins(path: Path) -> bool:
    try:
        return path.suffix in _SUFFIXES or _kind(path) is not None
    except OSError:
        # Whoever opens it says so.
        return True


def _images(source: Path, wanted: _Wanted, skip: Skip) -> Iterator[Image]:
    try:
        kind = _kind(source)
    except OSError as error:
        skip(Skipped(source, f"cannot be read ({error.strerror})"))
        return
    if kind is None:
        skip(Skipped(source, "is no cubin, fat binary, object, library, program or archive"))
    elif kind == "cubin":
        yield from _itself(source, wanted, skip)
    else:
        yield from _inside(source, wanted, skip)


def _itself(source: Path, wanted: _Wanted, skip: Skip) -> Iterator[Image]:
    try:
        cubin = Cubin.load(source)
        if wanted.chip(cubin.arch) and wanted.takes(cubin.data):
            yield Image(source, source.name, _read(cubin))
    except CuasmrlError as error:
        skip(Skipped(source, str(error).removeprefix(f"{source} ")))


def _inside(source: Path, wanted: _Wanted, skip: Skip) -> Iterator[Image]:
    with tempfile.TemporaryDirectory(prefix="cuasmrl-") as name:
        folder = Path(name)
        # Under a name of ours, whatever characters the other has; cuobjdump names its files after it.
        (folder / "image").symlink_to(source.absolute())
        try:
            found = _listed(folder)
            entries = [entry for entry in found if wanted.chip(entry.arch)]
            known = [entry for entry in entries if entry.arch in SUPPORTED_ARCHS]
            if known:
                _extract(folder, known)
        except _ToolError as error:
            skip(Skipped(source, str(error)))
            return
        if not found:
            skip(Skipped(source, "holds no cubin", is_fault=False))
        for arch, count in sorted(Counter(e.arch for e in entries if e not in known).items()):
            what = f"{_cubins(count)} for sm_{arch}, which this version does not know"
            skip(Skipped(source, what, count))
        yield from _extracted(folder, source, known, wanted, skip)


def _extract(folder: Path, entries: list[_Entry]) -> None:
    # An option of chips by name does not exist; a part of the file name does the same.
    chips = sorted({f".{entry.chip}." for entry in entries})
    _run(folder, "-xelf", ",".join(chips))


def _extracted(
    folder: Path, source: Path, entries: list[_Entry], wanted: _Wanted, skip: Skip
) -> Iterator[Image]:
    empty = 0
    for entry in entries:
        name = f"{entry.number}.{entry.chip}"
        path = folder / f"image.{name}.cubin"
        try:
            data = path.read_bytes()
            path.unlink()
            if not wanted.takes(data):
                continue
            cubin = Cubin.parse(data, f"{source}:{name}")
            if _has_code(cubin):
                yield Image(source, name, _read(cubin))
            else:
                empty += 1
        except CuasmrlError as error:
            skip(Skipped(source, str(error).removeprefix(f"{source}:")))
        except OSError as error:
            skip(Skipped(source, f"{name} was not taken out ({error.strerror})"))
    if empty:
        skip(Skipped(source, f"{_cubins(empty)} without a kernel", empty, is_fault=False))


def _cubins(count: int) -> str:
    return "holds a cubin" if count == 1 else f"holds {count} cubins"


def _has_code(cubin: Cubin) -> bool:
    """A translation unit without a kernel has a cubin, too."""
    return any(section.name.startswith(".text.") and section.size for section in cubin.sections)


def _read(cubin: Cubin) -> Cubin:
    """The same after all its kernels were read, which raises what is wrong with them."""
    tuple(cubin.kernels)
    return cubin


class _ToolError(Exception):
    """cuobjdump's reason."""


def _listed(folder: Path) -> list[_Entry]:
    printed = _run(folder, "-lelf")
    return [_Entry(int(number), chip, int(arch)) for number, chip, arch in _LISTED.findall(printed)]


def _run(folder: Path, *options: str) -> str:
    """Standard output of cuobjdump on `image`, in its folder."""
    command = [find_cuobjdump(), *options, "image"]
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, timeout=_TIMEOUT_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        raise _ToolError(f"cuobjdump did not finish in {_TIMEOUT_SECONDS} seconds") from None
    except OSError as error:
        raise CuasmrlError(
            f"cuobjdump at {command[0]} cannot be started ({error.strerror}); pip install -U triton"
        ) from error
    printed = done.stderr.decode(errors="replace").strip().splitlines()
    if done.returncode == 0 or (printed and _NO_DEVICE_CODE in printed[-1]):
        return done.stdout.decode(errors="replace")
    reason = printed[-1].partition(": ")[2] if printed else f"exit status {done.returncode}"
    # Its own sentence ends in the path, which is that of the link.
    reason = reason.partition(" in '")[0].rstrip(". ")
    # Releases 13 refuse some libraries of nvcc 12.0 and 12.1 ("Invalid ELF") that release 12.4 reads.
    release = _release(command[0])
    raise _ToolError(f"{release} refuses it ({reason}); set {OVERRIDE} to try another release")


@lru_cache
def _release(tool: str) -> str:
    done = subprocess.run([tool, "--version"], capture_output=True, timeout=60, check=False)
    match = _RELEASE.search(done.stdout.decode(errors="replace"))
    return f"cuobjdump {match[1]}" if match else "cuobjdump"
