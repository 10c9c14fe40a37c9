"""What a run has learned: its winning schedule taken apart, without what does nothing, and in words."""

from cuasmrl.explanation.decompose import Decomposition
from cuasmrl.explanation.explain import ExplainedMove, Explanation, explain
from cuasmrl.explanation.minimise import minimise
from cuasmrl.explanation.rules import Rule, rules_of
from cuasmrl.explanation.run import ExplainedRun, explain_run
from cuasmrl.explanation.table import print_explanation, print_rules

__all__ = [
    "Decomposition", "ExplainedMove", "ExplainedRun", "Explanation", "Rule", "explain", "explain_run",
    "minimise", "print_explanation", "print_rules", "rules_of",
]  # fmt: skip
