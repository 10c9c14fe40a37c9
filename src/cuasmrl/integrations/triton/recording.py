"""Launches as launch files in the store, with the kernels they belong to."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from cuasmrl.cubin import Cubin
from cuasmrl.errors import CuasmrlError
from cuasmrl.integrations.triton.launches import Seen
from cuasmrl.launch import Argument, Launch
from cuasmrl.launches import LaunchRecord, as_json, describe
from cuasmrl.launches.fills import dtype_named
from cuasmrl.store import Recorded, Store, code_key
from cuasmrl.virtual.arguments import by_type, parameters_of
from cuasmrl.virtual.memory import bytes_of

_ELEMENTS = {
    "i1": "bool", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64",
    "u1": "bool", "u8": "uint8", "u16": "uint16", "u32": "uint32", "u64": "uint64",
    "fp16": "float16", "bf16": "bfloat16", "fp32": "float32", "fp64": "float64",
    "fp8e4nv": "float8_e4m3fn", "fp8e5": "float8_e5m2",
}  # fmt: skip
_CONSTANT = "k"
"""Behind the star, for a pointer through which nothing is written."""
_SCRATCH = ("global_scratch", "profile_scratch")


class Recorder:
    """Describes each launch that is unlike those before, and keeps it when it has gone well."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._known: set[Any] = set()
        self._results: tuple[str, set[str]] | None = None

    def loading(self, kernel: Any) -> bool:
        """What has a result needs no recording, and what is one even less."""
        key = code_key(kernel.asm["cubin"])
        return self.store.find(key) is None and key not in self._stored_results()

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
    names, arguments = [], []
    buffers: dict[tuple[int, str], Argument] = {}
    for name, type_, value in parameters_of(kernel.src.signature, seen.values, kernel.name):
        names.append(name)
        arguments.append(_argument(name, type_, value, buffers))
    wanted = Cubin.parse(kernel.asm["cubin"], f"the cubin of {kernel.name}").kernel(kernel.name).parameters
    blocks = seen.grid[0] * seen.grid[1] * seen.grid[2]
    for name in _SCRATCH[: len(wanted) - len(arguments)]:
        names.append(name)
        size = getattr(metadata, f"{name}_size", 0) * blocks
        arguments.append(np.zeros(size, np.uint8) if size else None)
    block = (metadata.num_warps * metadata.warp_size, 1, 1)
    launch = Launch(seen.grid, block, metadata.shared, tuple(arguments))
    return describe(launch, kernel.name, names)


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


def _argument(name: str, type_: str, value: Any, buffers: dict[tuple[int, str], Argument]) -> Argument:
    what = f"argument {name}"
    if not type_.startswith("*") or not hasattr(value, "data_ptr"):
        return by_type(type_, value, what)
    address, element = int(value.data_ptr()), _element(type_, what)
    if not address:
        return None
    if (address, element) not in buffers:
        flat, kind = _on_host(value, what), dtype_named(element)
        buffers[address, element] = flat[: flat.nbytes - flat.nbytes % kind.itemsize].view(kind)
    return buffers[address, element]


def _element(type_: str, what: str) -> str:
    inner = type_[1:]
    found = _ELEMENTS.get(inner) or _ELEMENTS.get(inner.removeprefix(_CONSTANT))
    if found is None:
        raise CuasmrlError(f"{what} points to elements of type {inner}, which launch files do not know")
    return found


def _on_host(tensor: Any, what: str) -> Any:
    """Bytes from a tensor's first element to the end of its storage, wherever it lives."""
    device = getattr(tensor, "device", "cpu")
    if str(getattr(device, "type", device)) == "cpu":
        return bytes_of(tensor, what)
    base = getattr(tensor, "base", tensor)
    torch = importlib.import_module("torch")
    place = base.storage_offset() * base.element_size()
    whole = torch.tensor([], dtype=torch.uint8, device=device).set_(base.untyped_storage())
    return whole[place:].cpu().numpy()
