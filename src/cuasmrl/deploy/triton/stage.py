"""The cubin stage of Triton's compiler with a look into the store behind it.

Two methods of the compiler's class are wrapped: `add_stages`, which lists the stages of a compilation, and
`hash`, which goes into the keys of Triton's caches. No cuasmrl code runs at launch.
"""

from __future__ import annotations

import functools
import logging
import warnings
from collections.abc import Callable
from typing import Any

from cuasmrl.deploy.triton.lookup import Lookup
from cuasmrl.errors import CuasmrlError

_MARK = "__cuasmrl__"
_STATE = "_cuasmrl_state"
logger = logging.getLogger("cuasmrl.triton")


class CubinStage:
    """The hook in one class; it can be put in and taken out."""

    def __init__(
        self, backend: Any, lookup: Lookup, scope: Callable[[], str], covers: Callable[[str], bool]
    ) -> None:
        """`covers` says which kernels are looked up, `scope` the same as text for Triton's cache keys."""
        self._backend = backend
        self._lookup = lookup
        self._scope = scope
        self._covers = covers
        self._add_stages = backend.add_stages
        self._hash = backend.hash
        self._told: set[str] = set()
        self._is_in = False

    def put_in(self) -> None:
        @functools.wraps(self._add_stages)
        def add_stages(backend: Any, stages: dict[str, Any], *rest: Any, **named: Any) -> Any:
            given = self._add_stages(backend, stages, *rest, **named)
            if "cubin" in stages:
                stages["cubin"] = self._looking_up(stages["cubin"], backend)
            return given

        @functools.wraps(self._hash)
        def hash_(backend: Any) -> str:
            own: str = self._hash(backend)
            state = self._state()
            setattr(backend, _STATE, state)
            # With an empty store everything has to be as without us, warm caches included.
            return own if state is None else f"{own}-cuasmrl-{state}-{self._scope()}"

        setattr(add_stages, _MARK, True)
        self._backend.add_stages, self._backend.hash = add_stages, hash_
        self._mine = (add_stages, hash_)
        self._is_in = True

    def take_out(self) -> None:
        """Put the original methods back; if somebody has wrapped ours in turn, ours do nothing more."""
        if (self._backend.add_stages, self._backend.hash) == self._mine:
            self._backend.add_stages, self._backend.hash = self._add_stages, self._hash
        self._is_in = False

    def _looking_up(self, inner: Callable[..., Any], backend: Any) -> Callable[..., Any]:
        def cubin(source: Any, metadata: Any) -> Any:
            made = inner(source, metadata)
            name = str(metadata.get("name", ""))
            return self._deployed(made, name, backend) if self._is_in and self._covers(name) else made

        return cubin

    def _deployed(self, made: Any, name: str, backend: Any) -> Any:
        state = getattr(backend, _STATE, None)
        if state is None:
            # Triton files this kernel under the key it would have without us, so it must be the original.
            return made
        found = self._lookup.deploy(made, name)
        if found.doubt:
            self._tell(f"{name} stays as compiled: {found.reason}")
        if not found.used:
            logger.debug("%s stays as compiled: %s", name, found.reason)
            return made
        if self._state() != state:
            # Triton will file the cubin under the state of before; another store may have that one again.
            logger.info("%s stays as compiled: the store changed meanwhile", name)
            return made
        logger.info("%s: %s", name, found.reason)
        return found.cubin

    def _state(self) -> str | None:
        """What cubins depend on; None where there is nothing to deploy."""
        if not self._is_in:
            return None
        try:
            return self._lookup.state
        except CuasmrlError as error:
            self._tell(f"kernels stay as compiled: {error}")
            return None

    def _tell(self, what: str) -> None:
        if what not in self._told:
            self._told.add(what)
            warnings.warn(f"cuasmrl: {what}", RuntimeWarning, stacklevel=2)


def is_hooked(backend: Any) -> bool:
    """By us, or by another copy of us."""
    return hasattr(backend.add_stages, _MARK)
