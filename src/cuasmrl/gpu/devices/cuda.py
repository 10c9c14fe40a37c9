"""A real GPU as a timer: candidates race against the original in a process of their own."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from cuasmrl.checker import Checker, Refusal
from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.devices.bench import Ready, Times
from cuasmrl.gpu.devices.device import CandidateError, Rival, time_or_never
from cuasmrl.gpu.devices.driver import INSTEAD, Gpu, load
from cuasmrl.gpu.devices.packed import pack
from cuasmrl.gpu.devices.rounds import MeasuredGain, judge, relative_time
from cuasmrl.gpu.devices.worker import Connect, Worker, WorkerError
from cuasmrl.gpu.launches.launch import Launch
from cuasmrl.gpu.traced import TracedKernel
from cuasmrl.schedule import Schedule

UNIT = "microseconds"
SEARCH_ROUNDS = 15
_FINALISTS = 6
"""Each takes all the races of a confirmation."""
SITTINGS = 8
"""To confirm, cubins are loaded this often, in random order: where their code lies may matter as well."""
SITTING_ROUNDS = 25
PATIENCE = 30.0
"""Seconds beyond what is expected before a launch counts as hung."""
_SLOWER = 10
"""A candidate may be this much slower than the original and will still be waited for."""
_UPLOAD = 50e6
"""Bytes a second at which buffers reach the GPU at worst, by way of the other process."""


def available(connect: Connect = load) -> str | None:
    """Why this machine cannot time kernels on a GPU, in one sentence; None if it can."""
    try:
        connect()
    except CuasmrlError as error:
        return str(error)
    return None


def find(ordinal: int, connect: Connect = load) -> Gpu:
    """The GPU of that number."""
    driver = connect()
    count = driver.devices()
    if not 0 <= ordinal < count:
        known = "the only GPU is cuda:0" if count == 1 else f"the GPUs are cuda:0 to cuda:{count - 1}"
        raise CuasmrlError(f"there is no cuda:{ordinal} on this machine; {known}")
    return driver.gpu(ordinal)


class CudaTimer:
    """Microseconds of a launch. Nothing reaches the GPU that the checker has not certified.

    While searching, a schedule's time is that of the original times the median ratio of a few rounds in which
    both ran, so drift of the clocks is not taken for a gain.
    """

    def __init__(
        self,
        kernel: TracedKernel,
        ordinal: int,
        launch: Launch,
        connect: Connect = load,
        patience: float = PATIENCE,
    ) -> None:
        """`launch` is the one that was traced, with its buffers as they are before it; they are copied."""
        self.kernel = kernel
        self.gpu = find(ordinal, connect)
        _check_arch(kernel, self.gpu)
        _check_launch(kernel, launch)
        self.patience = patience
        self._original = kernel.original
        self._checker = Checker(kernel.cubin)
        self._admitted = {self._original.key}
        self._failures: dict[bytes, str] = {}
        self._races = 0
        packed = pack(kernel.listing.kernel, launch)
        self._opening = patience + 2 * sum(region.data.nbytes for region in packed.regions) / _UPLOAD
        self._worker = Worker(connect, ordinal, packed, kernel.cubin.data)
        self._close = weakref.finalize(self, self._worker.close)
        self.ready = self._open()
        """What was learnt of the original when the GPU first ran it; its time is the unit of all others."""

    @property
    def device(self) -> str:
        return f"cuda:{self.gpu.ordinal}"

    @property
    def unit(self) -> str:
        return UNIT

    def time(self, schedule: Schedule, rival: Rival | None = None) -> float:
        if schedule.key == self._original.key:
            return self.ready.time
        cubin = self._admit(schedule)
        times = self._race(schedule, (self.kernel.cubin.data, cubin), SEARCH_ROUNDS)
        return self.ready.time * relative_time(times)

    def times(self, schedules: Sequence[Schedule], rival: Rival | None = None) -> list[float]:
        """One after the other: they share the GPU."""
        return [time_or_never(self, schedule, rival) for schedule in schedules]

    @property
    def finalists(self) -> int:
        return _FINALISTS

    def pick(self, old: Schedule, candidates: Sequence[Schedule]) -> Schedule:
        """The one that wins races against the old one by most."""
        return max(candidates, key=lambda schedule: self.confirm(old, schedule).median)

    def confirm(self, old: Schedule, new: Schedule) -> MeasuredGain:
        """Races of many rounds between the old one, the new one and a second copy of the old one."""
        cubins = self._admit(old), self._admit(new), self._admit(old)
        times = np.concatenate([self._race(new, cubins, SITTING_ROUNDS) for _ in range(SITTINGS)])
        judged = judge(*(times[:, arm].tolist() for arm in range(3)))
        gain = replace(judged, gpu=self.gpu.name, arch=self.gpu.arch)
        return replace(gain, refusal="both schedules are the same") if old.key == new.key else gain

    def close(self) -> None:
        """End the process on the GPU; the next question would start another one."""
        self._worker.close()

    def _admit(self, schedule: Schedule) -> bytes:
        """The cubin of a schedule, certified, and seen to compute what the original computes."""
        if schedule.key in self._failures:
            raise CandidateError(self._failures[schedule.key])
        cubin = schedule.apply(self.kernel.cubin)
        if schedule.key not in self._admitted:
            try:
                self._checker.check(cubin)
            except Refusal as refusal:
                raise self._fail(schedule, f"is not certified: {refusal}") from refusal
            self._reopen()
            try:
                difference = self._worker.check(cubin.data, self._patience(1))
            except WorkerError as error:
                raise self._fail(schedule, f"does not run: {error}") from error
            if difference is not None:
                raise self._fail(schedule, f"does not compute what the original does: {difference}")
            self._admitted.add(schedule.key)
        return cubin.data

    def _race(self, candidate: Schedule, cubins: tuple[bytes, ...], rounds: int) -> Times:
        self._reopen()
        self._races += 1
        launches = rounds * len(cubins) * self.ready.batch
        try:
            return self._worker.race(cubins, rounds, self._races, self._patience(launches))
        except WorkerError as error:
            raise self._fail(candidate, f"does not run: {error}") from error

    def _open(self) -> Ready:
        try:
            return self._worker.open(self._opening)
        except WorkerError as error:
            what = f"{self.kernel.cubin.source} does not run on {self.device} ({self.gpu.name}) as it is"
            raise CuasmrlError(f"{what}: {error}") from error

    def _reopen(self) -> None:
        """Start again after a failure; times stay relative to what was learnt first."""
        if not self._worker.is_open:
            self._open()

    def _patience(self, launches: int) -> float:
        return self.patience + _SLOWER * launches * self.ready.time / 1e6

    def _fail(self, schedule: Schedule, reason: str) -> CandidateError:
        sentence = f"schedule {schedule.digest[:12]} of {self.kernel.cubin.source} {reason}"
        self._failures[schedule.key] = sentence
        return CandidateError(sentence)


def _check_arch(kernel: TracedKernel, gpu: Gpu) -> None:
    """Code runs on GPUs of its own major version whose minor version is not earlier."""
    arch = kernel.cubin.arch
    if arch // 10 != gpu.arch // 10 or arch > gpu.arch:
        raise CuasmrlError(
            f"{kernel.cubin.source} is compiled for sm_{arch}, which cuda:{gpu.ordinal} ({gpu.name}, "
            f"sm_{gpu.arch}) cannot run; compile it for sm_{gpu.arch}, or {INSTEAD}"
        )


def _check_launch(kernel: TracedKernel, launch: Launch) -> None:
    traced = kernel.trace.header
    if (launch.grid, launch.block) != (traced.grid, traced.block):
        raise CuasmrlError(
            f"{kernel.cubin.source} was traced with grid {traced.grid} and block {traced.block}, but the "
            f"launch has {launch.grid} and {launch.block}; time the launch that was traced"
        )
