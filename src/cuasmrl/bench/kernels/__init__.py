"""Whole kernels with public figures, beside what the model says of them."""

from cuasmrl.bench.kernels.comparison import Comparison, compare
from cuasmrl.bench.kernels.figures import Figure, figures
from cuasmrl.bench.kernels.launch_time import Condition, LaunchTime, launch_time

__all__ = ["Comparison", "Condition", "Figure", "LaunchTime", "compare", "figures", "launch_time"]
