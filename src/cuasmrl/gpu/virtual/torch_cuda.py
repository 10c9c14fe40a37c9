"""torch with the virtual GPU in the place of its CUDA device, for code that says `device="cuda"`.

The tensors are CPU tensors. What moves to or from the device is copied, as on a GPU, where the two never
share memory; and `torch.cuda` answers for the chip.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import torch
from torch.overrides import TorchFunctionMode

from cuasmrl.gpu.chips import WARP_THREADS, Chip
from cuasmrl.gpu.chips import chip as chip_of_name
from cuasmrl.gpu.virtual.activation import active
from cuasmrl.gpu.virtual.device import device_number

_CPU = torch.device("cpu")
_MOVES = ("to", "cuda", "cpu")
"""Methods of a tensor that give a copy if the tensor lives on the other side."""


_ACCUMULATE = (
    "matmul", "__matmul__", "__rmatmul__", "mm", "bmm", "addmm", "baddbmm", "linear", "einsum", "layer_norm",
)  # fmt: skip
"""Sums of products of halves, for which CUDA libraries add up in float32 and the CPU does not always."""
_HALVES = (torch.float16, torch.bfloat16)


class CudaOnHost(TorchFunctionMode):  # type: ignore[misc]
    """Every torch function that names a CUDA device works on the CPU instead."""

    def __torch_function__(
        self,
        function: Callable[..., Any],
        types: Any,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        named = kwargs or {}
        name = getattr(function, "__name__", "")
        if name == "cuda" and args and isinstance(args[0], torch.Tensor):
            return args[0].clone()
        if getattr(function, "__self__", None) is torch.Tensor.is_cuda:
            return True
        here = [_on_host(argument) for argument in args]
        there = {key: _on_host(value) for key, value in named.items()}
        if name in _ACCUMULATE and (kind := _kind_of_halves(here)) is not None:
            return function(*_in_single(here), **_in_single(there)).to(kind)
        result = function(*here, **there)
        moved = name in _MOVES and any(_is_device(argument) for argument in (*args[1:], *named.values()))
        if (moved or name == "cpu") and result is args[0]:
            return result.clone()
        return result


def _kind_of_halves(arguments: Any) -> torch.dtype | None:
    for argument in arguments:
        if isinstance(argument, list | tuple):
            found = _kind_of_halves(argument)
            if found is not None:
                return found
        elif isinstance(argument, torch.Tensor) and argument.dtype in _HALVES:
            return argument.dtype
    return None


def _in_single(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.float() if value.dtype in _HALVES else value
    if isinstance(value, dict):
        return {key: _in_single(item) for key, item in value.items()}
    return type(value)(map(_in_single, value)) if type(value) in (list, tuple) else value


def _is_device(argument: Any) -> bool:
    if isinstance(argument, torch.device):
        return True
    return isinstance(argument, str) and argument.partition(":")[0] in ("cuda", "cpu")


def _on_host(argument: Any) -> Any:
    kind = argument.type if isinstance(argument, torch.device) else argument
    if isinstance(kind, str) and kind.partition(":")[0] == "cuda":
        return _CPU
    return argument


class _Generator(torch.Generator):  # type: ignore[misc]
    def __new__(cls, device: Any = _CPU) -> _Generator:
        made: _Generator = super().__new__(cls, _on_host(device))
        return made


def properties_of(chip: Chip) -> SimpleNamespace:
    """`torch.cuda.get_device_properties`."""
    major, minor = chip.capability
    return SimpleNamespace(
        name=chip.name,
        major=major,
        minor=minor,
        total_memory=chip.memory_bytes,
        multi_processor_count=chip.sm_count,
        L2_cache_size=chip.l2_bytes,
        warp_size=WARP_THREADS,
        max_threads_per_multi_processor=chip.max_threads_per_sm,
        regs_per_multiprocessor=chip.registers_per_sm,
        shared_memory_per_block=chip.shared_per_block,
        shared_memory_per_block_optin=chip.shared_per_block_optin,
        shared_memory_per_multiprocessor=chip.shared_per_sm,
    )


@contextmanager
def as_cuda(name: str | Chip) -> Iterator[Chip]:
    """Inside, the chip is both Triton's device and torch's only CUDA device."""
    chip = chip_of_name(name) if isinstance(name, str) else name
    answers: dict[str, Any] = {
        "is_available": lambda: True,
        "device_count": lambda: 1,
        # Triton files what it compiled by this number, and who looks there asks torch for it.
        "current_device": lambda: device_number(chip),
        "get_device_capability": lambda device=None: chip.capability,
        "get_device_properties": lambda device=None: properties_of(chip),
        "get_device_name": lambda device=None: chip.name,
        # Launches are finished when they return, on one stream.
        "synchronize": lambda device=None: None,
        "set_device": lambda device: None,
        "empty_cache": lambda: None,
        "device": lambda device=None: nullcontext(),
    }
    with (
        active(chip),
        patch.multiple(torch.cuda, **answers),
        patch.object(torch, "Generator", _Generator),
        CudaOnHost(),
    ):
        yield chip
