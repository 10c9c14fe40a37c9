"""A driver without a GPU: memory, a queue and two clocks, and every kind of misbehaviour on demand."""

from __future__ import annotations

import hashlib
import math
import os
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from cuasmrl.gpu.devices.activity import Activity
from cuasmrl.gpu.devices.driver import (
    ALONE,
    Address,
    Bytes,
    Dimensions,
    DriverError,
    Event,
    Function,
    Gpu,
    Graph,
    Module,
    Parameters,
    Stream,
    Together,
)  # fmt: skip
from cuasmrl.gpu.devices.monitor import Monitor, Reading
from cuasmrl.gpu.emulator.tensor_maps import TensorMap

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
    stragglers: float = 0.0
    """Share of launches that take up to twice as long."""
    placement: float = 0.0
    """Deviation of what the place of code does to its time, drawn whenever a cubin is loaded."""
    ramp: float = 0.0
    """How much slower everything is at first; halved every 50 milliseconds of work."""
    cold: float = 0.0
    """How much longer a launch takes after L2 was overwritten."""
    gap: float = 0.0
    """What lies between two events besides a kernel."""
    graphs: bool = False
    """Can streams be captured?"""
    inner_gap: float = 0.0
    """The gap within a graph."""
    records: bool = False
    """Is there CUPTI?"""
    step: float = 0.0
    """Of the clock behind events."""
    host: float = 2.0
    """What every call costs the host."""
    arch: int = 80
    version: int = 13010
    count: int = 1
    output: int = 16
    """Where in the parameters the address of the output stands."""
    adds: bool = False
    """Does the kernel add to its output instead of overwriting it?"""
    tickets: bool = False
    """Does it fault unless it finds what was there before the first launch?"""
    unsteady: bool = False
    """Does it write something else each time?"""
    shuffles: bool = False
    """Does it write the same bytes in another order each time?"""
    throttle: tuple[str, ...] | None = None
    """What the GPU says of itself in every second reading; it says nothing at all if None."""
    gains: Mapping[str, float] = field(default_factory=dict)
    luck: float = 0.0
    """Largest gain or loss of cubins that `gains` does not name: each has its own."""
    faults: frozenset[str] = frozenset()
    hangs: frozenset[str] = frozenset()
    crashes: frozenset[str] = frozenset()
    wrong: frozenset[str] = frozenset()
    flaky: Mapping[str, int] = field(default_factory=dict)
    """One launch of so many writes something wrong."""
    faults_late: Mapping[str, int] = field(default_factory=dict)
    """The launch of this number faults, counted from the start of the process."""
    trouble: Path | None = None
    """A file in which the number of an error stands, and how often loading a cubin fails with it."""


