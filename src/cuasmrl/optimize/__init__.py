"""The whole way: from a workload or a cubin to a schedule that passed the gate."""

from cuasmrl.optimize.choice import FINALISTS, Candidate, fastest
from cuasmrl.optimize.deposit import deposit
from cuasmrl.optimize.optimizer import RUNS, Optimized, Played, Watch, optimize, resume
from cuasmrl.optimize.recorded import Outcome, optimize_recorded, play_on
from cuasmrl.optimize.request import DEFAULT_BUDGET, Request, default_agent
from cuasmrl.optimize.subject import Subject, prepare

__all__ = [
    "DEFAULT_BUDGET", "FINALISTS", "RUNS", "Candidate", "Optimized", "Outcome", "Played", "Request",
    "Subject", "Watch", "default_agent", "deposit", "fastest", "optimize", "optimize_recorded", "play_on",
    "prepare", "resume",
]  # fmt: skip
