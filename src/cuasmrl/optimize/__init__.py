"""The whole way: from a workload or a cubin to a schedule that passed the gate."""

from cuasmrl.optimize.choice import Candidate
from cuasmrl.optimize.optimizer import Optimized, Played, Watch, optimize, resume
from cuasmrl.optimize.request import DEFAULT_BUDGET, Request, default_agent
from cuasmrl.optimize.subject import Subject, prepare

__all__ = [
    "DEFAULT_BUDGET", "Candidate", "Optimized", "Played", "Request", "Subject", "Watch", "default_agent",
    "optimize", "prepare", "resume",
]  # fmt: skip