class FakeDriver:
    def __init__(self, scene: Scene, seed: int = 0) -> None:
        self.scene = scene
        self.rng = random.Random(seed)
        self.now = self.free_at = 0.0
        self.memory: dict[int, Bytes] = {}
        self.images: list[str] = []
        self.places: list[float] = []
        self.events: list[float] = []
        self.shared: dict[int, int] = {}
        self.launches: list[tuple[Dimensions, Dimensions, int]] = []
        self.launched: dict[str, int] = {}
        self.kernels: list[float] = []
        self.readings = 0
        self.is_hung = self.is_broken = self.is_warm = False
        self.tape: list[Callable[[], None]] | None = None
        self.tapes: dict[int, list[Callable[[], None]]] = {}
        self.graphs_run = 0
        self.in_graph = False
        self.together = ALONE

    def devices(self) -> int:
        return self.scene.count

    def gpu(self, ordinal: int) -> Gpu:
        return Gpu(ordinal, "Fake GPU", self.scene.arch, 108, 40 << 20, self.scene.version, "fake")

    def open_context(self, ordinal: int) -> None:
        assert ordinal < self.scene.count

    def load_module(self, image: bytes) -> Module:
        self._make_trouble()
        self.images.append(name_of(image))
        self.places.append(self.rng.gauss(0, self.scene.placement))
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
        if self._kept(lambda: self.copy(target, source, size, stream)):
            return
        self.memory[target][:] = self.memory[source]
        self._queue(LOAD)

    def fill(self, address: Address, byte: int, size: int, stream: Stream) -> None:
        if self._kept(lambda: self.fill(address, byte, size, stream)):
            return
        if size <= len(self.memory[address]):
            self.memory[address][:] = byte
        else:
            self.is_warm = False
        self._queue(FLUSH)

    def create_stream(self) -> Stream:
        return Stream(1)

    def create_event(self) -> Event:
        self.events.append(0.0)
        return Event(len(self.events) - 1)

    def record(self, event: Event, stream: Stream) -> None:
        if self._kept(lambda: self.record(event, stream)):
            return
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
        together: Together = ALONE,
    ) -> None:
        if self._kept(lambda: self.launch(function, grid, block, shared_bytes, stream, parameters, together)):
            return
        self._check()
        self.together = together
        scene, name = self.scene, self.images[function]
        count = self.launched[name] = self.launched.get(name, 0) + 1
        self.launches.append((grid, block, shared_bytes))
        self.is_hung |= name in scene.hangs
        self.is_broken |= name in scene.faults or scene.faults_late.get(name) == count
        if name in scene.crashes:
            os.abort()
        is_wrong = name in scene.wrong or (name in scene.flaky and not self.rng.randrange(scene.flaky[name]))
        self._write(parameters, 9 if is_wrong else 7)
        duration = self._duration(name) * math.exp(self.places[function])
        self.kernels.append(duration)
        self._queue(duration + (scene.inner_gap if self.in_graph else scene.gap))
        self.is_warm = True

    def tensor_map(self, tiles: TensorMap) -> bytes:
        return tiles.encode()

    @property
    def graphs(self) -> bool:
        return self.scene.graphs

    def begin_capture(self, stream: Stream) -> None:
        assert self.tape is None
        self.tape = []

    def end_capture(self, stream: Stream) -> Graph:
        assert self.tape is not None
        self.tapes[len(self.tapes)], self.tape = self.tape, None
        return Graph(len(self.tapes) - 1)

    def run_graph(self, graph: Graph, stream: Stream) -> None:
        """The host has one call to make, whatever is in it."""
        self._call()
        self.graphs_run += 1
        self.in_graph = True
        for step in self.tapes[graph]:
            step()
        self.in_graph = False

    def drop_graph(self, graph: Graph) -> None:
        self.tapes[graph] = []

    def _kept(self, step: Callable[[], None]) -> bool:
        """While a stream is captured, nothing runs."""
        if self.tape is not None:
            self.tape.append(step)
        return self.tape is not None

    def monitor(self, gpu: Gpu) -> Monitor | None:
        return None if self.scene.throttle is None else FakeMonitor(self, self.scene.throttle)

    def activity(self) -> Activity | None:
        return FakeActivity(self) if self.scene.records else None

    def _duration(self, name: str) -> float:
        scene, rng = self.scene, self.rng
        gain = scene.gains.get(name, scene.luck * (int(name[:8], 16) / 2**31 - 1))
        duration = scene.time / (1 + gain) * (1 + scene.drift * self.free_at / 1e6)
        if scene.modes and rng.random() < 0.4:
            duration *= 1 + scene.modes
        if scene.stragglers and rng.random() < scene.stragglers:
            duration *= 1 + rng.random()
        duration *= 1 + scene.ramp * math.exp2(-self.free_at / 5e4)
        return duration * (1 + rng.gauss(0, scene.noise)) * (1 if self.is_warm else 1 + scene.cold)

    def _write(self, parameters: Parameters, value: int) -> None:
        at = self.scene.output
        out = self.memory[int.from_bytes(parameters.data[at : at + 8], "little")]
        if self.scene.tickets:
            self.is_broken |= bool(out[-1])
            out[-1] = 1
        if self.scene.unsteady:
            value = self.rng.randrange(256)
        # Not all of it is written: what is left shows what was there before.
        out[::2] = out[::2] + np.uint8(value) if self.scene.adds else value
        if self.scene.shuffles:
            some = np.arange(len(out) // 4, dtype=np.uint32) + np.uint32(value)
            start = self.rng.randrange(len(some))
            out[: 4 * len(some)] = np.roll(some, start).view(np.uint8)

    def _call(self) -> None:
        assert self.tape is None, "a captured stream is not asked for anything"
        if not self.in_graph:
            self.now += self.scene.host

    def _queue(self, duration: float) -> None:
        self._call()
        self.free_at = max(self.free_at, self.now) + duration

    def _check(self) -> None:
        if self.is_broken:
            raise DriverError("cuStreamSynchronize", 700, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal access")

    def _make_trouble(self) -> None:
        path = self.scene.trouble
        if path is not None and path.exists():
            code, times = map(int, path.read_text().split())
            if times:
                path.write_text(f"{code} {times - 1}")
                raise DriverError("cuModuleLoadData", code, "CUDA_ERROR", "trouble")


class FakeMonitor:
    def __init__(self, driver: FakeDriver, throttle: tuple[str, ...]) -> None:
        self.driver, self.throttle = driver, throttle

    def read(self) -> Reading:
        self.driver.readings += 1
        slow = self.driver.readings % 2 == 0
        return Reading(
            1200 if slow and self.throttle else 1410, 1215, 250.0, 60, self.throttle if slow else ()
        )

    def lock(self) -> int:
        return 1095


class FakeActivity:
    def __init__(self, driver: FakeDriver) -> None:
        self.driver = driver

    def durations(self) -> list[float]:
        found, self.driver.kernels = self.driver.kernels, []
        return found
