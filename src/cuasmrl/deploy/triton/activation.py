"""Switch cuasmrl on and off in the Triton of this process: for all kernels, or for decorated ones."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeVar, overload

from cuasmrl.deploy.store import Store
from cuasmrl.deploy.triton.compiler import backend_class
from cuasmrl.deploy.triton.modes import Mode, mode_named
from cuasmrl.deploy.triton.stage import CubinStage, is_hooked
from cuasmrl.deploy.triton.workers import WorkerSettings
from cuasmrl.errors import CuasmrlError

Kernel = TypeVar("Kernel")


class Hook(Protocol):
    def put_in(self) -> None: ...

    def take_out(self) -> None: ...


@dataclass(eq=False)
class Installation:
    """What is in force in this process."""

    mode: Mode
    store: Store = field(repr=False)
    names: set[str] | None
    """Of the decorated functions; None if all kernels are meant."""
    hooks: tuple[Hook, ...] = field(default=(), repr=False)

    def covers(self, kernel: str) -> bool:
        # A kernel's name is that of its function, or begins with it where its author adds the config. One too
        # many does no harm: what is used is decided by the code itself.
        return self.names is None or any(kernel.startswith(name) for name in self.names)

    def scope(self) -> str:
        return "all" if self.names is None else "+".join(sorted(self.names))


_lock = threading.RLock()
_current: Installation | None = None


def installation() -> Installation | None:
    """What is in force, if anything is."""
    return _current


def install(
    mode: str = Mode.DEPLOY,
    *,
    store: Store | str | Path | None = None,
    agent: str | None = None,
    budget: int | None = None,
) -> bool:
    """Cover every kernel that Triton compiles in this process from now on, torch.compile included.

    True if it is in force. Where it cannot be, a warning says why and everything stays as it was. `agent`
    and `budget` are those of the mode optimize.
    """
    return _switch_on(mode_named(mode), _store(store), None, _play_settings(agent, budget))


def uninstall() -> None:
    """Give Triton its own methods back; kernels that are loaded stay as they are."""
    global _current  # noqa: PLW0603, there is one Triton in a process
    with _lock:
        if _current is not None:
            for hook in reversed(_current.hooks):
                hook.take_out()
            _current = None


@overload
def jit(kernel: Kernel) -> Kernel: ...
@overload
def jit(
    *,
    mode: str = ...,
    store: Store | str | Path | None = ...,
    agent: str | None = ...,
    budget: int | None = ...,
) -> Callable[[Kernel], Kernel]: ...
def jit(
    kernel: Any = None,
    *,
    mode: str = Mode.DEPLOY,
    store: Store | str | Path | None = None,
    agent: str | None = None,
    budget: int | None = None,
) -> Any:
    """Cover one kernel: a decorator above `@triton.jit` or `@triton.autotune` that gives it back."""
    chosen, place, play = mode_named(mode), _store(store), _play_settings(agent, budget)

    def cover(kernel: Any) -> Any:
        _switch_on(chosen, place, {_name(kernel)}, play)
        return kernel

    return cover if kernel is None else cover(kernel)


def _switch_on(mode: Mode, store: Store, names: set[str] | None, play: dict[str, Any]) -> bool:
    global _current  # noqa: PLW0603, there is one Triton in a process
    with _lock:
        if _current is not None:
            return _extend(_current, mode, store, names)
        made = Installation(mode, store, names)
        try:
            hooks = _hooks(made, play)
        except CuasmrlError as error:
            return _refused(str(error))
        _put_in(made, hooks)
        _current = made
        return True


def _put_in(made: Installation, hooks: tuple[Hook, ...]) -> None:
    """All of them or none."""
    done = made.hooks
    try:
        for hook in hooks:
            hook.put_in()
            made.hooks = (*made.hooks, hook)
    except BaseException:
        for hook in reversed(made.hooks[len(done) :]):
            hook.take_out()
        made.hooks = done
        raise


def _extend(current: Installation, mode: Mode, store: Store, names: set[str] | None) -> bool:
    if (current.mode, current.store.root) != (mode, store.root):
        return _refused(
            f"mode {current.mode} with the store {current.store.root} is in force already, so mode {mode} "
            f"with {store.root} is not; call cuasmrl.uninstall() first",
            what="the first one stays",
        )
    if current.names is not None and names is not None:
        current.names |= names
    elif current.names is not None:
        _put_in(current, _hooks_for_all(current))
        current.names = None
    return True


def _hooks(made: Installation, play: dict[str, Any]) -> tuple[Hook, ...]:
    backend = backend_class()
    if is_hooked(backend):
        raise CuasmrlError("another copy of cuasmrl is at work in this process; remove one of them")
    if made.mode is Mode.DEPLOY:
        stage = CubinStage(backend, made.store, made.scope, made.covers)
        return (stage, *(_hooks_for_all(made) if made.names is None else ()))
    from cuasmrl.deploy.triton.launches import LaunchHook
    from cuasmrl.deploy.triton.recording import Recorder

    keep = Recorder(made.store)
    if made.mode is Mode.OPTIMIZE:
        from cuasmrl.deploy.triton.playing import Player

        return (LaunchHook(Player(keep, **play), made.covers),)
    return (LaunchHook(keep, made.covers),)


def _hooks_for_all(made: Installation) -> tuple[Hook, ...]:
    """A decorator is about kernels that this process compiles; other processes get all or nothing."""
    return (WorkerSettings(made.mode, made.store),) if made.mode is Mode.DEPLOY else ()


def _refused(why: str, what: str = "kernels stay as compiled") -> bool:
    warnings.warn(f"cuasmrl: {why}; {what}", RuntimeWarning, stacklevel=4)
    return False


def _store(given: Store | str | Path | None) -> Store:
    return given if isinstance(given, Store) else Store(Path(given) if given is not None else None)


def _play_settings(agent: str | None, budget: int | None) -> dict[str, Any]:
    return {name: value for name, value in (("agent", agent), ("budget", budget)) if value is not None}


def _name(kernel: Any) -> str:
    """Of the function at the bottom: autotuners and heuristics hold what they decorate as `fn`."""
    if not hasattr(kernel, "run"):
        raise CuasmrlError(
            f"cuasmrl.jit goes above @triton.jit, and was given {kernel!r}; put @triton.jit between the two"
        )
    function = kernel
    while hasattr(function, "fn"):
        function = function.fn
    return str(function.__name__)
