"""Triton's compiler for NVIDIA GPUs: the class that makes cubins, found where Triton itself looks it up."""

from __future__ import annotations

import importlib
from typing import Any

from cuasmrl.errors import CuasmrlError

OLDEST, NEWEST = (3, 6), (3, 9)
_NEEDED = ("add_stages", "hash")


def backend_class() -> Any:
    """The class to hook into; raises in words where there is none that is known."""
    try:
        triton = importlib.import_module("triton")
        backends = importlib.import_module("triton.backends").backends
    except ImportError as error:
        raise CuasmrlError(f"Triton does not import ({error}); install cuasmrl[triton]") from None
    version = str(getattr(triton, "__version__", "unknown"))
    if not is_known(version):
        raise CuasmrlError(
            f"Triton {version} is not known, {OLDEST[0]}.{OLDEST[1]} to {NEWEST[0]}.{NEWEST[1]} are; "
            "use the ptxas shim of `cuasmrl run` instead"
        )
    # The module triton.backends.nvidia.compiler may hold another copy of the class than the one Triton uses.
    found = getattr(backends.get("nvidia"), "compiler", None)
    missing = [name for name in _NEEDED if not callable(getattr(found, name, None))]
    if found is None or missing:
        what = (
            f"its compiler has no {missing[0]}" if found is not None else "it has no backend for NVIDIA GPUs"
        )
        raise CuasmrlError(f"Triton {version} is not as it should be: {what}")
    return found


def is_known(version: str) -> bool:
    try:
        major, minor = (int(part) for part in version.split(".")[:2])
    except ValueError:
        return False
    return OLDEST <= (major, minor) <= NEWEST
