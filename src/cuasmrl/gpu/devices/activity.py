"""Kernels as the GPU itself notes their start and end: CUPTI's activity records, by NVIDIA's `cupti-python`.

What lies between two events holds the cost of starting a kernel too, which for short ones is much of it.
Nothing is loaded before `open_activity` is called; the package is in the extra `gpu`.
"""

from __future__ import annotations

from typing import Any, Protocol

_BUFFER_BYTES = 8 << 20
_FORCED = 1
"""Of a flush: buffers come back that are not full."""


class Activity(Protocol):
    def durations(self) -> list[float]:
        """Microseconds of the kernels since the last call, in the order of their start; all must be over."""


class Cupti:
    def __init__(self, cupti: Any) -> None:
        self._cupti = cupti
        self._kernels: list[tuple[int, int]] = []
        cupti.activity_register_callbacks(lambda: (_BUFFER_BYTES, 0), self._completed)
        cupti.activity_enable(cupti.ActivityKind.CONCURRENT_KERNEL)

    def durations(self) -> list[float]:
        self._cupti.activity_flush_all(_FORCED)
        kernels, self._kernels = sorted(self._kernels), []
        return [(end - start) / 1e3 for start, end in kernels]

    def _completed(self, activities: list[Any]) -> None:
        kind = self._cupti.ActivityKind.CONCURRENT_KERNEL
        self._kernels += [(one.start, one.end) for one in activities if one.kind == kind]


def open_activity() -> Cupti | None:
    """None if the package is missing, or CUPTI refuses: a profiler may hold it, or the driver forbid it."""
    try:
        from cupti import cupti

        return Cupti(cupti)
    except Exception:
        # Compiled code in front of a library: without a driver or with another one it raises what it likes.
        return None
