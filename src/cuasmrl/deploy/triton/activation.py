"""Switch cuasmrl on and off in the Triton of this process: for all kernels, or for decorated ones."""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeVar, overload

from cuasmrl.deploy.store import Store
from cuasmrl.deploy.store.allowed import asked_for
from cuasmrl.deploy.triton.compiler import backend_class
from cuasmrl.deploy.triton.lookup import Lookup
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
    lookup: Lookup = field(repr=False)
    names: set[str] | None
    """Of the decorated functions; None if all kernels are meant."""
    hooks: tuple[Hook, ...] = field(default=(), repr=False)

    @property
    def store(self) -> Store:
        return self.lookup.store

    def covers(self, kernel: str) -> bool:
        # A kernel's name is that of its function, or begins with it where its author adds the config. One too
        # many does no harm: what is used is decided by the code itself.
        return self.names is None or any(kernel.startswith(name) for name in self.names)

    def scope(self) -> str:
        return "all" if self.names is None else "+".join(sorted(self.names))

    def __str__(self) -> str:
        more = " and modelled results" if self.lookup.modelled else ""
        return f"mode {self.mode} with the store {self.store.root}{more}"


_lock = threading.RLock()
_current: Installation | None = None


def installation() -> Installation | None:
    """What is in force, if anything is."""
    return _current


def install(
    mode: str = Mode.DEPLOY,
    *,
    store: Store | str | Path | None = None,
    modelled: bool | None = None,
    agent: str | None = None,
    budget: int | None = None,
) -> bool:
    """Cover every kernel that Triton compiles in this process from now on, torch.compile included.

    On a GPU what is used was measured on one of its kind; with `modelled` also what only the virtual GPU has
    timed (by default as $CUASMRL_MODELLED says). True if it is in force. Where it cannot be, a warning says
    why and everything stays as it was. `agent` and `budget` are those of the mode optimize.
    """
    asked = _Asked(mode_named(mode), _store(store), modelled, _play_settings(agent, budget))
    return _switch_on(asked, None)


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
    modelled: bool | None = ...,
    agent: str | None = ...,
    budget: int | None = ...,
) -> Callable[[Kernel], Kernel]: ...
def jit(
    kernel: Any = None,
    *,
    mode: str = Mode.DEPLOY,
    store: Store | str | Path | None = None,
    modelled: bool | None = None,
    agent: str | None = None,
    budget: int | None = None,
) -> Any:
    """Cover one kernel: a decorator above `@triton.jit` or `@triton.autotune` that gives it back.

    The settings are those of `install`.
    """
    asked = _Asked(mode_named(mode), _store(store), modelled, _play_settings(agent, budget))

    def cover(kernel: Any) -> Any:
        _switch_on(asked, {_name(kernel)})
        return kernel

    return cover if kernel is None else cover(kernel)


@dataclass(frozen=True)
class _Asked:
    mode: Mode
    store: Store
    modelled: bool | None
    """None if it was not said."""
    play: dict[str, Any]

    def installation(self, names: set[str] | None) -> Installation:
        modelled = asked_for(os.environ) if self.modelled is None else self.modelled
        return Installation(self.mode, Lookup(self.store, modelled), names)


def _switch_on(asked: _Asked, names: set[str] | None) -> bool:
    global _current  # noqa: PLW0603, there is one Triton in a process
    with _lock:
        if _current is not None:
            return _extend(_current, asked, names)
        made = asked.installation(names)
        try:
            hooks = _hooks(made, asked.play)
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


def _extend(current: Installation, asked: _Asked, names: set[str] | None) -> bool:
    modelled = current.lookup.modelled
    wanted = asked.mode, asked.store.root, modelled if asked.modelled is None else asked.modelled
    if (current.mode, current.store.root, modelled) != wanted:
        return _refused(
            f"{current} is in force already, so {asked.installation(names)} is not; call cuasmrl.uninstall() "
            "first",
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
        stage = CubinStage(backend, made.lookup, made.scope, made.covers)
        return (stage, *(_hooks_for_all(made) if made.names is None else ()))
    from cuasmrl.deploy.triton.launches import LaunchHook
    from cuasmrl.deploy.triton.recording import Recorder

    keep = Recorder(made.lookup)
    if made.mode is Mode.OPTIMIZE:
        from cuasmrl.deploy.triton.playing import Player

        return (LaunchHook(Player(keep, **play), made.covers),)
    return (LaunchHook(keep, made.covers),)


def _hooks_for_all(made: Installation) -> tuple[Hook, ...]:
    """A decorator is about kernels that this process compiles; other processes get all or nothing."""
    return (WorkerSettings(made.mode, made.lookup),) if made.mode is Mode.DEPLOY else ()


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
