"""Launches seen on their way from Triton to the device, those of the autotuner left out.

A kernel that is loaded while the hook is in gets a launcher around its own. Kernels that were loaded before
are not seen.
"""

from __future__ import annotations

import functools
import importlib
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol


@dataclass(frozen=True, eq=False)
class Seen:
    """One launch, before it happens."""

    kernel: Any = field(repr=False)
    """Triton's kernel object."""
    grid: tuple[int, int, int]
    values: tuple[Any, ...] = field(repr=False)
    """All arguments of the Triton function, constants too."""


class Observer(Protocol):
    def loading(self, kernel: Any) -> bool:
        """Is it one whose launches are of interest? Called before it is loaded."""

    def before(self, seen: Seen) -> Any:
        """A note for `after`, or None if the launch is of no interest."""

    def after(self, seen: Seen, note: Any) -> object: ...


class LaunchHook:
    """Shows launches to an observer. It cannot break one: what goes wrong is said once."""

    def __init__(self, observer: Observer, covers: Callable[[str], bool]) -> None:
        self._observer = observer
        self._covers = covers
        self._tuning = threading.local()
        self._watched: weakref.WeakSet[Any] = weakref.WeakSet()
        self._told: set[str] = set()

    def put_in(self) -> None:
        self._kernel_class = importlib.import_module("triton.compiler").CompiledKernel
        self._tuner_class = importlib.import_module("triton.runtime.autotuner").Autotuner
        self._load, self._bench = self._kernel_class._init_handles, self._tuner_class._bench

        @functools.wraps(self._load)
        def load(kernel: Any) -> None:
            is_new = kernel.module is None and self._covers(kernel.name)
            watched = False
            if is_new:
                with self._saying_what_fails(kernel.name):
                    watched = self._observer.loading(kernel)
            self._load(kernel)
            if watched:
                kernel._run = _Launcher(kernel, self)
                self._watched.add(kernel)

        @functools.wraps(self._bench)
        def bench(tuner: Any, *rest: Any, **named: Any) -> Any:
            with self._looking_away():
                return self._bench(tuner, *rest, **named)

        self._kernel_class._init_handles, self._tuner_class._bench = load, bench

    def take_out(self) -> None:
        self._kernel_class._init_handles, self._tuner_class._bench = self._load, self._bench
        for kernel in self._watched:
            if isinstance(kernel._run, _Launcher):
                kernel._run = kernel._run.inner

    def launch(self, inner: Any, kernel: Any, arguments: tuple[Any, ...]) -> Any:
        # Sizes of the grid, stream, function, metadata of kernel and launch, two hooks; then the values.
        seen = Seen(kernel, arguments[:3], arguments[9:])
        note = None
        if not getattr(self._tuning, "depth", 0) and not _is_captured():
            with self._saying_what_fails(kernel.name):
                note = self._observer.before(seen)
        given = inner(*arguments)
        if note is not None:
            with self._saying_what_fails(kernel.name):
                self._observer.after(seen, note)
        return given

    @contextmanager
    def _looking_away(self) -> Iterator[None]:
        self._tuning.depth = getattr(self._tuning, "depth", 0) + 1
        try:
            yield
        finally:
            self._tuning.depth -= 1

    @contextmanager
    def _saying_what_fails(self, name: str) -> Iterator[None]:
        try:
            # What the observer launches itself is of no interest.
            with self._looking_away():
                yield
        except Exception as error:
            sentence = f"cuasmrl: launches of {name} are not recorded: {error}"
            if sentence not in self._told:
                self._told.add(sentence)
                print(sentence, file=sys.stderr)


def _is_captured() -> bool:
    """Does the launch go into a CUDA graph? Looking at buffers would spoil it."""
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    return bool(cuda is not None and cuda.is_available() and cuda.is_current_stream_capturing())


class _Launcher:
    """Triton's launcher of one kernel, watched; in all else it is the one inside."""

    def __init__(self, kernel: Any, hook: LaunchHook) -> None:
        self.inner = kernel._run
        # The kernel holds its launcher, so the launcher must not hold the kernel.
        self._kernel = weakref.ref(kernel)
        self._hook = hook

    def __call__(self, *arguments: Any) -> Any:
        kernel = self._kernel()
        if kernel is None:
            return self.inner(*arguments)
        return self._hook.launch(self.inner, kernel, arguments)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)
