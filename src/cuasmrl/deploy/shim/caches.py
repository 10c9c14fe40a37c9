"""Caches of compilers that do not see another ptxas: each is told apart by the state of the store.

Triton needs nothing here, its key holds all that `ptxas --version` prints. Build systems that go by the times
of files (make, CMake, ninja) have no such variable: give them a new build folder.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_OURS = re.compile(r"[-/+]?cuasmrl-[0-9a-z-]+$")


@dataclass(frozen=True)
class Cache:
    framework: str
    variable: str
    folder: str | None = None
    """Where it is unless the variable says otherwise; None if the variable is a word in the cache's keys."""
    only_if_set: bool = False
    """Without the variable there is no such cache."""

    @property
    def is_folder(self) -> bool:
        return self.folder is not None

    def tagged(self, environment: Mapping[str, str], tag: str) -> str | None:
        """The variable for a state of the store; None to leave it alone."""
        value = environment.get(self.variable, "")
        if not tag or (self.only_if_set and not value):
            return None
        plain = self.plain(environment)
        if self.is_folder:
            return f"{plain}/cuasmrl-{tag}"
        return f"{plain}+cuasmrl-{tag}" if plain else f"cuasmrl-{tag}"

    def plain(self, environment: Mapping[str, str]) -> str:
        """The value without our part: the cache of programs that run without us."""
        value = _OURS.sub("", environment.get(self.variable, ""))
        if value or not self.folder:
            return value
        return self.folder.replace("~", environment.get("HOME") or str(Path.home()), 1)


CACHES = (
    Cache("torch.compile", "TORCH_COMPILE_CACHE_KEY_TAG"),
    Cache("PyTorch extensions", "TORCH_EXTENSIONS_DIR", "~/.cache/torch_extensions"),
    Cache("JAX", "JAX_COMPILATION_CACHE_DIR", "", only_if_set=True),
    Cache("tilelang", "TILELANG_CACHE_DIR", "~/.tilelang/cache"),
    Cache("CuPy", "CUPY_CACHE_DIR", "~/.cupy/kernel_cache"),
    Cache("ccache", "CCACHE_NAMESPACE"),
)
