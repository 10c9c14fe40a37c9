"""Runs on disk: what was asked for, every evaluation, the best schedule, the verdict; and how to go on."""

from cuasmrl.optimize.runs.config import RunConfig, versions
from cuasmrl.optimize.runs.directory import RunDirectory
from cuasmrl.optimize.runs.log import Log
from cuasmrl.optimize.runs.schedules import schedule_from, schedule_to

__all__ = ["Log", "RunConfig", "RunDirectory", "schedule_from", "schedule_to", "versions"]
