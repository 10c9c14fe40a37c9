"""A real GPU as a timer: candidates race against the original in a process of their own."""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from cuasmrl.checker import Checker, Refusal
from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.devices.bench import Ready, Sitting, Soak
from cuasmrl.gpu.devices.device import COST_ON_A_GPU, CandidateError, Rival, time_or_never
from cuasmrl.gpu.devices.driver import INSTEAD, OLDEST, Bytes, Gpu
from cuasmrl.gpu.devices.loading import load
from cuasmrl.gpu.devices.monitor import Conditions
from cuasmrl.gpu.devices.packed import pack
from cuasmrl.gpu.devices.rounds import MeasuredGain, elsewhere, judge, relative_time
from cuasmrl.gpu.devices.worker import Connect, Worker, WorkerError
from cuasmrl.gpu.launches.launch import Launch
from cuasmrl.gpu.timing import L2
from cuasmrl.gpu.traced import LaunchedKernel, TracedKernel
from cuasmrl.schedule import Schedule

Answer = TypeVar("Answer")

UNIT = "microseconds"
SEARCH_SITTINGS, SEARCH_ROUNDS = 3, 5
_FINALISTS = 6
"""Each takes all the races of a confirmation."""
SITTINGS, SITTING_ROUNDS = 20, 10
"""To confirm. In each sitting code and data lie elsewhere."""
OTHER_SITTINGS = 10
"""Under the state of L2 that the gain is not claimed for."""
SOAK, SOAK_SECONDS = 3000, 60.0
"""Launches of a schedule whose outputs are compared before its gain is claimed: what goes wrong once in a
thousand of them goes wrong in one of these with a chance of 95 %. Fewer where that takes longer than this."""
_DOUBTED = 100
"""Launches of the original after a timed launch of a candidate differed."""
PATIENCE = 30.0
"""Seconds beyond what is expected before a launch counts as hung."""
_SLOWER = 10
"""A candidate may be this much slower than the original and will still be waited for."""
_UPLOAD = 50e6
"""Bytes a second at which buffers reach the GPU at worst, by way of the other process."""
_ATTEMPTS = 3
_PAUSE = 10.0
"""Seconds before a GPU that failed is tried again, and as long again before each further time."""


def available(connect: Connect = load) -> str | None:
    """Why this machine cannot time kernels on a GPU, in one sentence; None if it can."""
    try:
        connect()
    except CuasmrlError as error:
        return str(error)
    return None


def find(ordinal: int, connect: Connect = load) -> Gpu:
    """The GPU of that number, if its driver is new enough."""
    driver = connect()
    count = driver.devices()
    if not 0 <= ordinal < count:
        known = "the only GPU is cuda:0" if count == 1 else f"the GPUs are cuda:0 to cuda:{count - 1}"
        raise CuasmrlError(f"there is no cuda:{ordinal} on this machine; {known}")
    gpu = driver.gpu(ordinal)
    if gpu.driver_version < OLDEST:
        raise CuasmrlError(
            f"the driver of cuda:{ordinal} ({gpu.name}) is for CUDA {_cuda(gpu.driver_version)}, and the "
            f"oldest that will do is for {_cuda(OLDEST)}; install a newer one, or {INSTEAD}"
        )
    return gpu


def _cuda(version: int) -> str:
    return f"{version // 1000}.{version % 1000 // 10}"


class _OriginalError(CuasmrlError):
    """The original fails as the candidate did."""


