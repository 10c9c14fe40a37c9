"""A driver without a GPU: memory, a queue and two clocks; noise, drift, modes, faults and hangs on demand."""

from __future__ import annotations

import hashlib
import os
import random
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from cuasmrl.gpu.devices.driver import (
    Address,
    Bytes,
    Dimensions,
    DriverError,
    Event,
    Function,
    Gpu,
    Module,
    Parameters,
    Stream,
)  # fmt: skip

FLUSH = 60.0
"""Microseconds a flush takes."""
LOAD = 1.0


def name_of(cubin: bytes) -> str:
    return hashlib.sha256(cubin).hexdigest()


@dataclass(frozen=True)
class Scene:
    """What is pretended. Times in microseconds; cubins by `name_of`."""

    time: float = 50.0
    noise: float = 0.005
    drift: float = 0.0
    """Growth of all times in a second."""
    modes: float = 0.0
    """How much slower two of five launches are."""
    step: float = 0.0
    """Of the clock behind events."""
    host: float = 2.0
    """What every call costs the host."""
    arch: int = 80
    count: int = 1
    output: int = 16
    """Where in the parameters the address of the output stands."""
    adds: bool = False
    """Does the kernel add to its output instead of overwriting it?"""
    unsteady: bool = False
    """Does it write something else each time?"""
    gains: Mapping[str, float] = field(default_factory=dict)
    faults: frozenset[str] = frozenset()
    hangs: frozenset[str] = frozenset()
    crashes: frozenset[str] = frozenset()
    wrong: frozenset[str] = frozenset()


class FakeDriver:
    def __init__(self, scene: Scene, seed: int = 0) -> None:
        self.scene = scene
        self.rng = random.Random(seed)
        self.now = self.free_at = 0.0
        self.memory: dict[int, Bytes] = {}
        self.images: list[str] = []
        self.events: list[float] = []
        self.shared: dict[int, int] = {}
        self.launches: list[tuple[Dimensions, Dimensions, int]] = []
        self.is_hung = self.is_broken = False

    def devices(self) -> int:
        return self.scene.count

    def gpu(self, ordinal: int) -> Gpu:
        return Gpu(ordinal, "Fake GPU", self.scene.arch, 108, 40 << 20, 13010)

    def open_context(self, ordinal: int) -> None:
        assert ordinal < self.scene.count

    def load_module(self, image: bytes) -> Module:
        self.images.append(name_of(image))
        return Module(len(self.images) - 1)

    def unload_module(self, module: Module) -> None:
        self._call()

    def function(self, module: Module, name: str) -> Function:
        return Function(module)

    def allow_shared(self, function: Function, size: int) -> None:
        self.shared[function] = size

    def allocate(self, size: int) -> Address:
        address = max((base + len(data) for base, data in self.memory.items()), default=0) // 512 * 512 + 512
        # Only the place of the large buffer that flushes L2 matters.
        self.memory[address] = np.zeros(min(size, 16 << 20), np.uint8)
        return Address(address)

    def free(self, address: Address) -> None:
        del self.memory[address]

    def upload(self, address: Address, data: Bytes, stream: Stream) -> None:
        self.memory[address][:] = data

    def download(self, address: Address, size: int, stream: Stream) -> Bytes:
        return self.memory[address].copy()

    def copy(self, target: Address, source: Address, size: int, stream: Stream) -> None:
        self.memory[target][:] = self.memory[source]
        self._queue(LOAD)

    def fill(self, address: Address, byte: int, size: int, stream: Stream) -> None:
        if size <= len(self.memory[address]):
            self.memory[address][:] = byte
        self._queue(FLUSH)

    def create_stream(self) -> Stream:
        return Stream(1)

    def create_event(self) -> Event:
        self.events.append(0.0)
        return Event(len(self.events) - 1)

    def record(self, event: Event, stream: Stream) -> None:
        self._queue(0.0)
        self.events[event] = self.free_at

    def has_happened(self, event: Event) -> bool:
        self._call()
        return self.events[event] <= self.now

    def elapsed(self, start: Event, end: Event) -> float:
        step = self.scene.step or 1e-6
        return (self.events[end] // step - self.events[start] // step) * step

    def synchronize(self, stream: Stream) -> None:
        self._call()
        if self.is_hung:
            time.sleep(3600)
        self._check()
        self.now = max(self.now, self.free_at)

    def launch(
        self,
        function: Function,
        grid: Dimensions,
        block: Dimensions,
        shared_bytes: int,
        stream: Stream,
        parameters: Parameters,
    ) -> None:
        self._check()
        scene, name = self.scene, self.images[function]
        self.launches.append((grid, block, shared_bytes))
        self.is_hung |= name in scene.hangs
        self.is_broken |= name in scene.faults
        if name in scene.crashes:
            os.abort()
        self._write(parameters, 9 if name in scene.wrong else 7)
        duration = scene.time / (1 + scene.gains.get(name, 0.0)) * (1 + scene.drift * self.free_at / 1e6)
        if scene.modes and self.rng.random() < 0.4:
            duration *= 1 + scene.modes
        self._queue(duration * (1 + self.rng.gauss(0, scene.noise)))

    def _write(self, parameters: Parameters, value: int) -> None:
        at = self.scene.output
        out = self.memory[int.from_bytes(parameters.data[at : at + 8], "little")]
        if self.scene.unsteady:
            value = self.rng.randrange(256)
        # Not all of it is written: what is left shows what was there before.
        out[::2] = out[::2] + np.uint8(value) if self.scene.adds else value

    def _call(self) -> None:
        self.now += self.scene.host

    def _queue(self, duration: float) -> None:
        self._call()
        self.free_at = max(self.free_at, self.now) + duration

    def _check(self) -> None:
        if self.is_broken:
            raise DriverError("cuStreamSynchronize", 700, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal access")
