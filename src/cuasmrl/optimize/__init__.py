"""The whole way: from a workload or a cubin to a schedule that passed the gate."""

from cuasmrl.optimize.by_hand import BY_HAND
from cuasmrl.optimize.choice import FINALISTS, Candidate, fastest
from cuasmrl.optimize.optimizer import RUNS, Optimized, Played, Watch, optimize, resume, submit, together
from cuasmrl.optimize.request import DEFAULT_BUDGET, Request, default_agent
from cuasmrl.optimize.subject import Chosen, Subject, choose, prepare

__all__ = [
    "BY_HAND", "DEFAULT_BUDGET", "FINALISTS", "RUNS", "Candidate", "Chosen", "Optimized", "Played", "Request",
    "Subject", "Watch", "choose", "default_agent", "fastest", "optimize", "prepare", "resume", "submit",
    "together",
]  # fmt: skip
