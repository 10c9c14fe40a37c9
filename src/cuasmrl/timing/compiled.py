"""Compilation by Numba, typed for those who call the result from Python."""

from collections.abc import Callable
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar

from numba import njit

F = TypeVar("F", bound=Callable[..., Any])


def compiled(function: F) -> F:
    """Compile on first call and keep the result on disk.

    Numba sees only changes of the file a function stands in, but the numbers of fields and the functions it
    calls come from others: so the name under which it is kept names the text of all of them.
    """
    function.__qualname__ += f"-{_sources()}"
    result: F = njit(cache=True, error_model="numpy", nogil=True)(function)
    return result


@cache
def _sources() -> str:
    files = sorted(Path(__file__).parent.glob("*.py"))
    return sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:12]
