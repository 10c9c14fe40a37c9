"""A cycle-level model of one SM that replays a trace under any schedule; it knows times, not values."""

from cuasmrl.timing.model import Model, Occupancy, Result, occupancy
from cuasmrl.timing.parameters import Certainty, Parameters, load_parameters
from cuasmrl.timing.records import REASON_NAMES, Reason, Unit

__all__ = [
    "REASON_NAMES", "Certainty", "Model", "Occupancy", "Parameters", "Reason", "Result", "Unit",
    "load_parameters", "occupancy",
]  # fmt: skip
