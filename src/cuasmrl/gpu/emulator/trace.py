"""What a run leaves behind for the timing model: paths and accesses, no values.

A legal reordering moves instructions inside their block, so it changes neither the path of a warp nor the
addresses: one trace serves every schedule of the kernel. Instructions are named by their index in the
listing that was executed, blocks by their number in its control flow graph.
"""

from __future__ import annotations

import hashlib
import json
import os
import zipfile
import zlib
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from cuasmrl.errors import CuasmrlError

FORMAT = 3
SECTOR_BYTES = 32
LINE_BYTES = 128
# What NumPy, zipfile and zlib raise for a file that is something else, cut short or damaged.
_DAMAGE = (OSError, ValueError, KeyError, TypeError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error)


def _none() -> npt.NDArray[np.int32]:
    return np.zeros(0, np.int32)


@dataclass(frozen=True)
class Touched:
    """Distinct bytes of global memory."""

    block: float
    """Of a block, on average."""
    wave: float
    """Of the blocks that run at the same time, together."""
    grid: float
    """Of all blocks together."""


@dataclass(frozen=True)
class Footprint:
    """What a launch reads and writes on the whole chip."""

    read: Touched
    written: Touched
    wave: int
    """Blocks that run at the same time."""

    @property
    def grid(self) -> float:
        """All bytes, those that are read and written counted twice."""
        return self.read.grid + self.written.grid

    @staticmethod
    def of(fields: dict[str, Any]) -> Footprint:
        return Footprint(Touched(**fields["read"]), Touched(**fields["written"]), fields["wave"])


@dataclass(frozen=True)
class Header:
    """What was launched."""

    kernel: str
    arch: int
    code: str
    """SHA-256 of the instruction words that were executed."""
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    registers: int
    shared_bytes: int
    """Static and dynamic shared memory of a block."""
    warps_per_block: int
    footprint: Footprint | None = None
    """None if only the traced blocks are known."""


@dataclass(frozen=True, eq=False)
class Trace:
    """Warps are numbered block by block in the order of `blocks`."""

    header: Header
    blocks: npt.NDArray[np.int64]
    """Linear indices of the blocks that were traced."""
    path_of_warp: npt.NDArray[np.int32]
    """Warps that take the same way share a path."""
    path_start: npt.NDArray[np.int64]
    """Path p is path_blocks[path_start[p]:path_start[p + 1]]."""
    path_blocks: npt.NDArray[np.int32]
    # One element per access of a warp, sorted by warp, then position in its path, then instruction.
    access_warp: npt.NDArray[np.int32]
    access_position: npt.NDArray[np.int32]
    """Index into the warp's path: which visit of the block this was."""
    access_instruction: npt.NDArray[np.int32]
    access_lanes: npt.NDArray[np.uint8]
    """Active lanes; a warp with none has no access, and an engine that copies has none."""
    access_lines: npt.NDArray[np.uint16]
    """Distinct lines of 128 bytes; 0 for shared memory."""
    access_passes: npt.NDArray[np.uint16]
    """Turns that the banks of shared memory and L1 need; for atomics, the lanes that meet at one address."""
    access_base: npt.NDArray[np.int64]
    """Address of the first sector; -1 for shared memory."""
    access_pattern: npt.NDArray[np.int32]
    """The sectors, relative to the first: pattern_sectors[pattern_start[k]:pattern_start[k + 1]]."""
    pattern_start: npt.NDArray[np.int64]
    pattern_sectors: npt.NDArray[np.int64]
    # One element per event of a warp (`events.Event`), sorted as accesses are.
    event_warp: npt.NDArray[np.int32] = field(default_factory=_none)
    event_position: npt.NDArray[np.int32] = field(default_factory=_none)
    event_instruction: npt.NDArray[np.int32] = field(default_factory=_none)
    event_kind: npt.NDArray[np.int32] = field(default_factory=_none)
    event_barrier: npt.NDArray[np.int32] = field(default_factory=_none)
    """Address of the mbarrier, or number of the barrier of the block; -1 for copies out of shared memory."""
    event_phase: npt.NDArray[np.int32] = field(default_factory=_none)
    """To which phase of the mbarrier it belongs, or for which it waits; -1 for a phase that never began."""
    event_count: npt.NDArray[np.int32] = field(default_factory=_none)
    """Arrivals; at a barrier of the block, threads for which it waits, 0 for all."""
    event_bytes: npt.NDArray[np.int32] = field(default_factory=_none)
    """Announced by an arrival, or moved by a copy. What a copy touches is an access of the same warp."""

    @property
    def warps(self) -> int:
        return len(self.path_of_warp)

    def path(self, warp: int) -> npt.NDArray[np.int32]:
        """Numbers of the blocks that a warp executed, in order."""
        number = self.path_of_warp[warp]
        return self.path_blocks[self.path_start[number] : self.path_start[number + 1]]

    def sectors(self, access: int) -> npt.NDArray[np.int64]:
        """Addresses of the sectors that an access touches."""
        number = self.access_pattern[access]
        offsets = self.pattern_sectors[self.pattern_start[number] : self.pattern_start[number + 1]]
        return int(self.access_base[access]) + SECTOR_BYTES * offsets

    def save(self, path: str | Path) -> None:
        """Write the file whole or not at all: a zip of NumPy arrays."""
        target = Path(path)
        scratch = target.parent / f"{target.name}.{os.getpid()}.partial"
        header = json.dumps({"format": FORMAT, **asdict(self.header)}).encode()
        try:
            with scratch.open("wb") as file:
                arrays: dict[str, Any] = {"header": np.frombuffer(header, np.uint8), **self._arrays()}
                np.savez_compressed(file, **arrays)
            scratch.replace(target)
        except OSError as error:
            scratch.unlink(missing_ok=True)
            raise CuasmrlError(f"cannot write {path}: {error.strerror}; choose a writable place") from error

    @staticmethod
    def load(path: str | Path) -> Trace:
        try:
            with np.load(path, allow_pickle=False) as file:
                header = json.loads(bytes(file["header"]))
                arrays: dict[str, Any] = {name: file[name] for name in file.files if name != "header"}
        except _DAMAGE as error:
            raise CuasmrlError(f"{path} is no trace: {error}; record it again") from error
        if not isinstance(header, dict) or header.pop("format", None) != FORMAT:
            raise CuasmrlError(f"{path} was written by another version; record the trace again")
        try:
            header = {k: tuple(v) if isinstance(v, list) else v for k, v in header.items()}
            if header.get("footprint") is not None:
                header["footprint"] = Footprint.of(header["footprint"])
            if missing := {f.name for f in fields(Trace)} - {"header", *arrays}:
                raise KeyError(f"{', '.join(sorted(missing))} missing")
            return Trace(Header(**header), **arrays)
        except (TypeError, KeyError) as error:
            raise CuasmrlError(f"{path} is no trace: {error}; record it again") from error

    def _arrays(self) -> dict[str, npt.NDArray[Any]]:
        return {field.name: getattr(self, field.name) for field in fields(self) if field.name != "header"}


def code_digest(words: tuple[bytes, ...]) -> str:
    return hashlib.sha256(b"".join(words)).hexdigest()
