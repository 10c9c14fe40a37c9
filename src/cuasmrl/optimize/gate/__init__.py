"""The final gate: every result passes it, or the original is kept."""

from cuasmrl.optimize.gate.gate import judge, no_improvement
from cuasmrl.optimize.gate.problems import (
    TRACED_SEED,
    Problem,
    Problems,
    problems_of_record,
    problems_of_workload,
)
from cuasmrl.optimize.gate.standard import Standard
from cuasmrl.optimize.gate.verdict import Check, Outcome, Verdict

__all__ = [
    "TRACED_SEED", "Check", "Outcome", "Problem", "Problems", "Standard", "Verdict", "judge",
    "no_improvement", "problems_of_record", "problems_of_workload",
]  # fmt: skip
