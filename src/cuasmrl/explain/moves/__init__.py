"""What a run has learned: its winning schedule taken apart, without what does nothing, and in words."""

from cuasmrl.explain.moves.decompose import Decomposition
from cuasmrl.explain.moves.explain import ExplainedMove, Explanation, explain
from cuasmrl.explain.moves.minimise import minimise
from cuasmrl.explain.moves.rules import Rule, rules_of
from cuasmrl.explain.moves.run import ExplainedRun, explain_run
from cuasmrl.explain.moves.table import print_explanation, print_rules

__all__ = [
    "Decomposition", "ExplainedMove", "ExplainedRun", "Explanation", "Rule", "explain", "explain_run",
    "minimise", "print_explanation", "print_rules", "rules_of",
]  # fmt: skip
