"""A schedule: the order of a kernel's instructions and their control bits. A value, with a digest."""

import hashlib
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from cuasmrl.binary.cubin import WORD_BYTES, Cubin
from cuasmrl.binary.sass import Control, Listing
from cuasmrl.errors import CuasmrlError


@dataclass(frozen=True)
class Schedule:
    listing: Listing = field(compare=False, repr=False)
    order: tuple[int, ...]
    """Position → original index of the instruction that stands there."""
    controls: tuple[Control, ...]
    """Original index → control bits."""

    @staticmethod
    def original(listing: Listing) -> "Schedule":
        return Schedule(
            listing, tuple(range(len(listing.instructions))), tuple(i.control for i in listing.instructions)
        )

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
        order = np.array(self.order, np.int32).tobytes()
        bits = np.array([control.bits for control in self.controls], np.int32).tobytes()
        return hashlib.blake2b(order + bits, digest_size=16).digest()

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
