"""Kernels that exist to be mined: drawn at compile time, so that rare instructions meet all others.

nvcc turns each file of `evidence/` into PTX once per chip. Every ptxas that is given assembles it at two
levels, because it is ptxas that decides about distances. The cubins stand beside those of `build_corpus`,
without launch files, as nothing can be launched.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from cuasmrl.errors import CuasmrlError
from cuasmrl.workloads import cuda_compiler
from cuasmrl.workloads.chips import ARCHS, unknown_chip
from cuasmrl.workloads.corpus import Corpus, CorpusEntry

SOURCES = Path(__file__).parent / "evidence"
LEVELS = ("O3", "O1")
SPECIFIC = "specific"
"""The theme that needs the targets with an a (sm_90a), whose features no later chip has to have."""

# Where a toolkit has its ptxas: of CUDA, of `pip install --target` for CUDA 12, and the same for CUDA 13.
_PLACES = ("ptxas", "bin/ptxas", "nvidia/cuda_nvcc/bin/ptxas", "nvidia/cu13/bin/ptxas")
_RELEASE = re.compile(r"release (\d+)\.(\d+)")
_PTX_VERSION = re.compile(r"^\.version (\d+)\.(\d+)", re.MULTILINE)
_ENTRY = re.compile(r"\.entry\s")


@dataclass(frozen=True)
class Assembler:
    """One ptxas."""

    path: Path
    release: tuple[int, int]

    @property
    def name(self) -> str:
        return f"{self.release[0]}.{self.release[1]}"

    @property
    def ptx_version(self) -> tuple[int, int]:
        """The newest PTX it reads (PTX ISA, "Release Notes")."""
        major, minor = self.release
        if major >= 13:
            return 9, minor
        return 8, minor if minor < 6 else minor - 1


def themes() -> tuple[str, ...]:
    return tuple(sorted(path.stem for path in SOURCES.glob("*.cu")))


def find_assembler(place: Path | None = None) -> Assembler:
    """The ptxas that `place` is or holds (a toolkit, or a folder made by pip); without one, nvcc's own."""
    folder = cuda_compiler.find_nvcc().parent if place is None else place
    candidates = [folder] if folder.is_file() else [folder / inside for inside in _PLACES]
    path = next((candidate for candidate in candidates if candidate.is_file()), None)
    if path is None:
        raise CuasmrlError(f"There is no ptxas in {folder}; name a ptxas, or a folder with bin/ptxas.")
    found = _RELEASE.search(cuda_compiler.run([str(path), "--version"]).stdout)
    if found is None:
        raise CuasmrlError(f"{path} does not say its version, so it is no ptxas; name another.")
    return Assembler(path, (int(found[1]), int(found[2])))


def build_evidence(
    directory: Path,
    archs: Iterable[int] = ARCHS,
    assemblers: Sequence[Path] = (),
    jobs: int = 2,
    progress: Callable[[CorpusEntry, int, int], None] | None = None,
    names: Iterable[str] | None = None,
) -> Corpus:
    """Compile every theme into directory/sm_80/evidence-<theme>-O3-13.0.cubin and so on.

    `assemblers` are more of them, beside nvcc's own. `progress` is as for `build_corpus`.
    """
    tools = _distinct([find_assembler(), *map(find_assembler, assemblers)])
    chosen = themes() if names is None else tuple(names)
    unknown = set(chosen) - set(themes())
    if unknown:
        raise CuasmrlError(
            f"There is no evidence called {', '.join(sorted(unknown))}; choose of {', '.join(themes())}."
        )
    wanted = [(theme, arch) for arch in archs for theme in chosen]
    for arch in {arch for _, arch in wanted}:
        if (reason := unknown_chip(arch)) is not None:
            raise CuasmrlError(reason)
    total = len(wanted) * len(tools) * len(LEVELS)
    entries: list[CorpusEntry] = []
    # The work is done by other programs, so threads are enough to wait for them.
    with ThreadPoolExecutor(jobs) as pool:
        tasks = [pool.submit(_build_theme, directory, theme, arch, tools) for theme, arch in wanted]
        for task in as_completed(tasks):
            for entry in task.result():
                entries.append(entry)
                if progress is not None:
                    progress(entry, len(entries), total)
    ordered = sorted(entries, key=lambda entry: (entry.arch, entry.workload, entry.config))
    return Corpus(
        tuple(entry for entry in ordered if entry.path is not None),
        tuple(entry for entry in ordered if entry.path is None),
    )


def _distinct(tools: Sequence[Assembler]) -> list[Assembler]:
    """One of each release, as the release is all that the name of a cubin says."""
    return list({tool.release: tool for tool in reversed(tools)}.values())[::-1]


def _build_theme(
    directory: Path, theme: str, arch: int, assemblers: Sequence[Assembler]
) -> list[CorpusEntry]:
    """All cubins of one theme for one chip; what cannot be built is named with its reason."""
    workload = f"evidence-{theme}"
    configs = [(tool, level, f"{level}-{tool.name}") for tool in assemblers for level in LEVELS]
    target = f"sm_{arch}a" if theme == SPECIFIC and arch >= 90 else f"sm_{arch}"
    try:
        ptx = cuda_compiler.compile_ptx(SOURCES / f"{theme}.cu", target)
        if not _ENTRY.search(ptx):
            raise CuasmrlError(f"{theme}.cu has no kernel for {target}.")
    except CuasmrlError as error:
        return [CorpusEntry(workload, config, arch, None, str(error)) for _, _, config in configs]
    entries = []
    for tool, level, config in configs:
        try:
            cubin = assemble(ptx, target, level, tool, theme)
        except CuasmrlError as error:
            entries.append(CorpusEntry(workload, config, arch, None, str(error)))
            continue
        path = directory / f"sm_{arch}" / f"{workload}-{config}.cubin"
        _write(path, cubin)
        entries.append(CorpusEntry(workload, config, arch, path))
    return entries


def assemble(ptx: str, target: str, level: str, tool: Assembler, what: str) -> bytes:
    """A cubin from PTX. An older ptxas is told its own version of PTX; most instructions are the same."""
    stamped = _PTX_VERSION.search(ptx)
    if stamped is not None and (int(stamped[1]), int(stamped[2])) > tool.ptx_version:
        ptx = _PTX_VERSION.sub(".version {}.{}".format(*tool.ptx_version), ptx, count=1)
    with tempfile.TemporaryDirectory(prefix="cuasmrl-ptxas-") as folder:
        # The same name for all: ptxas writes it into the cubin.
        source, output = Path(folder) / "kernel.ptx", Path(folder) / "kernel.cubin"
        source.write_text(ptx)
        done = cuda_compiler.run(
            [str(tool.path), f"-arch={target}", f"-{level}", "-o", str(output), str(source)]
        )
        if done.returncode != 0 or not output.exists():
            reason = cuda_compiler.first_error(done)
            raise CuasmrlError(f"ptxas {tool.name} cannot assemble {what} for {target}: {reason}")
        return output.read_bytes()


def _write(path: Path, content: bytes) -> None:
    """The file whole or not at all."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.replace(temporary, path)
    except OSError as error:
        raise CuasmrlError(f"{path} cannot be written ({error.strerror}); choose another place.") from error
