"""What times schedules: the virtual GPU, or a real one behind the same interface."""

from cuasmrl.devices.device import Profile, Timer
from cuasmrl.devices.virtual import VirtualTimer

__all__ = ["Profile", "Timer", "VirtualTimer"]
