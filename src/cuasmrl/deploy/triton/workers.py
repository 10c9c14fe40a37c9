"""Settings through which other processes and caches learn of us: torch.compile compiles in worker processes.

Workers get a copy of the environment when they start, and nothing else. So the variables of `bootstrap` go
into the environment of this process, and torch's caches, which hold cubins, get the epoch into their keys.
"""

from __future__ import annotations

import os
import sys
import warnings
from typing import Any

from cuasmrl.deploy.store import EMPTY, Allowed
from cuasmrl.deploy.store.allowed import asking_for
from cuasmrl.deploy.triton.bootstrap import SITE, environment
from cuasmrl.deploy.triton.lookup import Lookup
from cuasmrl.deploy.triton.modes import Mode
from cuasmrl.errors import CuasmrlError

_TAG = "TORCH_COMPILE_CACHE_KEY_TAG"


class WorkerSettings:
    """A hook like the others: put in, taken out."""

    def __init__(self, mode: Mode, lookup: Lookup) -> None:
        self._mode = mode
        self._lookup = lookup
        self._before: dict[str, str | None] = {}
        self._tag: str | None = None

    def put_in(self) -> None:
        if _workers_run():
            warnings.warn(
                "cuasmrl: compile workers of torch have started already and compile without stored results; "
                "install before the first use of torch.compile, or set TORCHINDUCTOR_COMPILE_THREADS=1",
                RuntimeWarning,
                stacklevel=6,
            )
        changed = environment(self._mode, self._lookup.store.root, os.environ)
        changed |= asking_for(self._lookup.modelled, os.environ)
        changed |= {_TAG: ours} if (ours := tag(self._lookup, os.environ.get(_TAG, ""))) else {}
        self._before = {name: os.environ.get(name) for name in changed}
        os.environ.update(changed)
        # torch gives its workers the path of this process for PYTHONPATH. The first entry has a meaning.
        sys.path.insert(1, SITE)
        config = _torch_config()
        if config is not None:
            self._tag = config.cache_key_tag
            config.cache_key_tag = tag(self._lookup, config.cache_key_tag)

    def take_out(self) -> None:
        if SITE in sys.path:
            sys.path.remove(SITE)
        for name, value in self._before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        config = _torch_config()
        if config is not None and self._tag is not None:
            config.cache_key_tag = self._tag


def tag(lookup: Lookup, given: str) -> str:
    """For the keys of torch's caches: what is there, and the epoch unless the store is empty.

    These keys name the GPU themselves, so it is not asked for: nobody may have started the driver yet.
    """
    try:
        epoch = lookup.store.epoch
    except CuasmrlError:
        # Nothing can be deployed from it, and the cubin stage says so.
        return given
    ours = "-".join(filter(None, ("cuasmrl", epoch, Allowed(lookup.modelled).tag)))
    return given if epoch == EMPTY or ours in given.split("+") else f"{given}+{ours}".lstrip("+")


def _torch_config() -> Any:
    """None while torch has not read the environment."""
    compiler = sys.modules.get("torch.compiler")
    return getattr(compiler, "config", None)


def _workers_run() -> bool:
    module = sys.modules.get("torch._inductor.async_compile")
    return bool(getattr(module, "_pool_set", ()))
