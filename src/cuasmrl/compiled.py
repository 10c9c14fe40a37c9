"""Compilation by Numba, typed for those who call the result from Python.

The first time it takes some twenty seconds for all of a search, which is said to the log of this module.
"""

import logging
from collections.abc import Callable
from functools import cache
from hashlib import sha256
from operator import getitem, setitem
from pathlib import Path
from typing import Any, TypeVar

from numba import njit, types
from numba.core.event import Event, Listener, register
from numba.extending import intrinsic, overload

F = TypeVar("F", bound=Callable[..., Any])


class FirstCompilation(Listener):  # type: ignore[misc]
    """Says that something is compiled, once; what the disk holds is not."""

    was_said = False

    def on_start(self, event: Event) -> None:
        if self.was_said:
            return
        self.was_said = True
        logging.getLogger(__name__).info(
            "compiling the model for this machine, which happens once and takes about 20 seconds"
        )

    def on_end(self, event: Event) -> None:
        pass


register("numba:compile", FirstCompilation())


def compiled(function: F) -> F:
    """Compile on first call and keep the result on disk.

    Numba sees only changes of the file a function stands in, but the numbers of fields and the functions it
    calls come from others: so the name under which it is kept names the text of all files of its folder.
    """
    return _compiled(function, forceinline=False)


def inlined(function: F) -> F:
    """As `compiled`, for what stands in a hot loop: it becomes part of every function that calls it.

    LLVM leaves a function alone that has grown beyond a limit, and the loop around it is then much slower.
    """
    return _compiled(function, forceinline=True)


def _compiled(function: F, forceinline: bool) -> F:
    function.__qualname__ += f"-{_sources(Path(function.__code__.co_filename).parent)}"
    result: F = njit(cache=True, error_model="numpy", nogil=True, forceinline=forceinline)(function)
    return result


@intrinsic  # type: ignore[untyped-decorator]
def pointer_to(_typing: Any, array: Any) -> Any:
    """The first element of an array, for indexing without reference counts; the array must outlive it."""

    def first(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return context.make_array(signature.args[0])(context, builder, arguments[0]).data

    return types.CPointer(array.dtype)(array), first


@intrinsic  # type: ignore[untyped-decorator]
def lowest_bit(_typing: Any, value: Any) -> Any:
    """The place of the lowest bit that is set; there must be one."""

    def place(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], context.get_constant(types.boolean, True))

    return types.int64(types.int64), place


def _is_named_field(pointer: Any, index: Any) -> bool:
    return isinstance(pointer, types.CPointer) and isinstance(index, types.IntEnumMember)


@overload(getitem)  # type: ignore[untyped-decorator]
def _get_field(pointer: Any, index: Any) -> Any:
    def get(pointer: Any, index: Any) -> Any:
        return pointer[0 + index]

    return get if _is_named_field(pointer, index) else None


@overload(setitem)  # type: ignore[untyped-decorator]
def _set_field(pointer: Any, index: Any, value: Any) -> Any:
    def put(pointer: Any, index: Any, value: Any) -> None:
        pointer[0 + index] = value

    return put if _is_named_field(pointer, index) else None


@cache
def _sources(folder: Path) -> str:
    files = [Path(__file__), *sorted(folder.glob("*.py"))]
    return sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:12]
