"""One kernel on one GPU: what the original does there, races between cubins, and many launches compared.

Nothing of a launch is taken for another's fault: buffers are restored before every one whose outcome counts.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from cuasmrl.gpu.devices.buffers import Buffers, overwrites
from cuasmrl.gpu.devices.driver import Bytes, Driver, DriverError, Function, Gpu, Module, Status
from cuasmrl.gpu.devices.monitor import Reading
from cuasmrl.gpu.devices.outputs import STEADY_RUNS, UNSTEADY_RUNS, Likeness, reference, same
from cuasmrl.gpu.devices.packed import PackedLaunch
from cuasmrl.gpu.devices.samples import Sampler
from cuasmrl.gpu.timing import L2

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
_WARM_UP, _MOST_WARM_UP = 1e5, 5e6
"""Microseconds of work before anything counts, so that clocks have risen: at least, and at most."""
_WINDOW = 25
"""Rounds whose median is compared with that of earlier ones."""
_EARLIER = 16
_STEADY = 0.003
"""Relative difference between windows, so many windows apart, from which on the GPU counts as warm."""
_FIRST_LAUNCHES = 3
"""Of each cubin, before its rounds: code has to be in the caches."""
_PADS = 64
_PAD_BYTES = 128 << 10
_MOST_SPARES = 3
"""Copies of the original that are loaded between others, so that code lies elsewhere in each sitting."""
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
    """Those of them whose content differs from launch to launch."""
    incomparable: tuple[int, ...]
    """Those of them that differ too much to be compared at all."""
    by_activity: bool
    """Does CUPTI time launches? Otherwise events do,"""
    by_graphs: bool
    """and those in a graph of many launches."""
    is_steady: bool
    """Did times settle while the GPU was warmed?"""


@dataclass(frozen=True, eq=False)
class Sitting:
    """Rounds of some cubins, each loaded once, in buffers that lie where they did in no other sitting."""

    times: Times
    readings: tuple[Reading, ...]
    """One a round; none where the GPU says nothing of itself."""
    compared: int
    """Number of the cubin that ran last; its outputs were compared."""
    difference: str | None
    """How they differed from the original's, if they did."""


@dataclass(frozen=True)
class Soak:
    """Many launches of one cubin, each compared."""

    compared: int
    differing: int
    first: str | None


