"""What a GPU says of itself while kernels are timed on it: clocks, power, temperature, reasons to slow down.

NVIDIA's `nvidia-ml-py` asks for it, from the extra `gpu`. Nothing is loaded before `open_monitor` is called.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Protocol

from cuasmrl.errors import CuasmrlError

REASONS = {
    0x04: "power cap",
    0x08: "hardware slowdown",
    0x20: "thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "power brake",
}
"""Bits of nvml.h that say that a GPU runs slower than it was asked to. The others say that it is idle, or
that somebody chose its clocks."""
THROTTLED = 0.05
"""Share of rounds under one of these from which on nothing is claimed."""
_WANDERING = 0.02
"""Spread of the SM clock, relative to its median, from which on it is worth locking."""


@dataclass(frozen=True)
class Reading:
    """One look; None where this GPU does not say."""

    sm_mhz: int | None = None
    memory_mhz: int | None = None
    watts: float | None = None
    celsius: int | None = None
    throttle: tuple[str, ...] = ()


class Monitor(Protocol):
    def read(self) -> Reading: ...

    def lock(self) -> int:
        """Keep the SM clock at what the GPU calls its default for applications; gives it in MHz.

        It outlasts this process: `nvidia-smi -rgc` lets the clock go again.
        """


@dataclass(frozen=True)
class Conditions:
    """Readings of a measurement, one a round, by column."""

    sm_mhz: tuple[int | None, ...]
    memory_mhz: tuple[int | None, ...]
    watts: tuple[float | None, ...]
    celsius: tuple[int | None, ...]
    throttled: tuple[tuple[str, ...], ...]

    @staticmethod
    def of(readings: Sequence[Reading]) -> Conditions | None:
        """None if nobody looked."""
        if not readings:
            return None
        return Conditions(
            tuple(one.sm_mhz for one in readings),
            tuple(one.memory_mhz for one in readings),
            tuple(one.watts for one in readings),
            tuple(one.celsius for one in readings),
            tuple(one.throttle for one in readings),
        )

    @property
    def refusal(self) -> str | None:
        """Why nothing can be claimed under them."""
        slowed = [reasons for reasons in self.throttled if reasons]
        if not slowed or len(slowed) < THROTTLED * len(self.throttled):
            return None
        reasons = Counter(reason for each in slowed for reason in each)
        return (
            f"the GPU slowed itself down in {len(slowed)} of {len(self.throttled)} rounds "
            f"({', '.join(sorted(reasons))}); {ADVICE}"
        )

    @property
    def is_wandering(self) -> bool:
        """Does the SM clock change enough to be worth locking?"""
        known = [mhz for mhz in self.sm_mhz if mhz is not None]
        return bool(known) and max(known) - min(known) > _WANDERING * median(known)

    @property
    def sentence(self) -> str:
        """For people."""
        columns = (
            ("SM clock", "MHz", self.sm_mhz), ("power", "W", self.watts), ("temperature", "C", self.celsius)
        )  # fmt: skip
        told = [f"{what} {_range(column)} {unit}" for what, unit, column in columns if _known(column)]
        return ", ".join(told) if told else "it says nothing of clocks, power and temperature"


ADVICE = "lock its clocks lower (`cuasmrl doctor --gpu --lock-clocks`, or nvidia-smi -lgc MHZ), or cool it"


def _known(column: Iterable[float | None]) -> list[float]:
    return [value for value in column if value is not None]


def _range(column: Iterable[float | None]) -> str:
    known = _known(column)
    low, high = round(min(known)), round(max(known))
    return str(low) if low == high else f"{low} to {high}"


class Nvml:
    """A GPU as the management library knows it."""

    def __init__(self, nvml: Any, handle: Any) -> None:
        self._nvml, self._handle = nvml, handle

    def read(self) -> Reading:
        nvml, handle = self._nvml, self._handle
        milliwatts = self._asked(lambda: nvml.nvmlDeviceGetPowerUsage(handle))
        bits = self._asked(lambda: nvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle)) or 0
        return Reading(
            self._asked(lambda: nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM)),
            self._asked(lambda: nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_MEM)),
            None if milliwatts is None else milliwatts / 1000,
            self._asked(lambda: nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU)),
            tuple(name for bit, name in REASONS.items() if bits & bit),
        )

    def lock(self) -> int:
        nvml, handle = self._nvml, self._handle
        try:
            clock: int = nvml.nvmlDeviceGetDefaultApplicationsClock(handle, nvml.NVML_CLOCK_SM)
            nvml.nvmlDeviceSetGpuLockedClocks(handle, clock, clock)
        except nvml.NVMLError as error:
            raise CuasmrlError(
                f"the clocks cannot be locked: {error}; as root run nvidia-smi -lgc with a clock of "
                "nvidia-smi -q -d SUPPORTED_CLOCKS"
            ) from error
        return clock

    def _asked(self, question: Callable[[], Any]) -> Any:
        """None where this GPU or driver has no answer."""
        try:
            return question()
        except self._nvml.NVMLError:
            return None


def open_monitor(uuid: str) -> Nvml | None:
    """By the GPU's own number: the one that CUDA gives depends on CUDA_VISIBLE_DEVICES. None without NVML."""
    try:
        import pynvml
    except ImportError:
        return None
    try:
        pynvml.nvmlInit()
        return Nvml(pynvml, pynvml.nvmlDeviceGetHandleByUUID(f"GPU-{uuid}"))
    except pynvml.NVMLError:
        return None
