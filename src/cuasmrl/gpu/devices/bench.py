"""One kernel on one GPU: its buffers, and races between cubins of it.

Every sample is queued whole (buffers restored, L2 flushed, event, launches, event) while the GPU still works
on what comes before, so that no time of the host is in it. A sample for which the GPU was faster than the
host is thrown away: its first event had happened before its last one was queued.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.devices.driver import Address, Bytes, Driver, Event, Function, Gpu, Module, Parameters
from cuasmrl.gpu.devices.packed import PackedLaunch, Region

Times: TypeAlias = npt.NDArray[np.float64]
"""Microseconds of one launch: a row per round, a column per cubin."""

RESOLUTION = 0.5
"""Microseconds between two times an event can have, by the documentation of cuEventElapsedTime."""
_STEPS = 200
"""A sample has to be this many steps of the clock long; where one launch is not, a batch of launches is."""
_MOST_LAUNCHES = 100
_NOISE = 1e-3
"""Microseconds: smaller differences between times come from rounding to single precision."""
_SETTLING = 31
_WARM_UP = 1e5
"""Microseconds of launches before anything counts, so that clocks have risen."""
_WARM_UP_LAUNCHES = 100
_FIRST_LAUNCHES = 3
"""Of each cubin, before its rounds: code has to be in the caches."""
_LEAST_FLUSH = 64 << 20
_MOST_FLUSHES = 64
_ATTEMPTS = 16
_POISON = 0xA5
"""As a number of any floating-point type it is small and finite, so sums into it still show differences."""
_SHARED_WITHOUT_ASKING = 48 << 10


@dataclass(frozen=True)
class Ready:
    """What is known of the original before the first candidate."""

    gpu: Gpu
    time: float
    """Microseconds of a launch."""
    batch: int
    """Launches in a sample."""
    outputs: tuple[int, ...]
    """Numbers of the arguments that the kernel writes to."""
    unsteady: tuple[int, ...]
    """Those of them whose content differs from launch to launch, so that it cannot be compared."""


class _Buffer:
    """A region on the GPU."""

    def __init__(self, region: Region, address: Address) -> None:
        self.region = region
        self.address = address
        self.size = region.data.nbytes
        self.start: Address | None = None
        """A copy of what it holds before a launch, if launches change it."""
        self.expected: Bytes | None = None
        """What it holds after one of the original, if that is always the same."""


class Bench:
    """Runs the original once to learn what it writes and how long it takes; then races."""

    def __init__(self, driver: Driver, ordinal: int, packed: PackedLaunch, original: bytes) -> None:
        driver.open_context(ordinal)
        self.driver = driver
        self.packed = packed
        self._stream = driver.create_stream()
        self._buffers = [_Buffer(region, driver.allocate(region.data.nbytes)) for region in packed.regions]
        for buffer in self._buffers:
            driver.upload(buffer.address, buffer.region.data, self._stream)
        self._parameters = Parameters(packed.parameters([buffer.address for buffer in self._buffers]))
        gpu = driver.gpu(ordinal)
        self._flush_bytes = max(2 * gpu.l2_bytes, _LEAST_FLUSH)
        self._flush = driver.allocate(self._flush_bytes)
        self._flushes = 1
        self._events: list[tuple[Event, Event]] = []
        self.batch = 1
        module, function = self._load(original)
        self._learn(function)
        self._warm_up(function)
        time = self._settle(function)
        driver.unload_module(module)
        written = [buffer for buffer in self._buffers if buffer.start is not None]
        self.ready = Ready(
            gpu,
            time,
            self.batch,
            tuple(n for buffer in written for n in buffer.region.arguments),
            tuple(n for buffer in written if buffer.expected is None for n in buffer.region.arguments),
        )

    def check(self, cubin: bytes) -> str | None:
        """How the outputs of a cubin differ from those of the original, or None."""
        module, function = self._load(cubin)
        self._run_from_start(function)
        differences = [self._difference(b) for b in self._buffers if b.expected is not None]
        self.driver.unload_module(module)
        return next((difference for difference in differences if difference), None)

    def race(self, cubins: Sequence[bytes], rounds: int, seed: int) -> Times:
        """Time cubins against each other, in every round once each in random order."""
        rng = random.Random(seed)
        loaded: dict[int, tuple[Module, Function]] = {}
        # Where code lies in memory follows from the order of loading, and may matter.
        for arm in rng.sample(range(len(cubins)), len(cubins)):
            loaded[arm] = self._load(cubins[arm])
        functions = [loaded[arm][1] for arm in range(len(cubins))]
        for function in functions * _FIRST_LAUNCHES:
            self._launch(function)
        times = np.array([self._round(functions, rng) for _ in range(rounds)])
        # Not in a `finally`: after a failed launch the context is lost, and this would only hide why.
        for module, _ in loaded.values():
            self.driver.unload_module(module)
        return times

    def _load(self, cubin: bytes) -> tuple[Module, Function]:
        module = self.driver.load_module(cubin)
        function = self.driver.function(module, self.packed.kernel)
        if self.packed.static_bytes + self.packed.shared_bytes > _SHARED_WITHOUT_ASKING:
            self.driver.allow_shared(function, self.packed.shared_bytes)
        return module, function

    def _learn(self, function: Function) -> None:
        """Find out what the original writes, and whether it always writes the same."""
        self._launch(function)
        for buffer in self._buffers:
            if not np.array_equal(self._content(buffer), buffer.region.data):
                buffer.start = self.driver.allocate(buffer.size)
                self.driver.upload(buffer.start, buffer.region.data, self._stream)
        runs = []
        for _ in range(2):
            self._run_from_start(function)
            runs.append([self._content(b) for b in self._buffers if b.start is not None])
        written = [buffer for buffer in self._buffers if buffer.start is not None]
        for buffer, first, second in zip(written, *runs, strict=True):
            buffer.expected = first if np.array_equal(first, second) else None

    def _warm_up(self, function: Function) -> None:
        spent, rng = 0.0, random.Random(0)
        for _ in range(_WARM_UP_LAUNCHES):
            spent += self._round([function], rng)[0]
            if spent > _WARM_UP:
                break

    def _settle(self, function: Function) -> float:
        """Choose how many launches a sample needs, and time the original."""
        rng = random.Random(0)
        singles = [self._round([function], rng)[0] for _ in range(_SETTLING)]
        needed = math.ceil(_STEPS * granularity(singles) / max(median(singles), RESOLUTION))
        self.batch = min(max(needed, 1), _MOST_LAUNCHES)
        return median(self._round([function], rng)[0] for _ in range(_SETTLING))

    def _round(self, functions: Sequence[Function], rng: random.Random) -> list[float]:
        while len(self._events) < len(functions):
            self._events.append((self.driver.create_event(), self.driver.create_event()))
        for _ in range(_ATTEMPTS):
            in_time = [self._sample(functions[a], *self._events[a])
                       for a in rng.sample(range(len(functions)), len(functions))]  # fmt: skip
            self.driver.synchronize(self._stream)
            if all(in_time):
                return [self.driver.elapsed(*self._events[a]) / self.batch for a in range(len(functions))]
            # More to do for the GPU before a sample gives the host more time to queue it.
            self._flushes = min(2 * self._flushes, _MOST_FLUSHES)
        raise CuasmrlError(
            "this process is too slow to keep the GPU busy, so launches cannot be timed; "
            "free a processor core and try again"
        )

    def _sample(self, function: Function, begin: Event, end: Event) -> bool:
        """Queue one sample; was the GPU still busy with what comes before when all of it was queued?"""
        self._restore()
        for _ in range(self._flushes):
            self.driver.fill(self._flush, 0, self._flush_bytes, self._stream)
        self.driver.record(begin, self._stream)
        for _ in range(self.batch):
            self._queue(function)
        self.driver.record(end, self._stream)
        return not self.driver.has_happened(begin)

    def _launch(self, function: Function) -> None:
        self._queue(function)
        self.driver.synchronize(self._stream)

    def _queue(self, function: Function) -> None:
        packed = self.packed
        self.driver.launch(
            function, packed.grid, packed.block, packed.shared_bytes, self._stream, self._parameters
        )

    def _restore(self) -> None:
        """A kernel that works in place must not find what the launch before left there."""
        for buffer in self._buffers:
            if buffer.start is not None:
                self.driver.copy(buffer.address, buffer.start, buffer.size, self._stream)

    def _run_from_start(self, function: Function) -> None:
        """One launch with outputs poisoned, so that a store that is missing shows."""
        self._restore()
        for buffer in self._buffers:
            if buffer.start is not None and buffer.region.may_poison:
                self.driver.fill(buffer.address, _POISON, buffer.size, self._stream)
        self._launch(function)

    def _content(self, buffer: _Buffer) -> Bytes:
        return self.driver.download(buffer.address, buffer.size, self._stream)

    def _difference(self, buffer: _Buffer) -> str | None:
        assert buffer.expected is not None
        places = np.flatnonzero(self._content(buffer) != buffer.expected)
        if not len(places):
            return None
        number = buffer.region.arguments[0]
        return f"argument {number} differs in {len(places)} of {buffer.size} bytes, first in byte {places[0]}"


def granularity(times: Sequence[float]) -> float:
    """The step of the clock behind some times, in their unit; at most the documented one."""
    steps = np.diff(np.unique(times))
    return float(steps[steps > _NOISE].min(initial=RESOLUTION))
