"""A pool of workers behind a `Timer`: one kernel's candidates are timed by processes or on a Ray cluster.

Answers are those of one process: which worker timed a schedule, in what order, and what died meanwhile does
not show in them.
"""

from cuasmrl.gpu.devices.pool.crew import Alone, Crew, Processes, check_memory, check_workers, cores
from cuasmrl.gpu.devices.pool.replica import Replica, replica_of
from cuasmrl.gpu.devices.pool.timer import PooledTimer

__all__ = [
    "Alone", "Crew", "PooledTimer", "Processes", "Replica", "check_memory", "check_workers", "cores",
    "replica_of",
]  # fmt: skip
