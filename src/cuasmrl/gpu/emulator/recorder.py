"""Collects a trace while a slab executes."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from cuasmrl.binary.sass import Listing, Space
from cuasmrl.gpu.emulator.access import Addresses, Flat
from cuasmrl.gpu.emulator.events import SECTOR_BYTES, TURN_BYTES, Event, Events, Traffic
from cuasmrl.gpu.emulator.program import Segment
from cuasmrl.gpu.emulator.spaces import Slab
from cuasmrl.gpu.emulator.trace import Header, Trace
from cuasmrl.gpu.emulator.values import LANES, Mask

_BANKS = 32
_WORD_BYTES = 4


@njit(cache=True)
def sectors_of(address, active, warps, lanes, lines, base, offsets):  # type: ignore[no-untyped-def]
    """For each warp: active lanes, distinct lines, first sector and the others relative to it, sorted.

    Where no lane is active everything stays as it was.
    """
    found = np.empty(32, np.int64)
    for k in range(warps.size):
        first = warps[k] * 32
        count = 0
        for lane in range(32):
            if not active[first + lane]:
                continue
            lanes[k] += 1
            sector = address[first + lane] // 32
            # Insert into a short sorted list without repetition.
            at = count
            while at > 0 and found[at - 1] > sector:
                at -= 1
            if at > 0 and found[at - 1] == sector:
                continue
            for move in range(count, at, -1):
                found[move] = found[move - 1]
            found[at] = sector
            count += 1
        if count:
            base[k] = found[0] * 32
        last_line = -1
        for j in range(count):
            offsets[k, j] = found[j] - found[0]
            if found[j] // 4 != last_line:
                last_line = found[j] // 4
                lines[k] += 1


@njit(cache=True)
def bank_passes(address, active, warps, size, lanes, passes):  # type: ignore[no-untyped-def]
    """Turns of the 32 banks: lanes go in groups of 128 bytes, one word per bank and turn in each."""
    group = min(32, 128 // size)
    words = max(1, size // 4)
    seen = np.empty((32, 32), np.int64)
    for k in range(warps.size):
        first = warps[k] * 32
        for start in range(0, 32, group):
            counts = np.zeros(32, np.int64)
            most = 0
            for lane in range(start, start + group):
                if not active[first + lane]:
                    continue
                lanes[k] += 1
                for word in range(words):
                    at = address[first + lane] // 4 + word
                    bank = at % 32
                    known = False
                    for j in range(counts[bank]):
                        known = known or seen[bank, j] == at
                    if not known:
                        seen[bank, counts[bank]] = at
                        counts[bank] += 1
                        most = max(most, counts[bank])
            passes[k] += most


@njit(cache=True)
def meetings(address, active, warps, passes):  # type: ignore[no-untyped-def]
    """For each warp: the most lanes that share one address."""
    for k in range(warps.size):
        first = warps[k] * 32
        for lane in range(32):
            same = 0
            for other in range(32):
                if active[first + lane] and active[first + other]:
                    same += address[first + lane] == address[first + other]
            passes[k] = max(passes[k], same)


@dataclass
class _Accesses:
    """One execution of a memory instruction by some warps."""

    instruction: int
    warps: npt.NDArray[np.int64]
    positions: npt.NDArray[np.int32]
    lanes: npt.NDArray[np.uint8]
    lines: npt.NDArray[np.uint8]
    passes: npt.NDArray[np.uint8]
    base: npt.NDArray[np.int64]
    offsets: npt.NDArray[np.int64]


@dataclass
class Recorder:
    """Listens to the slabs of a run one after the other."""

    listing: Listing
    local_bytes: int
    _events: Events = field(default_factory=Events)
    _visits: list[tuple[int, npt.NDArray[np.int64]]] = field(default_factory=list)
    _accesses: list[_Accesses] = field(default_factory=list)
    _first_warp: int = 0

    def begin(self, slab: Slab) -> None:
        warps = slab.size // LANES
        self._slab = slab
        self._position = np.full(warps, -1, np.int32)
        """Of the visit that each warp is in."""
        self._last = np.full(warps, -1, np.int32)
        self._last_in = defaultdict[int, npt.NDArray[np.int32]](lambda: np.full(warps, -1, np.int32))
        """Position of the last visit, and of the last one in each block."""

    def end(self) -> None:
        self._first_warp += len(self._position)

    def enter(self, segment: Segment, active: Mask) -> None:
        warps = np.flatnonzero(self._slab.active(active).reshape(-1, LANES).any(axis=1))
        last_in = self._last_in[segment.block]
        if segment.begins_block:
            self._last[warps] += 1
            last_in[warps] = self._last[warps]
            self._visits.append((segment.block, warps + self._first_warp))
        # Lanes that have waited go on in a block which others of their warp may have left behind.
        self._position[warps] = last_in[warps]

    def access(self, index: int, address: Addresses, active: Flat, size: int) -> None:
        declaration = self.listing.instructions[index].declaration
        assert declaration is not None
        space = declaration.reads or declaration.writes
        record = self._new(index, active)
        if record is None:
            return
        if space is Space.SHARED:
            bank_passes(address, active, record.warps, size, record.lanes, record.passes)
        else:
            if space is Space.LOCAL:
                address = self._interleaved(address, size)
            sectors_of(address, active, record.warps, record.lanes, record.lines, record.base, record.offsets)
        if declaration.reads is not None and declaration.writes is not None:
            meetings(address, active, record.warps, record.passes)
        elif space is not Space.SHARED:
            # L1 has the banks of shared memory.
            bank_passes(address, active, record.warps, size, np.zeros_like(record.lanes), record.passes)
        self._keep(record)

    def copy(
        self, index: int, source: Addresses, reading: Flat, target: Addresses, active: Flat, size: int
    ) -> None:
        """From global to shared memory; lanes that only write zeros do not read."""
        record = self._new(index, active)
        if record is None:
            return
        bank_passes(target, active, record.warps, size, record.lanes, record.passes)
        readers = np.zeros_like(record.lanes)
        sectors_of(source, reading, record.warps, readers, record.lines, record.base, record.offsets)
        self._keep(record)

    def positions(self, warps: npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
        """In which visits these warps of the slab are."""
        return self._position[warps]

    def event(
        self, kind: Event, index: int, warps: npt.NDArray[np.int64], barrier: int, *,
        phases: npt.NDArray[np.int64] | int = 0, counts: npt.NDArray[np.int64] | int = 0,
        moved: npt.NDArray[np.int64] | int = 0, positions: npt.NDArray[np.int32] | None = None,
    ) -> None:  # fmt: skip
        """One event of each of these warps of the slab; `positions` if they have gone on since."""
        where = self._position[warps] if positions is None else positions
        number = warps + self._first_warp
        self._events.note(kind, index, number, where, barrier, phases, counts, moved)

    def traffic(self, index: int, warp: int, sectors: npt.NDArray[np.int64], size: int) -> None:
        """Sectors that an engine moves for a warp of the slab, from or to so many bytes of shared memory."""
        here = int(self._position[warp])
        turns = -(-size // TURN_BYTES)
        self._events.traffic.append(Traffic(warp + self._first_warp, here, index, sectors, turns))

    def _keep(self, record: _Accesses) -> None:
        record.warps += self._first_warp
        self._accesses.append(record)

    def trace(self, header: Header, blocks: npt.NDArray[np.int64]) -> Trace:
        paths = self._paths()
        unique, of_warp = np.unique(np.array([p.tobytes() for p in paths], object), return_inverse=True)
        chosen = [np.frombuffer(p, np.int32) for p in unique]
        table = self._table()
        patterns, of_access = _distinct_rows(table.pop("offsets"))
        counts = (patterns >= 0).sum(axis=1)
        table |= {
            "access_pattern": of_access.astype(np.int32),
            "pattern_start": _starts(counts),
            "pattern_sectors": patterns[patterns >= 0],
        }
        return Trace(
            header=header,
            blocks=blocks,
            path_of_warp=of_warp.astype(np.int32),
            path_start=_starts(np.array([len(p) for p in chosen])),
            path_blocks=np.concatenate([np.zeros(0, np.int32), *chosen]),
            **_with_traffic(table, self._events.traffic),
            **self._events.table(),
        )

    def _new(self, index: int, active: Flat) -> _Accesses | None:
        warps = np.flatnonzero(active.reshape(-1, LANES).any(axis=1))
        n = len(warps)
        if not n:
            return None
        return _Accesses(
            index,
            warps,
            self._position[warps],
            np.zeros(n, np.uint8),
            np.zeros(n, np.uint8),
            np.zeros(n, np.uint8),
            np.full(n, -1, np.int64),
            np.full((n, LANES), -1, np.int64),
        )

    def _interleaved(self, address: Addresses, size: int) -> Addresses:
        """Local memory as the memory system sees it: the same word of all lanes of a warp lies together."""
        unit = max(size, _WORD_BYTES)
        thread = np.arange(len(address)) + self._first_warp * LANES
        warp, lane = thread // LANES, thread % LANES
        first, byte = address // unit * unit, address % unit
        return (warp * self.local_bytes + first) * LANES + lane * unit + byte

    def _paths(self) -> list[npt.NDArray[np.int32]]:
        if not self._visits:
            return [np.zeros(0, np.int32)] * self._first_warp
        warps = np.concatenate([w for _, w in self._visits])
        numbers = np.repeat(
            np.array([b for b, _ in self._visits], np.int32), [len(w) for _, w in self._visits]
        )
        order = np.argsort(warps, kind="stable")
        ends = np.searchsorted(warps[order], np.arange(self._first_warp + 1))
        ordered = numbers[order]
        return [ordered[a:b] for a, b in pairwise(ends)]

    def _table(self) -> dict[str, npt.NDArray[Any]]:
        def column(name: str, kind: type, width: int | None = None) -> npt.NDArray[Any]:
            empty: npt.NDArray[Any] = np.zeros((0,) if width is None else (0, width), kind)
            return np.concatenate([empty, *(getattr(a, name) for a in self._accesses)]).astype(kind)

        instruction = np.repeat(
            np.array([a.instruction for a in self._accesses], np.int32),
            [len(a.warps) for a in self._accesses],
        )
        warps, positions = column("warps", np.int32), column("positions", np.int32)
        order = np.lexsort((instruction, positions, warps))
        table = {
            "access_warp": warps,
            "access_position": positions,
            "access_instruction": instruction,
            "access_lanes": column("lanes", np.uint8),
            "access_lines": column("lines", np.uint16),
            "access_passes": column("passes", np.uint16),
            "access_base": column("base", np.int64),
            "offsets": column("offsets", np.int64, LANES),
        }
        return {name: values[order] for name, values in table.items()}


_HASH = np.random.default_rng(0).integers(2**63, size=LANES, dtype=np.uint64) * 2 + 1


def _distinct_rows(rows: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The different rows in their order, and which of them each row is.

    There are millions of rows and few that differ, so rows are told apart by a hash, and the few are sorted.
    """
    if not len(rows):
        return np.zeros((0, LANES), np.int64), np.zeros(0, np.int64)
    hashes = rows.view(np.uint64) @ _HASH
    _, first, which = np.unique(hashes, return_index=True, return_inverse=True)
    distinct, renumbered = np.unique(rows[first], axis=0, return_inverse=True)
    which = renumbered.reshape(-1)[which]
    if not np.array_equal(distinct[which], rows):  # two rows with one hash
        distinct, which = np.unique(rows, axis=0, return_inverse=True)
    return distinct, which.reshape(-1)


