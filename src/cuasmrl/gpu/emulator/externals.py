"""Functions of the driver that kernels call: printf and the end of a failed assertion.

Arguments and results are where the ABI of every supported architecture has them, as seen in the code that
ptxas emits for calls: parameters from R4 on, each aligned to its size, the result in R4, the return address
in R20 and R21.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, NoReturn

import numpy as np

from cuasmrl.gpu.emulator.faults import AssertionFault, LaneFault, UnsupportedError
from cuasmrl.gpu.emulator.module import LOCAL_WINDOW
from cuasmrl.gpu.emulator.printing import formatted
from cuasmrl.gpu.emulator.values import LANES, Mask, join

if TYPE_CHECKING:
    from cuasmrl.gpu.emulator.machine import Machine

_PARAMETERS = 4
_RETURN = 20


def call_external(machine: Machine, name: str, threads: Mask) -> None:
    """Do what a function does for some threads, which go on behind the call."""
    function = _FUNCTIONS.get(name)
    members = np.broadcast_to(threads, machine.shape)
    if function is None:
        position = int(members.reshape(-1).argmax())
        raise LaneFault(f"calls {name}, which neither the cubin nor the emulator has", position)
    function(machine, members)
    targets = _pair(machine, _RETURN)
    for target in np.unique(targets[members]):
        machine.return_to(int(target), members & (targets == target))


def _print(machine: Machine, threads: Mask) -> None:
    """vprintf(format, arguments): the arguments lie on the stack of each thread."""
    templates, arguments = _pair(machine, _PARAMETERS), _pair(machine, _PARAMETERS + 2)
    counts = np.zeros(machine.shape, np.uint32)
    for position in np.flatnonzero(threads.reshape(-1)):
        template = _text(machine, int(templates.flat[position]), int(position))
        start = int(arguments.flat[position])
        try:
            text, count = formatted(
                template,
                lambda offset, size, start=start, position=position: _stack(  # type: ignore[misc]
                    machine, start + offset, size, int(position)
                ),
                lambda address, position=position: _text(machine, address, int(position)),  # type: ignore[misc]
            )
        except UnsupportedError as error:
            raise LaneFault(f"{error} is not supported", int(position)) from None
        machine.printed.append((int(position) // LANES, text))
        counts.flat[position] = count
    general = machine.registers.general
    general[_PARAMETERS] = np.where(threads, counts, general[_PARAMETERS])


def _assert_failed(machine: Machine, threads: Mask) -> NoReturn:
    """__assertfail(message, file, line, function, character size)."""
    positions = np.flatnonzero(threads.reshape(-1))
    pointers = [_pair(machine, _PARAMETERS + k) for k in (0, 2, 6)]
    lines = np.broadcast_to(machine.registers.general[_PARAMETERS + 4], machine.shape)
    reports, reasons = [], []
    for position in map(int, positions):
        message, file, function = (
            _text(machine, int(pointer.flat[position]), position) for pointer in pointers
        )
        block, thread = machine.who(position)
        place, what = f"{file}:{int(lines.flat[position])}: {function}", f"Assertion `{message}` failed"
        reports.append(f"{place}: block: [{_listed(block)}], thread: [{_listed(thread)}] {what}.")
        reasons.append(f"{place}: {what}")
    # As the driver does, for every thread that fails.
    print(*reports, sep="\n", file=sys.stderr, flush=True)
    raise AssertionFault(f"device-side assert triggered: {reasons[0]}", int(positions[0]))


_FUNCTIONS: dict[str, Callable[[Machine, Mask], None]] = {"vprintf": _print, "__assertfail": _assert_failed}


def _listed(index: tuple[int, int, int]) -> str:
    return ",".join(map(str, index))


def _pair(machine: Machine, register: int) -> np.ndarray:
    general = machine.registers.general
    return np.broadcast_to(join(general[register], general[register + 1]), machine.shape)


def _text(machine: Machine, address: int, position: int) -> str:
    """A text in global memory, up to its zero."""
    region = machine.env.memory.region_at(address)
    if region is None:
        raise LaneFault(f"a text is read at {address:#x}, out of bounds", position)
    data = region.data[address - region.base :].tobytes()
    end = data.find(0)
    if end < 0:
        raise LaneFault(f"the text at {address:#x} has no end", position)
    return data[:end].decode("utf-8", "replace")


def _stack(machine: Machine, address: int, size: int, position: int) -> bytes:
    offset, local = address - LOCAL_WINDOW, machine.local
    if not 0 <= offset <= local.size - size:
        raise LaneFault(f"arguments of printf at {address:#x} are not on the stack", position)
    start = position * local.size + offset
    return local.data[start : start + size].tobytes()


def flush(printed: list[tuple[int, str]]) -> None:
    """Write what the warps of a slab have printed: warp by warp, each in the order of its calls."""
    if printed:
        printed.sort(key=lambda entry: entry[0])
        sys.stdout.write("".join(text for _, text in printed))
        sys.stdout.flush()
        printed.clear()
