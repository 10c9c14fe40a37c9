"""Compilation by Numba, typed for those who call the result from Python.

The first time it takes some twenty seconds for all of a search, which is said to the log of this module.
"""

import fcntl
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from hashlib import sha256
from operator import getitem, setitem
from pathlib import Path
from typing import Any, TypeVar

from numba import njit, types
from numba.core.compiler_lock import global_compiler_lock
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
    _compile_once(result)
    return result


def _compile_once(dispatcher: Any) -> None:
    """Processes that start together compile a function once: the others wait for it and load it.

    Nor does one write what the disk holds of a function while another does, which Numba leaves open.
    """
    compile_, disk, held = dispatcher.compile, dispatcher._cache, False

    def compile_alone(signature: Any) -> Any:
        nonlocal held
        # In this order: a thread with the file would wait here for one that has the lock and wants the file.
        with global_compiler_lock:
            if held:
                return compile_(signature)
            with _locked(Path(disk.cache_path), disk._impl.filename_base):
                held = True
                try:
                    return compile_(signature)
                finally:
                    held = False

    dispatcher.compile = compile_alone


@contextmanager
def _locked(folder: Path, name: str) -> Iterator[None]:
    """Without a lock where the folder cannot be written: then nothing is kept in it either."""
    file = None
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        file = (folder / f"{name}.lock").open("w")
        fcntl.flock(file, fcntl.LOCK_EX)
    try:
        yield
    finally:
        if file is not None:
            # Said and not left to the close, for a child forked in the meantime has the file open as well.
            with suppress(OSError):
                fcntl.flock(file, fcntl.LOCK_UN)
            file.close()


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
