"""What cuasmrl does with the kernels that Triton compiles."""

from __future__ import annotations

from enum import StrEnum

from cuasmrl.errors import CuasmrlError


class Mode(StrEnum):
    DEPLOY = "deploy"
    """Look each compiled kernel up in the store and use what is there."""
    RECORD = "record"
    """Leave kernels as compiled, and note them in the store with their launches."""
    OPTIMIZE = "optimize"
    """Note them, and play on each after its first launch; from then on use the result."""


def mode_named(name: str) -> Mode:
    try:
        return Mode(name)
    except ValueError:
        raise CuasmrlError(f"there is no mode {name!r}; choose one of {', '.join(Mode)}") from None
