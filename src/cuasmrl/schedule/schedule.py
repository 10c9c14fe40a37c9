"""A schedule: the order of a kernel's instructions and their control bits. A value, with a digest."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from cuasmrl.binary.cubin import WORD_BYTES, Cubin
from cuasmrl.binary.sass import Control, Listing
from cuasmrl.errors import CuasmrlError

Int32: TypeAlias = npt.NDArray[np.int32]


class Schedule:
    """Kept in arrays, because searches make thousands a second; tuples are made for who reads them."""

    def __init__(self, listing: Listing, order: Iterable[int], controls: Iterable[Control]) -> None:
        bits = np.array([control.bits for control in controls], np.int32)
        self._take(listing, np.array(tuple(order), np.int32), bits)

    @staticmethod
    def of_arrays(listing: Listing, indices: Int32, bits: Int32) -> Schedule:
        """From arrays that nobody will change."""
        made = Schedule.__new__(Schedule)
        made._take(listing, indices, bits)
        return made

    @staticmethod
    def original(listing: Listing) -> Schedule:
        code = listing.instructions
        return Schedule(listing, range(len(code)), (i.control for i in code))

    def _take(self, listing: Listing, indices: Int32, bits: Int32) -> None:
        self.listing = listing
        self.indices = indices
        """`order` as an array."""
        self.bits = bits
        """Original index → control bits as they stand in the word."""

    def replaced(
        self, order: Iterable[int] | None = None, controls: Iterable[Control] | None = None
    ) -> Schedule:
        """The same with another order or other control bits."""
        return Schedule(
            self.listing,
            self.order if order is None else order,
            self.controls if controls is None else controls,
        )

    @cached_property
    def order(self) -> tuple[int, ...]:
        """Position → original index of the instruction that stands there."""
        return tuple(self.indices.tolist())

    @cached_property
    def controls(self) -> tuple[Control, ...]:
        """Original index → control bits."""
        return tuple(map(Control.of, self.bits.tolist()))

    @cached_property
    def words(self) -> tuple[bytes, ...]:
        code = self.listing.instructions
        return tuple(self.controls[i].encode(code[i].word) for i in self.order)

    @cached_property
    def digest(self) -> str:
        return hashlib.sha256(b"".join(self.words)).hexdigest()

    @cached_property
    def key(self) -> bytes:
        """Tells schedules of one listing apart; cheaper than the digest."""
        found = hashlib.blake2b(self.indices.data, digest_size=16)
        found.update(self.bits.data)
        return found.digest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Schedule) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __repr__(self) -> str:
        return f"Schedule({self.listing.kernel.name}, {self.key.hex()})"

    def moved(self) -> dict[int, int]:
        """Old code offset → new one, for the instructions that moved."""
        return {i * WORD_BYTES: p * WORD_BYTES for p, i in enumerate(self.order) if i != p}

    def arranged(self) -> Listing:
        """The listing in this order: what disassembling the new words would give, but for `.reuse` marks."""
        code = self.listing.instructions
        instructions = tuple(
            replace(code[i], index=position, word=word, control=self.controls[i])
            for position, (i, word) in enumerate(zip(self.order, self.words, strict=True))
        )
        return Listing(replace(self.listing.kernel, words=self.words), instructions)

    def apply(self, cubin: Cubin) -> Cubin:
        """The cubin with this schedule; everything else stays as it is, byte for byte."""
        kernel = cubin.kernel(self.listing.kernel.name)
        if kernel.words != self.listing.kernel.words:
            raise CuasmrlError(
                f"{cubin.source}, kernel {kernel.name}: this schedule was made for other code; "
                "apply it to the cubin it came from"
            )
        return cubin.with_words(kernel, self.words, self.moved())
