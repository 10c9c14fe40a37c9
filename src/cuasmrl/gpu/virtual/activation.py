"""Put the virtual GPU in Triton's place for a device, and put everything back."""

from __future__ import annotations

import gc
import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.chips import Chip
from cuasmrl.gpu.chips import chip as chip_of_name
from cuasmrl.gpu.virtual.device import Module, OnLaunch, loaded


def activate(chip: str | Chip = "a100", *, on_launch: OnLaunch | None = None) -> None:
    """From now on Triton compiles for this chip and launches on the emulator.

    Calling it again changes the chip; a single `deactivate` still undoes it all. `on_launch` is called
    after each launch.
    """
    chip = chip_of_name(chip) if isinstance(chip, str) else chip
    config, virtual_driver = _triton()
    previous = _current(config)
    beneath = previous
    if isinstance(previous, virtual_driver):
        if previous.chip == chip and previous.on_launch is on_launch:
            return
        beneath = previous.beneath
    config.set_active(virtual_driver(chip, on_launch, beneath))


def deactivate() -> None:
    """Give Triton back the driver it had, or its not having chosen one; without a virtual GPU, do nothing."""
    if "cuasmrl.gpu.virtual.driver" not in sys.modules:
        return
    config, virtual_driver = _triton()
    current = _current(config)
    if isinstance(current, virtual_driver):
        _switch(config, current.beneath)


@contextmanager
def active(chip: str | Chip = "a100", *, on_launch: OnLaunch | None = None) -> Iterator[Chip]:
    """Activate for a `with` block; inside another one the outer chip returns afterwards."""
    config, _ = _triton()
    previous = _current(config)
    activate(chip, on_launch=on_launch)
    try:
        yield _current(config).chip
    finally:
        _switch(config, previous)


def _triton() -> tuple[Any, Any]:
    try:
        config = importlib.import_module("triton.runtime").driver
        return config, importlib.import_module("cuasmrl.gpu.virtual.driver").VirtualDriver
    except ImportError as error:
        raise CuasmrlError(
            f"The virtual GPU runs Triton kernels and Triton does not import ({error}); "
            "install cuasmrl[triton]."
        ) from None


def _current(config: Any) -> Any:
    # The public property would look for a GPU, and fail where there is none.
    return config._active


def _switch(config: Any, driver: Any) -> None:
    _, virtual_driver = _triton()
    if not isinstance(driver, virtual_driver):
        _unload()
    config.set_active(driver)


def _unload() -> None:
    """Make Triton forget handles that mean nothing to another driver.

    A kernel that outlives the virtual GPU would give its handle to the next driver, to launch or to unload.
    So every such kernel becomes what it was before its first launch: compiled, and not loaded.
    """
    if not loaded:
        return
    compiled_kernel = importlib.import_module("triton.compiler").CompiledKernel
    for thing in gc.get_objects():
        if type(thing) is compiled_kernel and isinstance(thing.module, Module):
            thing.module = thing.function = thing._run = None
