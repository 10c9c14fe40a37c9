"""Blocks, dependences, legal moves: the schedule of a kernel and how it may change."""

from cuasmrl.schedule.blocks import Block, control_flow, loop_depths
from cuasmrl.schedule.board import Board
from cuasmrl.schedule.dependences import Edge, Graph, Reason
from cuasmrl.schedule.matching import schedule_of
from cuasmrl.schedule.moves import Drag, Move, SetReuse, SetStall, SetYield, Shift, Swap, SwapInheriting, play
from cuasmrl.schedule.reassignment import Scoreboards
from cuasmrl.schedule.schedule import Schedule

__all__ = [
    "Block", "Board", "Drag", "Edge", "Graph", "Move", "Reason", "Schedule", "Scoreboards", "SetReuse",
    "SetStall", "SetYield", "Shift", "Swap", "SwapInheriting", "control_flow", "loop_depths", "play",
    "schedule_of",
]  # fmt: skip
