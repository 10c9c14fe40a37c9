"""What the kernels of this process run on: the virtual GPU, or the kinds of GPU that libcuda names.

Asked at every compilation, so nothing large is imported. The driver is initialised, as Triton has done itself
before it compiles for a GPU, and no context is made.
"""

from __future__ import annotations

import ctypes
import importlib
import sys
from functools import cache

from cuasmrl.deploy.store.allowed import gpu_kind

_LIBRARY = "libcuda.so.1"
_VIRTUAL_DRIVER = "cuasmrl.gpu.virtual.driver"
_LONGEST_NAME = 256
_MAJOR, _MINOR = 75, 76
"""CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_..."""


def on_virtual_gpu() -> bool:
    """Does Triton launch on the emulator now?"""
    module = sys.modules.get(_VIRTUAL_DRIVER)
    if module is None:
        return False
    return isinstance(importlib.import_module("triton.runtime").driver._active, module.VirtualDriver)


@cache
def visible_gpus(library: str = _LIBRARY) -> tuple[str, ...]:
    """Kinds of the GPUs that this process may use, each once; none where there is no driver or no GPU."""
    try:
        cuda = ctypes.CDLL(library)
    except OSError:
        return ()
    count = ctypes.c_int()
    if cuda.cuInit(0) or cuda.cuDeviceGetCount(ctypes.byref(count)):
        return ()
    kinds = {_kind(cuda, number) for number in range(count.value)}
    return tuple(sorted(kind for kind in kinds if kind is not None))


def _kind(cuda: ctypes.CDLL, number: int) -> str | None:
    device, major, minor = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
    name = ctypes.create_string_buffer(_LONGEST_NAME)
    failed = (
        cuda.cuDeviceGet(ctypes.byref(device), number)
        or cuda.cuDeviceGetName(name, _LONGEST_NAME, device)
        or cuda.cuDeviceGetAttribute(ctypes.byref(major), _MAJOR, device)
        or cuda.cuDeviceGetAttribute(ctypes.byref(minor), _MINOR, device)
    )
    return None if failed else gpu_kind(name.value.decode(), f"{major.value}.{minor.value}")
