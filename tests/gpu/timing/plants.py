"""Schedules made wrong on purpose: one edit that takes away what kept two instructions apart."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

from cuasmrl.binary.sass import Control, Instruction, Order
from cuasmrl.schedule import Schedule, control_flow

Plant = Callable[[Schedule, random.Random], Schedule]


def shorter_stall(schedule: Schedule, rng: random.Random) -> Schedule:
    """A producer stalls less than it did."""
    i = rng.choice([i for i in _code(schedule) if i.defs and i.control.stall > 1])
    return _edited(schedule, i, replace(i.control, stall=rng.randrange(1, i.control.stall)))


def lost_wait(schedule: Schedule, rng: random.Random) -> Schedule:
    """An instruction no longer waits for one of its scoreboards."""
    i = rng.choice([i for i in _code(schedule) if i.control.wait_mask])
    board = rng.choice(i.control.waits)
    return _edited(schedule, i, replace(i.control, wait_mask=i.control.wait_mask & ~(1 << board)))


def lost_scoreboard(schedule: Schedule, rng: random.Random) -> Schedule:
    """A result, or the reading of sources, is no longer announced."""
    i = rng.choice([i for i in _code(schedule) if i.control.sets])
    silent = [replace(i.control, write_barrier=None), replace(i.control, read_barrier=None)]
    return _edited(schedule, i, rng.choice([control for control in silent if control != i.control]))


def swapped_neighbours(schedule: Schedule, rng: random.Random) -> Schedule:
    """A reader stands before the producer next to it; control bits go with them."""
    code = schedule.listing.instructions
    heads = {block.start for block in control_flow(schedule.listing)}
    readers = [
        i
        for i in _code(schedule)
        if i.index not in heads
        and Order.FREE is i.order is code[i.index - 1].order
        and {d.register for d in code[i.index - 1].defs} & {u.register for u in i.uses}
    ]
    place = rng.choice(readers).index
    order = list(schedule.order)
    order[place - 1], order[place] = order[place], order[place - 1]
    return schedule.replaced(order=order)


PLANTS: tuple[Plant, ...] = (shorter_stall, lost_wait, lost_scoreboard, swapped_neighbours)


def _code(schedule: Schedule) -> tuple[Instruction, ...]:
    """What can be reached: behind the last EXIT there is only alignment."""
    code = schedule.listing.instructions
    return code[: max(i.index for i in code if i.opcode == "EXIT")]


def _edited(schedule: Schedule, i: Instruction, control: Control) -> Schedule:
    controls = list(schedule.controls)
    controls[i.index] = control
    return schedule.replaced(controls=controls)
