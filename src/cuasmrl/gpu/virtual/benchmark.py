"""Time for code that measures: the autotuner, and Triton's benchmark functions.

It is the time of the SM model: modelled cycles over the clock of the chip. Launches are timed only while
somebody looks at the clock.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

_PICOSECONDS_IN_A_MILLISECOND = 10**9
_REST = 10**5 * _PICOSECONDS_IN_A_MILLISECOND
"""Triton repeats a benchmark until some hundred milliseconds have gone by, cleaning of caches included, and
leaves that out of the figures. Here every repetition gives the same, so one has to be enough."""


def benchmark(
    kernel_call: Callable[[], Any], quantiles: Sequence[float] | None = None, **options: Any
) -> float | list[float]:
    """What one call takes in milliseconds, once for each quantile if they are given.

    Takes what `triton.testing.do_bench` takes; how often to repeat makes no difference here. Launches are
    timed and not carried out: what a kernel leaves in memory while it is tuned is nothing to rely on anyway.
    """
    from triton.runtime import driver

    from cuasmrl.gpu.virtual.driver import VirtualDriver

    device = driver.active
    if not isinstance(device, VirtualDriver):
        # An autotuner keeps the function it was first given, also when the virtual GPU has gone.
        figures: float | list[float] = device.get_benchmarker()(kernel_call, quantiles=quantiles, **options)
        return figures
    with device.clock.timing_alone():
        start = device.clock.now
        kernel_call()
        figure = (device.clock.now - start) / _PICOSECONDS_IN_A_MILLISECOND
    if quantiles is not None:
        return [figure] * len(quantiles)
    return [figure] if options.get("return_mode") == "all" else figure


class Clock:
    """`torch.cuda` as far as Triton's benchmark functions use it; time passes only in launches."""

    def __init__(self, device: int, clock_khz: int) -> None:
        self.now = 0
        """In picoseconds, so that a launch takes the same whenever it comes."""
        self.only_times = False
        """Are launches timed and not carried out?"""
        self._device = device
        self._clock_khz = clock_khz
        self._events: weakref.WeakSet[Event] = weakref.WeakSet()

    @property
    def is_watched(self) -> bool:
        return self.only_times or bool(self._events)

    def advance(self, cycles: float) -> None:
        self.now += round(cycles * _PICOSECONDS_IN_A_MILLISECOND / self._clock_khz)

    def rest(self) -> None:
        """Time in which nothing runs."""
        self.now += _REST

    @contextmanager
    def timing_alone(self) -> Iterator[None]:
        outer, self.only_times = self.only_times, True
        try:
            yield
        finally:
            self.only_times = outer

    def Event(self, enable_timing: bool = False, **options: Any) -> Event:  # noqa: N802, torch's name
        event = Event(self)
        if enable_timing:
            self._events.add(event)
        return event

    def synchronize(self, device: Any = None) -> None:
        """Every launch has finished when it returns."""

    def current_device(self) -> int:
        return self._device


class Event:
    """A point between launches."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._at = 0

    def record(self, stream: Any = None) -> None:
        self._at = self._clock.now

    def synchronize(self) -> None:
        """Every launch has finished when it returns."""

    def elapsed_time(self, end: Event) -> float:
        return (end._at - self._at) / _PICOSECONDS_IN_A_MILLISECOND
