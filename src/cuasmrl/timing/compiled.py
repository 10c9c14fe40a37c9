"""Compilation by Numba, typed for those who call the result from Python."""

from collections.abc import Callable
from typing import Any, TypeVar

from numba import njit

F = TypeVar("F", bound=Callable[..., Any])


def compiled(function: F) -> F:
    """Compile on first call and keep the result on disk."""
    result: F = njit(cache=True, error_model="numpy", nogil=True)(function)
    return result
