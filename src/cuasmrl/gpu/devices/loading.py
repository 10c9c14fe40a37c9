"""The driver of this machine. Nothing is loaded on import, so that machines without a GPU can."""

from __future__ import annotations

import ctypes

from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.devices.bindings import BoundDriver
from cuasmrl.gpu.devices.driver import INSTEAD, LIBRARY, Driver, DriverError, Status
from cuasmrl.gpu.devices.libcuda import LibCuda


def load(path: str = LIBRARY) -> Driver:
    """The driver, initialised; raises in one sentence what is missing."""
    try:
        library = ctypes.CDLL(path)
    except OSError:
        raise CuasmrlError(
            f"there is no NVIDIA driver here ({path} cannot be loaded); install one, or {INSTEAD}"
        ) from None
    driver = LibCuda(library)
    try:
        driver.initialise()
        count = driver.devices()
    except DriverError as error:
        if error.code == Status.STUB_LIBRARY:
            raise CuasmrlError(
                f"{path} is the toolkit's stub and not the driver; take it off the library path, or {INSTEAD}"
            ) from error
        if error.code != Status.NO_DEVICE:
            raise CuasmrlError(f"the NVIDIA driver does not start: {error}; {INSTEAD}") from error
        count = 0
    if not count:
        raise CuasmrlError(
            "the NVIDIA driver finds no GPU; check nvidia-smi and CUDA_VISIBLE_DEVICES, or " + INSTEAD
        )
    return (_bound() if path == LIBRARY else None) or driver


def _bound() -> Driver | None:
    """By NVIDIA's bindings, if they are installed and know this driver."""
    try:
        from cuda.bindings import driver as cuda
    except ImportError:
        return None
    bound = BoundDriver(cuda)
    bound.initialise()
    return bound
