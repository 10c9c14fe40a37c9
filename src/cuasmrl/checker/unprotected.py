"""Dependences that no scoreboard and no queue keeps, without writing down every pair.

Behind a function that is called everywhere, everything that was under way at any call may still be so. Pairs
then grow with the square of the calls; one set of operations for each access does not.
"""

from collections.abc import Iterator
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from cuasmrl.binary.sass import Hazard
from cuasmrl.checker.dependences import Edge
from cuasmrl.checker.operations import Tables

_COLUMNS = 256
"""Bytes of a set that are compared at a time, which bounds the memory for it."""


class Unprotected:
    """By access: operations under way that it meets."""

    def __init__(self, tables: Tables):
        self._tables = tables
        self._met: dict[tuple[Hazard, int, int], int] = {}
        """By hazard, consumer and register."""

    def add(self, hazard: Hazard, consumer: int, register: int, operations: int) -> None:
        access = hazard, consumer, register
        self._met[access] = self._met.get(access, 0) | operations

    def __len__(self) -> int:
        return sum(operations.bit_count() for operations in self._met.values())

    def __contains__(self, edge: Edge) -> bool:
        places = self._tables.source_place if edge.hazard is Hazard.WAR else self._tables.result_place
        return self.meets(edge.hazard, edge.consumer, edge.register, places[edge.producer])

    def meets(self, hazard: Hazard, consumer: int, register: int, place: int) -> bool:
        """Does an access meet the operation with this place?"""
        return place >= 0 and bool(self._met.get((hazard, consumer, register), 0) >> place & 1)

    def producers(self) -> list[int]:
        every = 0
        for operations in self._met.values():
            every |= operations
        return list(self._tables.instructions(every))

    def beyond(self, other: "Unprotected") -> Iterator[Edge]:
        """Those that the other does not have."""
        for access, operations in self._met.items():
            hazard, consumer, register = access
            for producer in self._tables.instructions(operations & ~other._met.get(access, 0)):
                yield Edge(hazard, producer, consumer, register)

    def alike(self, producer: int, register: int, written: bool) -> int | None:
        """A place that stands for all operations that the same accesses to a register meet, if any do."""
        places = self._tables.result_place if written else self._tables.source_place
        return self._alike.get((register, written), {}).get(places[producer])

    @cached_property
    def _alike(self) -> dict[tuple[int, bool], dict[int, int]]:
        """By register and by whether it is written, then by place."""
        rows: dict[tuple[int, bool], list[int]] = {}
        for (hazard, _, register), operations in self._met.items():
            rows.setdefault((register, hazard is not Hazard.WAR), []).append(operations)
        return {key: _same_columns(found) for key, found in rows.items()}


def _same_columns(rows: list[int]) -> dict[int, int]:
    """By place that is in some of the sets: the first place that is in the same ones."""
    width = max((row.bit_length() + 7) // 8 for row in rows)
    packed = np.frombuffer(b"".join(row.to_bytes(width, "little") for row in rows), dtype=np.uint8)
    table: NDArray[np.uint8] = packed.reshape(len(rows), width)
    first: dict[bytes, int] = {}
    found: dict[int, int] = {}
    for begin in range(0, width, _COLUMNS):
        part = table[:, begin : begin + _COLUMNS]
        bits = np.unpackbits(part, axis=1, bitorder="little")
        columns = np.flatnonzero(bits.any(axis=0))
        for column, members in zip(columns, np.packbits(bits[:, columns], axis=0).T, strict=True):
            place = 8 * begin + int(column)
            found[place] = first.setdefault(members.tobytes(), place)
    return found
