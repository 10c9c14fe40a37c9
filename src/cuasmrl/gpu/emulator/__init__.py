"""Functional execution of SASS on the CPU, many blocks at once."""

from cuasmrl.gpu.emulator.emulator import DEFAULT_BUDGET, Emulator, Run
from cuasmrl.gpu.emulator.faults import Fault
from cuasmrl.gpu.emulator.trace import Footprint, Header, Touched, Trace

__all__ = ["DEFAULT_BUDGET", "Emulator", "Fault", "Footprint", "Header", "Run", "Touched", "Trace"]
