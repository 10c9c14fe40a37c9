"""What a launch costs, for code that measures: the autotuner and Triton's benchmark functions.

There is no timing model behind this yet. The figure is the number of warp instructions the emulator
executed: deterministic, good enough to prefer the configuration that does less work, and **not a time**.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from cuasmrl.virtual.device import Result

# Triton repeats a benchmark until some hundred milliseconds have gone by. On the emulator every run gives the
# same figure, so a unit large enough makes one repetition do.
MILLISECONDS_PER_WARP_INSTRUCTION = 1.0


def milliseconds(result: Result) -> float:
    """The figure that stands where a GPU would have a time."""
    return result.warp_instructions * MILLISECONDS_PER_WARP_INSTRUCTION


def benchmark(
    kernel_call: Callable[[], Any], quantiles: Sequence[float] | None = None, **options: Any
) -> float | list[float]:
    """Run once and return the figure, one for each quantile if they are given.

    Takes what `triton.testing.do_bench` takes; how often to repeat makes no difference here.
    """
    from triton.runtime import driver

    from cuasmrl.virtual.driver import VirtualDriver

    device = driver.active
    if not isinstance(device, VirtualDriver):
        # An autotuner keeps the function it was first given, also when the virtual GPU has gone.
        figures: float | list[float] = device.get_benchmarker()(kernel_call, quantiles=quantiles, **options)
        return figures
    start = device.elapsed
    kernel_call()
    figure = device.elapsed - start
    if quantiles is not None:
        return [figure] * len(quantiles)
    return [figure] if options.get("return_mode") == "all" else figure


class Clock:
    """`torch.cuda` as far as Triton's benchmark functions use it; time passes only in launches."""

    def __init__(self, now: Callable[[], float], device: int) -> None:
        self._now = now
        self._device = device

    def Event(self, enable_timing: bool = False, **options: Any) -> Event:  # noqa: N802, torch's name
        return Event(self._now)

    def synchronize(self, device: Any = None) -> None:
        """Every launch has finished when it returns."""

    def current_device(self) -> int:
        return self._device


class Event:
    """A point between launches."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._at = 0.0

    def record(self, stream: Any = None) -> None:
        self._at = self._now()

    def synchronize(self) -> None:
        """Every launch has finished when it returns."""

    def elapsed_time(self, end: Event) -> float:
        return end._at - self._at
