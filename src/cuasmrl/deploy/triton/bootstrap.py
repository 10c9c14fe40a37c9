"""Install in other processes: by environment variables, as soon as they import Triton.

    CUASMRL_TRITON    deploy, record or optimize
    CUASMRL_VIRTUAL   a chip: Triton gets the virtual GPU
    CUASMRL_MODELLED  1: results that no GPU has measured are used too
    PYTHONPATH        begins with our folder `site`, whose sitecustomize.py calls `prepare`

A process that does not import Triton pays for a few lines. This module is imported by every Python that
starts with these variables, so it imports next to nothing.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any

MODE = "CUASMRL_TRITON"
CHIP = "CUASMRL_VIRTUAL"
STORE = "CUASMRL_STORE"
_PYTHONPATH = "PYTHONPATH"
SITE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "site")


def environment(
    mode: str | None, store: os.PathLike[str] | str, base: Mapping[str, str], chip: str | None = None
) -> dict[str, str]:
    """Variables to set, over those of `base`, for processes that shall install as they start."""
    found = {STORE: os.fspath(store)}
    if mode is not None:
        found[MODE] = str(mode)
    if chip is not None:
        found[CHIP] = chip
    others = [place for place in base.get(_PYTHONPATH, "").split(os.pathsep) if place and place != SITE]
    found[_PYTHONPATH] = os.pathsep.join([SITE, *others])
    return found


def prepare() -> None:
    """Wait for Triton, if the environment says so."""
    if (os.environ.get(MODE) or os.environ.get(CHIP)) and "triton" not in sys.modules:
        sys.meta_path.insert(0, _TritonFinder())


class _TritonFinder:
    """Lets others find Triton, and acts when it has been imported."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != "triton":
            return None
        sys.meta_path.remove(self)
        import importlib.util

        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader)  # type: ignore[assignment]
        return spec


class _Loader:
    """Triton's own loader with an act behind it."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        found: ModuleType | None = self._inner.create_module(spec)
        return found

    def exec_module(self, module: ModuleType) -> None:
        if module.__spec__ is not None:
            module.__spec__.loader = module.__loader__ = self._inner
        self._inner.exec_module(module)
        _act()


def _act() -> None:
    """Never at the cost of the program: what goes wrong is said, and Triton goes on alone."""
    try:
        chip, mode = os.environ.get(CHIP), os.environ.get(MODE)
        if chip:
            from cuasmrl.gpu.virtual import activate

            activate(chip)
        if mode:
            from cuasmrl.deploy.triton.activation import install

            install(mode)
    except Exception as error:
        sys.stderr.write(f"cuasmrl: not active in process {os.getpid()}: {error}\n")