class CudaTimer:
    """Microseconds of a launch. Nothing reaches the GPU that the checker has not certified.

    While searching, a schedule's time is that of the original times the median ratio of a few rounds in which
    both ran, so drift of the clocks is not taken for a gain.
    """

    def __init__(
        self,
        kernel: LaunchedKernel,
        ordinal: int,
        launch: Launch,
        connect: Connect = load,
        patience: float = PATIENCE,
        pause: float = _PAUSE,
    ) -> None:
        """`launch` is the one that was traced, with its buffers as they are before it; they are copied."""
        self.kernel = kernel
        self.connect = connect
        self.gpu = find(ordinal, connect)
        _check_arch(kernel, self.gpu)
        _check_launch(kernel, launch)
        self.patience, self.pause = patience, pause
        self._original = kernel.original
        self._checker = Checker(kernel.cubin)
        self._admitted = {self._original.key}
        self._failures: dict[bytes, str] = {}
        self._picked: dict[tuple[bytes, bytes], float] = {}
        self._sittings = 0
        packed = pack(kernel.listing.kernel, launch)
        self._opening = patience + 2 * sum(region.data.nbytes for region in packed.regions) / _UPLOAD
        self._worker = Worker(connect, ordinal, packed, kernel.cubin.data, kernel.l2)
        self._close = weakref.finalize(self, self._worker.close)
        self.ready = self._open()
        """What was learnt of the original when the GPU first ran it; its time is the unit of all others."""

    @property
    def device(self) -> str:
        return f"cuda:{self.gpu.ordinal}"

    @property
    def unit(self) -> str:
        return UNIT

    @property
    def cost(self) -> float:
        return COST_ON_A_GPU

    def time(self, schedule: Schedule, rival: Rival | None = None) -> float:
        if schedule.key == self._original.key:
            return self.ready.time
        cubins = (self.kernel.cubin.data, self._admit(schedule))
        sittings = self._race(schedule, cubins, SEARCH_SITTINGS, SEARCH_ROUNDS)
        return self.ready.time * relative_time([sitting.times for sitting in sittings])

    def times(self, schedules: Sequence[Schedule], rival: Rival | None = None) -> list[float]:
        """One after the other: they share the GPU."""
        return [time_or_never(self, schedule, rival) for schedule in schedules]

    @property
    def finalists(self) -> int:
        return _FINALISTS

    def pick(self, old: Schedule, candidates: Sequence[Schedule]) -> Schedule:
        """The one that wins races against the old one by most. Asked again without one that failed, it does
        not race the others again."""
        for schedule in candidates:
            if (old.key, schedule.key) not in self._picked:
                self._picked[old.key, schedule.key] = self._measure(old, schedule)[0].median
        return max(candidates, key=lambda schedule: self._picked[old.key, schedule.key])

    def confirm(self, old: Schedule, new: Schedule) -> MeasuredGain:
        """Races between the old one, the new one and a second copy of the old one; many launches compared."""
        if old.key == new.key:
            gain, compared = self._measure(old, new)
            return self._signed(gain, compared, "both schedules are the same")
        soaked = self._soak(new)
        if isinstance(soaked, str):
            gain, compared = self._measure(old, new)
            return self._signed(gain, compared, soaked)
        gain, compared = self._measure(old, new)
        other = L2.AGAIN if self.kernel.l2 is L2.COLD else L2.COLD
        cubins = self._admit(old), self._admit(new)
        named = self._race(new, cubins, OTHER_SITTINGS, SITTING_ROUNDS, other)
        gain = replace(gain, other=elsewhere([sitting.times for sitting in named], other))
        return self._signed(gain, soaked + compared, gain.refusal)

    def outputs(self) -> dict[int, Bytes]:
        """What a launch of the original leaves, by the number of the argument."""
        self._reopen()
        return self._worker.outputs(self._patience(1))

    def close(self) -> None:
        """End the process on the GPU; the next question would start another one."""
        self._worker.close()

    def _admit(self, schedule: Schedule) -> bytes:
        """The cubin of a schedule, certified, and seen to compute what the original computes."""
        if schedule.key in self._failures:
            raise CandidateError(self._failures[schedule.key], schedule.key)
        cubin = schedule.apply(self.kernel.cubin)
        if schedule.key not in self._admitted:
            try:
                self._checker.check(cubin)
            except Refusal as refusal:
                raise self._fail(schedule, f"is not certified: {refusal}") from refusal
            difference = self._asked(schedule, lambda: self._worker.check(cubin.data, self._patience(1)))
            if difference is not None:
                self._blame(schedule, difference)
            self._admitted.add(schedule.key)
        return cubin.data

    def _measure(self, old: Schedule, new: Schedule) -> tuple[MeasuredGain, int]:
        """The gain, and after how many of the new one's launches outputs were compared."""
        cubins = self._admit(old), self._admit(new), self._admit(old)
        sittings = self._race(new, cubins, SITTINGS, SITTING_ROUNDS)
        readings = [reading for sitting in sittings for reading in sitting.readings]
        gain = judge([sitting.times for sitting in sittings], Conditions.of(readings))
        return gain, sum(sitting.compared == 1 for sitting in sittings)

    def _signed(self, gain: MeasuredGain, compared: int, refusal: str | None) -> MeasuredGain:
        """With where and how it was measured."""
        return replace(
            gain,
            refusal=refusal,
            gpu=self.gpu.name,
            arch=self.gpu.arch,
            l2=self.kernel.l2,
            method=_method(self.ready),
            compared=compared,
        )

    def _race(
        self,
        candidate: Schedule,
        cubins: tuple[bytes, ...],
        sittings: int,
        rounds: int,
        l2: L2 | None = None,
    ) -> list[Sitting]:
        """The second cubin is the candidate's."""
        found = []
        for _ in range(sittings):
            self._sittings += 1
            number, launches = self._sittings, 2 * rounds * len(cubins) * self.ready.batch
            sitting = self._asked(
                candidate,
                lambda: self._worker.sit(cubins, rounds, number, self._patience(launches), l2),  # noqa: B023
            )
            if sitting.difference is not None and sitting.compared == 1:
                self._blame(candidate, f"after it was timed, {sitting.difference}")
            found.append(sitting)
        return found

    def _soak(self, schedule: Schedule) -> int | str:
        """How many launches were compared; or why nothing can be claimed, for the original is no better."""
        cubin = self._admit(schedule)
        patience = self._patience(2 * SOAK) + SOAK_SECONDS

        def of_original() -> Soak:
            return self._worker.soak(None, SOAK, SOAK_SECONDS, patience)

        try:
            soak = self._asked(
                schedule, lambda: self._worker.soak(cubin, SOAK, SOAK_SECONDS, patience), of_original
            )
            if not soak.differing:
                return soak.compared
            own = self._asked(schedule, of_original, of_original)
        except _OriginalError as error:
            return str(error)
        if own.differing:
            return (
                f"outputs of the original itself differ in {own.differing} of {own.compared:,} launches, of "
                f"the new schedule in {soak.differing} of {soak.compared:,} ({own.first}); try another GPU"
            )
        raise self._fail(
            schedule,
            f"computes something else in {soak.differing} of {soak.compared:,} launches: {soak.first}",
        )

    def _blame(self, schedule: Schedule, difference: str) -> None:
        """Outputs differ: run the original again, and raise unless it differs from itself as well."""
        patience = self._patience(2 * _DOUBTED) + SOAK_SECONDS
        own = self._asked(schedule, lambda: self._worker.soak(None, _DOUBTED, SOAK_SECONDS, patience))
        if not own.differing:
            raise self._fail(schedule, f"does not compute what the original does: {difference}")

    def _asked(
        self,
        schedule: Schedule,
        question: Callable[[], Answer],
        again: Callable[[], object] = lambda: None,
    ) -> Answer:
        """Ask the GPU about a schedule. If that fails the original is run again, as it always is on opening,
        and by `again`: only where that works, and nothing else is to blame, the schedule is."""
        trouble = ""
        for attempt in range(_ATTEMPTS):
            time.sleep(attempt * self.pause)
            self._reopen()
            try:
                return question()
            except WorkerError as error:
                trouble = str(error)
                self._reopen()
                if not error.is_elsewhere:
                    self._try_original(again)
                    raise self._fail(schedule, f"does not run: {error}") from error
        raise CuasmrlError(
            f"{self.device} ({self.gpu.name}) fails whatever runs on it: {trouble}; free it, look at "
            "nvidia-smi, and continue with --resume"
        )

    def _try_original(self, again: Callable[[], object]) -> None:
        try:
            again()
        except WorkerError as error:
            self._reopen()
            raise _OriginalError(f"the original itself fails on {self.device}: {error}") from error

    def _open(self) -> Ready:
        try:
            return self._worker.open(self._opening)
        except WorkerError as error:
            what = f"{self.kernel.cubin.source} does not run on {self.device} ({self.gpu.name}) as it is"
            raise CuasmrlError(f"{what}: {error}") from error

    def _reopen(self) -> None:
        """Start again after a failure; times stay relative to what was learnt first."""
        if self._worker.is_open:
            return
        for attempt in range(_ATTEMPTS):
            time.sleep(attempt * self.pause)
            try:
                self._worker.open(self._opening)
                return
            except WorkerError as error:
                trouble = str(error)
        raise CuasmrlError(
            f"{self.device} ({self.gpu.name}) does not run the original any more: {trouble}; look at "
            "nvidia-smi, and continue with --resume"
        )

    def _patience(self, launches: int) -> float:
        return self.patience + _SLOWER * launches * self.ready.time / 1e6

    def _fail(self, schedule: Schedule, reason: str) -> CandidateError:
        sentence = f"schedule {schedule.digest[:12]} of {self.kernel.cubin.source} {reason}"
        self._failures[schedule.key] = sentence
        return CandidateError(sentence, schedule.key)


def _method(ready: Ready) -> str:
    if ready.by_activity:
        return "CUPTI"
    return "events in graphs" if ready.by_graphs else "events"


def _check_arch(kernel: LaunchedKernel, gpu: Gpu) -> None:
    """Code runs on GPUs of its own major version whose minor version is not earlier."""
    arch = kernel.cubin.arch
    if arch // 10 != gpu.arch // 10 or arch > gpu.arch:
        raise CuasmrlError(
            f"{kernel.cubin.source} is compiled for sm_{arch}, which cuda:{gpu.ordinal} ({gpu.name}, "
            f"sm_{gpu.arch}) cannot run; compile it for sm_{gpu.arch}, or {INSTEAD}"
        )


def _check_launch(kernel: LaunchedKernel, launch: Launch) -> None:
    if not isinstance(kernel, TracedKernel):
        return
    traced = kernel.trace.header
    if (launch.grid, launch.block) != (traced.grid, traced.block):
        raise CuasmrlError(
            f"{kernel.cubin.source} was traced with grid {traced.grid} and block {traced.block}, but the "
            f"launch has {launch.grid} and {launch.block}; time the launch that was traced"
        )
