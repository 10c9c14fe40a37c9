"""Functional execution of SASS on the CPU, many blocks at once."""

from cuasmrl.emulator.emulator import DEFAULT_BUDGET, Emulator, Run
from cuasmrl.emulator.faults import Fault
from cuasmrl.emulator.trace import Header, Trace

__all__ = ["DEFAULT_BUDGET", "Emulator", "Fault", "Header", "Run", "Trace"]
