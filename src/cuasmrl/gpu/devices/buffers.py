"""The buffers of a kernel on the GPU: restored, poisoned, moved, and compared after a launch."""

from __future__ import annotations

import numpy as np

from cuasmrl.gpu.devices.driver import Address, Bytes, Driver, DriverError, Parameters, Status, Stream
from cuasmrl.gpu.devices.outputs import Likeness, Reference
from cuasmrl.gpu.devices.packed import PackedLaunch, Region

POISON = 0xA5
"""As a number of any floating-point type it is small and finite, so sums into it still show differences."""


class Buffer:
    """A region on the GPU."""

    def __init__(self, region: Region, address: Address) -> None:
        self.region = region
        self.address = address
        self.size = region.data.nbytes
        self.start: Address | None = None
        """A copy of what it holds before a launch, if launches change it."""
        self.plain: Reference | None = None
        """What it holds after a launch of the original."""
        self.poisoned: Reference | None = None
        """After one before which it was poisoned."""


class Buffers:
    """All that the parameters of a launch point to."""

    def __init__(self, driver: Driver, packed: PackedLaunch, stream: Stream) -> None:
        self._driver, self._packed, self._stream = driver, packed, stream
        self.all = [Buffer(region, driver.allocate(region.data.nbytes)) for region in packed.regions]
        for buffer in self.all:
            driver.upload(buffer.address, buffer.region.data, stream)
        self.parameters = self._parameters()

    @property
    def written(self) -> list[Buffer]:
        return [buffer for buffer in self.all if buffer.start is not None]

    def restore(self) -> None:
        """No launch must find what the one before left: a ticket that is taken, a sum that has begun."""
        for buffer in self.written:
            assert buffer.start is not None
            self._driver.copy(buffer.address, buffer.start, buffer.size, self._stream)

    def poison(self) -> None:
        """Restored, but outputs of floating-point type hold what a missing store would leave."""
        self.restore()
        for buffer in self.written:
            if buffer.region.may_poison:
                self._driver.fill(buffer.address, POISON, buffer.size, self._stream)

    def contents(self) -> list[Bytes]:
        """Of all that launches change."""
        return [self._driver.download(b.address, b.size, self._stream) for b in self.written]

    def find_written(self) -> None:
        """After the first launch on fresh buffers: keep a copy of the start of those that it changed."""
        for buffer in self.all:
            content = self._driver.download(buffer.address, buffer.size, self._stream)
            if not np.array_equal(content, buffer.region.data):
                buffer.start = self._driver.allocate(buffer.size)
                self._driver.upload(buffer.start, buffer.region.data, self._stream)

    def difference(self, poisoned: bool) -> str | None:
        """How what a launch left differs from what the original leaves, in words."""
        for buffer in self.written:
            reference = buffer.poisoned if poisoned else buffer.plain
            if reference is None or reference.likeness is Likeness.NONE:
                continue
            content = self._driver.download(buffer.address, buffer.size, self._stream)
            found = reference.difference(content)
            if found is not None:
                return f"argument {buffer.region.arguments[0]} {found}"
        return None

    def move(self) -> None:
        """To other addresses, where there is room for a while to have both."""
        for buffer in self.all:
            try:
                address = self._driver.allocate(buffer.size)
            except DriverError as error:
                if error.code == Status.OUT_OF_MEMORY:
                    break
                raise
            self._driver.copy(address, buffer.address, buffer.size, self._stream)
            self._driver.synchronize(self._stream)
            self._driver.free(buffer.address)
            buffer.address = address
        self.parameters = self._parameters()

    def free(self) -> None:
        for buffer in self.all:
            self._driver.free(buffer.address)
            if buffer.start is not None:
                self._driver.free(buffer.start)

    def _parameters(self) -> Parameters:
        addresses = [buffer.address for buffer in self.all]
        return Parameters(self._packed.parameters(addresses, self._driver.tensor_map))


def overwrites(packed_start: Bytes, plain: Bytes, poisoned: Bytes) -> bool:
    """Does a launch leave the same whatever was there before, except where it writes nothing at all?"""
    untouched = (poisoned == POISON) & (plain == packed_start)
    return bool(((plain == poisoned) | untouched).all())
