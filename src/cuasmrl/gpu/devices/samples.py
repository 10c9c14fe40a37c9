"""Single times of launches on a GPU, each under a state of L2 that has a name.

A sample is queued whole (buffers restored, L2 flushed, launches) while the GPU still works on what comes
before, so that no time of the host is in it. Where CUPTI works, the GPU's own record of a kernel is taken;
else what lies between two events, which holds the GPU's cost of starting the kernel as well. Samples of
several launches of a short kernel are graphs, in which that cost is smaller.
"""

from __future__ import annotations

from collections.abc import Sequence

from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.devices.activity import Activity
from cuasmrl.gpu.devices.buffers import Buffers
from cuasmrl.gpu.devices.driver import Address, Driver, Event, Function, Stream, Together
from cuasmrl.gpu.devices.packed import PackedLaunch
from cuasmrl.gpu.timing import L2

_LEAST_FLUSH = 64 << 20
_MOST_FLUSHES = 64
_ATTEMPTS = 16


class Sampler:
    """Launches one kernel on one stream."""

    def __init__(
        self,
        driver: Driver,
        packed: PackedLaunch,
        buffers: Buffers,
        stream: Stream,
        l2_bytes: int = 0,
        activity: Activity | None = None,
    ) -> None:
        self._driver, self._packed, self._stream = driver, packed, stream
        self.buffers = buffers
        self._flush_bytes = max(2 * l2_bytes, _LEAST_FLUSH)
        self._flush: Address | None = None
        self._flushes = 1
        self._events: list[tuple[Event, Event]] = []
        self.activity = activity
        self.batch = 1
        """Launches in a sample."""
        self._together = Together(packed.cooperative, packed.cluster)
        self.may_repeat = False
        """May launches follow each other without anything being restored between them?"""

    def launch(self, function: Function) -> None:
        """And wait for its end."""
        self.queue(function)
        self._driver.synchronize(self._stream)

    def queue(self, function: Function) -> None:
        packed = self._packed
        self._driver.launch(
            function,
            packed.grid,
            packed.block,
            packed.shared_bytes,
            self._stream,
            self.buffers.parameters,
            self._together,
        )

    def flush(self) -> None:
        """Overwrite L2; as often as the host needs to queue what comes next."""
        for _ in range(self._flushes):
            self._driver.fill(self._flushed(), 0, self._flush_bytes, self._stream)

    def _flushed(self) -> Address:
        if self._flush is None:
            self._flush = self._driver.allocate(self._flush_bytes)
        return self._flush

    def round(self, functions: Sequence[Function], order: Sequence[int], l2: L2) -> list[float]:
        """Microseconds of a launch of each function; they run in this order."""
        way = self._by_activity if self.activity is not None else self._by_events
        for _ in range(_ATTEMPTS):
            times = way([functions[number] for number in order], l2)
            if times is not None:
                return [times[order.index(number)] for number in range(len(functions))]
        raise CuasmrlError(
            "CUPTI does not record every launch, so they cannot be timed; end other profilers and try again"
            if self.activity is not None
            else "this process is too slow to keep the GPU busy, so launches cannot be timed; "
            "free a processor core and try again"
        )

    def _by_activity(self, functions: Sequence[Function], l2: L2) -> list[float] | None:
        assert self.activity is not None
        self.activity.durations()
        for function in functions:
            self._prepare(function, l2)
            self.queue(function)
        self._driver.synchronize(self._stream)
        found = self.activity.durations()
        # Before a launch with a warm L2 there is another one, which warms it.
        each = 1 if l2 is L2.COLD else 2
        return found[each - 1 :: each] if len(found) == each * len(functions) else None

    def _by_events(self, functions: Sequence[Function], l2: L2) -> list[float] | None:
        """None if the GPU was faster than the host in one of them."""
        # What is warm after one launch is as warm after the next; a cold one has to be made cold each time.
        back_to_back = self.may_repeat and l2 is not L2.COLD
        stretches, launches = (1, self.batch) if back_to_back else (self.batch, 1)
        while len(self._events) < len(functions) * stretches:
            self._events.append((self._driver.create_event(), self._driver.create_event()))
        events, in_time = iter(self._events), True
        if self.by_graphs:
            self._run_graphs(
                [[next(events) for _ in range(stretches)] for _ in functions], functions, launches, l2
            )
        else:
            for function in functions:
                for _ in range(stretches):
                    self._stretch(function, launches, l2, *(pair := next(events)))
                    in_time &= not self._driver.has_happened(pair[0])
            self._driver.synchronize(self._stream)
        if not in_time:
            # More to do for the GPU before a sample gives the host more time to queue it.
            self._flushes = min(2 * self._flushes, _MOST_FLUSHES)
            return None
        spent = [self._driver.elapsed(*pair) for pair in self._events[: len(functions) * stretches]]
        return [sum(spent[k * stretches : (k + 1) * stretches]) / self.batch for k in range(len(functions))]

    @property
    def by_graphs(self) -> bool:
        """Is a sample of several launches one graph? Then the host queues it at once, and less of what it
        costs the GPU to start a kernel lies between two events."""
        return self.activity is None and self._driver.graphs and self.batch > 1

    def _run_graphs(
        self,
        events: Sequence[Sequence[tuple[Event, Event]]],
        functions: Sequence[Function],
        launches: int,
        l2: L2,
    ) -> None:
        """A graph for each function, with all its stretches."""
        self._flushed()  # Nothing can be allocated while a stream is captured.
        graphs = []
        for function, pairs in zip(functions, events, strict=True):
            self._driver.begin_capture(self._stream)
            for pair in pairs:
                self._stretch(function, launches, l2, *pair)
            graphs.append(self._driver.end_capture(self._stream))
        for graph in graphs:
            self._driver.run_graph(graph, self._stream)
        self._driver.synchronize(self._stream)
        for graph in graphs:
            self._driver.drop_graph(graph)

    def _stretch(self, function: Function, launches: int, l2: L2, begin: Event, end: Event) -> None:
        """Launches between two events."""
        self._prepare(function, l2)
        self._driver.record(begin, self._stream)
        for _ in range(launches):
            self.queue(function)
        self._driver.record(end, self._stream)

    def _prepare(self, function: Function, l2: L2) -> None:
        if l2 is L2.COLD:
            self.buffers.restore()
            self.flush()
        else:
            # Warm is what the launch before left there: more a GPU cannot be made to hold.
            self.flush()
            self.buffers.restore()
            self.queue(function)
            self.buffers.restore()
