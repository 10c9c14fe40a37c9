"""Why one schedule of a kernel is faster than another, in the model: by reason and by instruction."""

from cuasmrl.explain.comparison.changes import Comparison, InstructionChange, ReasonChange, Timed
from cuasmrl.explain.comparison.compare import compare, compare_replays
from cuasmrl.explain.comparison.table import print_comparison

__all__ = [
    "Comparison",
    "InstructionChange",
    "ReasonChange",
    "Timed",
    "compare",
    "compare_replays",
    "print_comparison",
]
