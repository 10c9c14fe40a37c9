"""A cycle-level model of one SM that replays a trace under any schedule; it knows times, not values."""

from cuasmrl.gpu.timing.bounds import Bound, bounds_of
from cuasmrl.gpu.timing.counterfactuals import Counterfactual, counterfactuals_of
from cuasmrl.gpu.timing.memory_system import L2, Traffic
from cuasmrl.gpu.timing.model import Model, Occupancy, Result, occupancy
from cuasmrl.gpu.timing.parameters import Certainty, Parameters, load_parameters
from cuasmrl.gpu.timing.records import REASON_NAMES, Reason, Unit
from cuasmrl.gpu.timing.sanitizer import Finding, hazards_of, sanitize
from cuasmrl.gpu.timing.share import trace_share, traced_blocks
from cuasmrl.gpu.timing.slack import Readers, Slack, readers_of, slack_of

__all__ = [
    "L2", "REASON_NAMES", "Bound", "Certainty", "Counterfactual", "Finding", "Model", "Occupancy",
    "Parameters", "Readers", "Reason", "Result", "Slack", "Traffic", "Unit", "bounds_of",
    "counterfactuals_of", "hazards_of", "load_parameters", "occupancy", "readers_of", "sanitize", "slack_of",
    "trace_share", "traced_blocks",
]  # fmt: skip
