"""Launches as launch files in the store, with the kernels they belong to."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from cuasmrl.binary.cubin import Cubin
from cuasmrl.deploy.store import Recorded, code_key
from cuasmrl.deploy.triton.buffers import Taken, take
from cuasmrl.deploy.triton.launches import Seen
from cuasmrl.deploy.triton.lookup import Lookup
from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.launches import Buffer, LaunchRecord, as_json, describe
from cuasmrl.gpu.launches.launch import Argument, Launch
from cuasmrl.gpu.virtual.arguments import by_type, parameters_of

_SCRATCH = ("global_scratch", "profile_scratch")


class Recorder:
    """Describes each launch that is unlike those before, and keeps it when it has gone well."""

    def __init__(self, lookup: Lookup) -> None:
        self.lookup = lookup
        self.store = lookup.store
        self._known: set[Any] = set()
        self._results: tuple[str, set[str]] | None = None

    def loading(self, kernel: Any) -> bool:
        """What has a result for this GPU needs no recording, and what is one even less."""
        key = code_key(kernel.asm["cubin"])
        return not self.lookup.has(key) and key not in self._stored_results()

    def before(self, seen: Seen) -> LaunchRecord | None:
        likeness = (seen.kernel.hash, seen.grid, tuple(_likeness(seen)))
        if likeness in self._known:
            return None
        self._known.add(likeness)
        return record_of(seen)

    def _stored_results(self) -> set[str]:
        """Keys of the optimised cubins, which another way of deploying may have brought here."""
        epoch = self.store.epoch
        if self._results is None or self._results[0] != epoch:
            self._results = epoch, {code_key(entry.optimised) for entry in self.store.entries()}
        return self._results[1]

    def after(self, seen: Seen, note: LaunchRecord) -> Recorded:
        return self.store.record(seen.kernel.asm["cubin"], [as_json(note)], origin_of(seen))


def record_of(seen: Seen) -> LaunchRecord:
    """Arguments by value as they are, buffers by what they hold now."""
    kernel, metadata = seen.kernel, seen.kernel.metadata
    if metadata.num_ctas != 1 or getattr(metadata, "tensordesc_meta", None):
        raise CuasmrlError("it uses clusters or TMA descriptors, which launch files do not describe")
    names: list[str] = []
    arguments: list[Argument] = []
    taken: dict[tuple[int, str], Taken] = {}
    sizes: dict[int, int] = {}
    for name, type_, value in parameters_of(kernel.src.signature, seen.values, kernel.name):
        what = f"argument {name}"
        if type_.startswith("*") and hasattr(value, "data_ptr") and value.data_ptr():
            place = int(value.data_ptr()), type_
            found = taken[place] = taken.get(place) or take(type_, value, what)
            sizes[len(names)] = found.elements
            arguments.append(found.array)
        else:
            arguments.append(None if hasattr(value, "data_ptr") else by_type(type_, value, what))
        names.append(name)
    for name, scratch in _scratch(seen, len(arguments)):
        names.append(name)
        arguments.append(scratch)
    block = (metadata.num_warps * metadata.warp_size, 1, 1)
    launch = Launch(seen.grid, block, metadata.shared, tuple(arguments))
    record = describe(launch, kernel.name, names)
    whole = tuple(
        replace(entry, shape=(sizes[number],)) if isinstance(entry, Buffer) and number in sizes else entry
        for number, entry in enumerate(record.arguments)
    )
    return replace(record, arguments=whole)


def _scratch(seen: Seen, given: int) -> Iterator[tuple[str, Argument]]:
    """The pointers that Triton appends; how many of them depends on its version, and the cubin knows."""
    name, cubin = seen.kernel.name, seen.kernel.asm["cubin"]
    wanted = len(Cubin.parse(cubin, f"the cubin of {name}").kernel(name).parameters)
    blocks = seen.grid[0] * seen.grid[1] * seen.grid[2]
    for label in _SCRATCH[: wanted - given]:
        size = getattr(seen.kernel.metadata, f"{label}_size", 0) * blocks
        yield label, np.zeros(size, np.uint8) if size else None


def origin_of(seen: Seen) -> dict[str, Any]:
    """Who launched it, on what, and what it was compiled with."""
    kernel = seen.kernel
    triton = importlib.import_module("triton")
    driver = triton.runtime.driver.active
    chip = getattr(getattr(driver, "chip", None), "key", None)
    # A kernel that comes from a file of IR has no function, and so no constants.
    function: Any = getattr(kernel.src, "fn", None)
    constants = kernel.src.constants if function else {}
    named = {
        ".".join([function.arg_names[path[0]], *map(str, path[1:])]): str(value)
        for path, value in constants.items()
    }
    return {
        "framework": f"triton {triton.__version__}",
        "function": f"{function.__module__}.{function.__name__}" if function else kernel.name,
        "device": f"virtual:{chip}" if chip else f"cuda:{driver.get_current_device()}",
        "num_warps": kernel.metadata.num_warps,
        "num_stages": kernel.metadata.num_stages,
        "constants": named,
    }


def _likeness(seen: Seen) -> Iterator[Any]:
    """What tells launches apart: numbers, and of tensors their kind and size."""
    for _, type_, value in parameters_of(seen.kernel.src.signature, seen.values, seen.kernel.name):
        if type_.startswith("*") and hasattr(value, "numel"):
            yield type_, value.numel()
        else:
            yield type_, str(value)
