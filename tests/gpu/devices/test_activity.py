"""Records of kernels, from a CUPTI that pretends."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from cuasmrl.gpu.devices.activity import Cupti, open_activity


class Library:
    ActivityKind = SimpleNamespace(CONCURRENT_KERNEL=10, MEMSET=2)

    def __init__(self) -> None:
        self.enabled: list[int] = []
        self.pending: list[Any] = []

    def activity_register_callbacks(
        self, requested: Callable[[], Any], completed: Callable[[Any], None]
    ) -> None:
        size, most = requested()
        assert size >= 1 << 20
        assert most == 0
        self.completed = completed

    def activity_enable(self, kind: int) -> None:
        self.enabled.append(kind)

    def activity_flush_all(self, flag: int) -> None:
        assert flag == 1
        records, self.pending = self.pending, []
        self.completed(records)


def record(start: int, end: int, kind: int = 10) -> SimpleNamespace:
    return SimpleNamespace(kind=kind, start=start, end=end)


def test_kernels_come_in_the_order_of_their_start_and_once() -> None:
    library = Library()
    cupti = Cupti(library)
    assert library.enabled == [10]
    library.pending = [record(9000, 9500), record(1000, 4250), record(100, 900, kind=2)]
    assert cupti.durations() == [3.25, 0.5]
    assert cupti.durations() == []


def test_without_a_driver_there_are_no_records() -> None:
    assert open_activity() is None