def _with_traffic(table: dict[str, npt.NDArray[Any]], traffic: list[Traffic]) -> dict[str, npt.NDArray[Any]]:
    """The accesses of engines in between those of lanes, with patterns of their own."""
    if not traffic:
        return table
    patterns: dict[bytes, int] = {}
    known, sectors = len(table["pattern_start"]) - 1, [table["pattern_sectors"]]
    rows = []
    for one in traffic:
        first = int(one.sectors[0]) if len(one.sectors) else 0
        pattern = (one.sectors - first).tobytes()
        if pattern not in patterns:
            patterns[pattern] = known + len(patterns)
            sectors.append(one.sectors - first)
        place = (one.warp, one.position, one.instruction)
        rows.append((*place, 0, one.lines, one.turns, first * SECTOR_BYTES, patterns[pattern]))
    names = ("warp", "position", "instruction", "lanes", "lines", "passes", "base", "pattern")
    added = dict(zip((f"access_{name}" for name in names), np.array(rows, np.int64).T, strict=True))
    joined = {k: np.concatenate([table[k], column.astype(table[k].dtype)]) for k, column in added.items()}
    order = np.lexsort(
        (joined["access_instruction"], joined["access_position"], joined["access_warp"])
    )  # fmt: skip
    starts = np.cumsum([len(s) for s in sectors[1:]]) + len(table["pattern_sectors"])
    return {k: column[order] for k, column in joined.items()} | {
        "pattern_start": np.concatenate([table["pattern_start"], starts]).astype(np.int64),
        "pattern_sectors": np.concatenate(sectors),
    }


def _starts(counts: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
