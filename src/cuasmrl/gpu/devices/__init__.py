"""What times schedules: the virtual GPU, or a real one behind the same interface."""

from cuasmrl.gpu.devices.device import CandidateError, Eager, Rival, Timer
from cuasmrl.gpu.devices.objective import Objective
from cuasmrl.gpu.devices.opening import chip_of_device, open_timer
from cuasmrl.gpu.devices.virtual import VirtualTimer

__all__ = [
    "CandidateError", "Eager", "Objective", "Rival", "Timer", "VirtualTimer", "chip_of_device",
    "open_timer",
]  # fmt: skip