class Bench:
    """Runs the original to learn what it writes and how long it takes; then races."""

    def __init__(
        self, driver: Driver, ordinal: int, packed: PackedLaunch, original: bytes, l2: L2 = L2.COLD
    ) -> None:
        """`l2` is its state under which times count unless something else is asked for."""
        driver.open_context(ordinal)
        self.driver, self.packed, self.l2 = driver, packed, l2
        self._original = original
        self._stream, self._side = driver.create_stream(), driver.create_stream()
        self._buffers = Buffers(driver, packed, self._stream)
        gpu = driver.gpu(ordinal)
        self._monitor, activity = driver.monitor(gpu), driver.activity()
        self._sampler = Sampler(driver, packed, self._buffers, self._stream, gpu.l2_bytes, activity)
        module, function = self._load(original)
        self._learn(function)
        is_steady = self._warm_up(function)
        settled = self._settle(function)
        driver.unload_module(module)
        written = self._buffers.written
        unlike = [b for b in written if b.plain is None or b.plain.likeness is not Likeness.BITS]
        incomparable = [b for b in unlike if b.plain is None or b.plain.likeness is Likeness.NONE]
        self.ready = Ready(
            gpu,
            settled,
            self._sampler.batch,
            tuple(n for buffer in written for n in buffer.region.arguments),
            tuple(n for buffer in unlike for n in buffer.region.arguments),
            tuple(n for buffer in incomparable for n in buffer.region.arguments),
            activity is not None,
            self._sampler.by_graphs,
            is_steady,
        )

    def check(self, cubin: bytes) -> str | None:
        """How the outputs of a cubin differ from those of the original, or None."""
        module, function = self._load(cubin)
        self._buffers.poison()
        self._sampler.launch(function)
        difference = self._buffers.difference(poisoned=True)
        self.driver.unload_module(module)
        return difference

    def outputs(self) -> dict[int, Bytes]:
        """What a launch of the original leaves, by the number of the argument; whole regions only."""
        module, function = self._load(self._original)
        self._buffers.restore()
        self._sampler.launch(function)
        found = dict(zip(self._buffers.written, self._buffers.contents(), strict=True))
        self.driver.unload_module(module)
        return {
            b.region.arguments[0]: content for b, content in found.items() if len(b.region.arguments) == 1
        }

    def sit(self, cubins: Sequence[bytes], rounds: int, seed: int, l2: L2 | None = None) -> Sitting:
        """Time cubins against each other, in every round once each in random order."""
        rng, l2 = random.Random(seed), l2 or self.l2
        pad = self.driver.allocate(rng.randrange(1, _PADS) * _PAD_BYTES)
        self._buffers.move()
        modules, functions = self._load_all(cubins, rng)
        for function in functions * _FIRST_LAUNCHES:
            self._buffers.restore()
            self._sampler.launch(function)
        times, readings, order = [], [], list(range(len(functions)))
        for _ in range(rounds):
            order = rng.sample(range(len(functions)), len(functions))
            times.append(self._sampler.round(functions, order, l2))
            if self._monitor is not None:
                readings.append(self._monitor.read())
        # What the last sample left is still there: its launch had the company that timed ones have.
        difference = self._buffers.difference(poisoned=False)
        # Not in a `finally`: after a failed launch the context is lost, and this would only hide why.
        for module in modules:
            self.driver.unload_module(module)
        self.driver.free(pad)
        return Sitting(np.array(times), tuple(readings), order[-1], difference)

    def soak(self, cubin: bytes, launches: int, seconds: float) -> Soak:
        """Launch a cubin again and again, alone, after and beside the original, and compare each time."""
        (module, function), (other, original) = self._load(cubin), self._load(self._original)
        company = self._company()
        compared = differing = 0
        first: str | None = None
        end = time.monotonic() + seconds
        while compared < launches and (time.monotonic() < end or not compared):
            self._run_in_company(compared, function, original, company)
            found = self._buffers.difference(poisoned=True)
            compared += 1
            differing += found is not None
            first = first or found
        if company is not None:
            self.driver.synchronize(self._side)
            company.buffers.free()
        self.driver.unload_module(module)
        self.driver.unload_module(other)
        return Soak(compared, differing, first)

    def doubt(self, launches: int, seconds: float) -> Soak:
        """The same with the original. If it differs from itself, candidates are held to less from now on."""
        soak = self.soak(self._original, launches, seconds)
        if soak.differing:
            module, function = self._load(self._original)
            self._refer(function, UNSTEADY_RUNS)
            self.driver.unload_module(module)
        return soak

    def _run_in_company(
        self, number: int, function: Function, original: Function, company: Sampler | None
    ) -> None:
        """Hazards may show only in some company: with L2 full of others' data, or warm, or on a shared SM."""
        if number % 3 == 1:
            self._buffers.restore()
            self._sampler.queue(original)
        self._buffers.poison()
        if number % 3 == 0:
            self._sampler.flush()
        if number % 3 == 2 and company is not None:
            company.buffers.restore()
            company.queue(original)
        self._sampler.launch(function)

    def _company(self) -> Sampler | None:
        """The original on another stream. Kernels that write integers may wait for blocks of their own
        launch, and two of those can wait for each other's places for ever."""
        if self.packed.cooperative or not all(b.region.may_poison for b in self._buffers.written):
            return None
        try:
            buffers = Buffers(self.driver, self.packed, self._side)
        except DriverError as error:
            if error.code == Status.OUT_OF_MEMORY:
                return None
            raise
        return Sampler(self.driver, self.packed, buffers, self._side)

    def _load(self, cubin: bytes) -> tuple[Module, Function]:
        module = self.driver.load_module(cubin)
        function = self.driver.function(module, self.packed.kernel)
        if self.packed.static_bytes + self.packed.shared_bytes > _SHARED_WITHOUT_ASKING:
            self.driver.allow_shared(function, self.packed.shared_bytes)
        return module, function

    def _load_all(self, cubins: Sequence[bytes], rng: random.Random) -> tuple[list[Module], list[Function]]:
        """Where code lies follows from the order of loading and from what else is loaded, and may matter."""
        spares = rng.randrange(_MOST_SPARES + 1)
        modules: list[Module] = []
        functions: dict[int, Function] = {}
        for place in rng.sample(range(len(cubins) + spares), len(cubins) + spares):
            module, function = self._load(cubins[place] if place < len(cubins) else self._original)
            modules.append(module)
            functions[place] = function
        return modules, [functions[arm] for arm in range(len(cubins))]

    def _learn(self, function: Function) -> None:
        """Find out what the original writes, and what its launches have in common."""
        self._sampler.launch(function)
        self._buffers.find_written()
        self._refer(function, STEADY_RUNS)

    def _refer(self, function: Function, count: int) -> None:
        plain, poisoned = self._runs(function, count, False), self._runs(function, count, True)
        is_steady = all(_are_same(runs) for runs in (plain, poisoned))
        if not is_steady:
            more = UNSTEADY_RUNS - len(plain)
            plain += self._runs(function, more, False)
            poisoned += self._runs(function, more, True)
        repeats = True
        for number, buffer in enumerate(self._buffers.written):
            element, first, second = buffer.region.element, plain[0][number], poisoned[0][number]
            if is_steady:
                buffer.plain, buffer.poisoned = same(first, element), same(second, element)
            else:
                buffer.plain = reference([run[number] for run in plain], element)
                buffer.poisoned = reference([run[number] for run in poisoned], element)
            repeats &= buffer.region.may_poison and overwrites(buffer.region.data, first, second)
        self._sampler.may_repeat = repeats

    def _runs(self, function: Function, count: int, poisoned: bool) -> list[list[Bytes]]:
        """What is left after each of some launches."""
        runs = []
        for _ in range(count):
            if poisoned:
                self._buffers.poison()
            else:
                self._buffers.restore()
            self._sampler.launch(function)
            runs.append(self._buffers.contents())
        return runs

    def _warm_up(self, function: Function) -> bool:
        """Until times do not change any more; False if they go on changing."""
        begin, now = self.driver.create_event(), self.driver.create_event()
        self.driver.record(begin, self._stream)
        medians: list[float] = []
        spent = 0.0
        while spent < _MOST_WARM_UP:
            medians.append(median(self._alone(function) for _ in range(_WINDOW)))
            self.driver.record(now, self._stream)
            self.driver.synchronize(self._stream)
            spent = self.driver.elapsed(begin, now)
            settled = len(medians) > _EARLIER and abs(medians[-1] / medians[-1 - _EARLIER] - 1) < _STEADY
            if settled and spent >= _WARM_UP:
                return True
        return False

    def _settle(self, function: Function) -> float:
        """Choose how many launches a sample needs, and time the original."""
        singles = [self._alone(function) for _ in range(_SETTLING)]
        if self._sampler.activity is None:
            needed = math.ceil(_STEPS * granularity(singles) / max(median(singles), RESOLUTION))
            self._sampler.batch = min(max(needed, 1), _MOST_LAUNCHES)
        return median(self._alone(function) for _ in range(_SETTLING))

    def _alone(self, function: Function) -> float:
        return self._sampler.round([function], [0], self.l2)[0]


def _are_same(runs: Sequence[Sequence[Bytes]]) -> bool:
    return all(np.array_equal(a, b) for run in runs[1:] for a, b in zip(runs[0], run, strict=True))


def granularity(times: Sequence[float]) -> float:
    """The step of the clock behind some times, in their unit; at most the documented one."""
    steps = np.diff(np.unique(times))
    return float(steps[steps > _NOISE].min(initial=RESOLUTION))
