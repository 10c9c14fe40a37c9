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
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from cuasmrl.errors import CuasmrlError

FORMAT = 2
SECTOR_BYTES = 32
LINE_BYTES = 128
# What NumPy, zipfile and zlib raise for a file that is something else, cut short or damaged.
_DAMAGE = (OSError, ValueError, KeyError, TypeError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error)


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
    """Active lanes; a warp with none has no access."""
    access_lines: npt.NDArray[np.uint8]
    """Distinct lines of 128 bytes; 0 for shared memory."""
    access_passes: npt.NDArray[np.uint8]
    """Turns that the banks of shared memory and L1 need; for atomics, the lanes that meet at one address."""
    access_base: npt.NDArray[np.int64]
    """Address of the first sector; -1 for shared memory."""
    access_pattern: npt.NDArray[np.int32]
    """The sectors, relative to the first: pattern_sectors[pattern_start[k]:pattern_start[k + 1]]."""
    pattern_start: npt.NDArray[np.int64]
    pattern_sectors: npt.NDArray[np.int64]

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
            return Trace(Header(**header), **arrays)
        except TypeError as error:
            raise CuasmrlError(f"{path} is no trace: {error}; record it again") from error

    def _arrays(self) -> dict[str, npt.NDArray[Any]]:
        return {field.name: getattr(self, field.name) for field in fields(self) if field.name != "header"}


def code_digest(words: tuple[bytes, ...]) -> str:
    return hashlib.sha256(b"".join(words)).hexdigest()
