"""When an operation is over: a result is there, a source has been read. Compiled, for the sanitizer.

In compiled functions `j` and `k` are numbers of steps, `t` is the place of a `Touch`, arrays are pointers.
"""

from enum import IntEnum
from typing import NamedTuple

from cuasmrl.binary.sass.control import NO_BARRIER
from cuasmrl.compiled import compiled
from cuasmrl.gpu.timing.arrivals import Arrivals, Clock, Touch, Trait
from cuasmrl.gpu.timing.code import Int

RAW, WAW, WAR = 0, 1, 2
_BOARDS = 63


class Step(IntEnum):
    """An issue of the warp that is being followed."""

    INSTRUCTION = 0
    CYCLE = 1
    COMPLETE = 2
    FREED = 3
    CLOCK = 4
    """When it would have issued by the stall counts of the listing alone."""
    VERSION = 5
    """How often its guard had been written before."""
    ROW = 6
    """Of the log."""
    WIDTH = 7


class Sight(NamedTuple):
    """What is known while a warp is followed."""

    steps: Int
    controls: Int
    """Control bits of each instruction in this schedule."""
    pending: Int
    writes: Int
    """How often each register has been written."""
    meetings: Int
    instructions: int


_STEP, _TRAIT = int(Step.WIDTH), int(Trait.WIDTH)


@compiled
def trait(a: Arrivals, sight: Sight, j: int, field: int) -> int:
    value: int = a.traits[sight.steps[j * _STEP + Step.INSTRUCTION] * _TRAIT + field]
    return value


@compiled
def same_guard(a: Arrivals, sight: Sight, j: int, k: int) -> bool:
    """Are both guarded by the same value of the same register, with whatever sign?"""
    guard = trait(a, sight, j, Trait.GUARD)
    same: bool = sight.steps[j * _STEP + Step.VERSION] == sight.steps[k * _STEP + Step.VERSION]
    return guard >= 0 and guard == trait(a, sight, k, Trait.GUARD) and same


@compiled
def same_sign(a: Arrivals, sight: Sight, j: int, k: int) -> bool:
    return trait(a, sight, j, Trait.INVERTED) == trait(a, sight, k, Trait.INVERTED)


@compiled
def implies(a: Arrivals, sight: Sight, j: int, k: int) -> bool:
    """Was step k executed if step j was?"""
    if trait(a, sight, k, Trait.GUARD) < 0:
        return True
    return same_guard(a, sight, j, k) and same_sign(a, sight, j, k)


@compiled
def in_order(a: Arrivals, sight: Sight, j: int, k: int, hazard: int) -> bool:
    """Does a queue keep the two in order? Some return so; the memory pipe reads so, whatever the queue."""
    queue = trait(a, sight, j, Trait.QUEUE)
    if queue >= 0 and trait(a, sight, k, Trait.QUEUE) == queue:
        return hazard == WAR or trait(a, sight, j, Trait.RETURNS) == 1
    return hazard == WAR and trait(a, sight, j, Trait.MEMORY) + trait(a, sight, k, Trait.MEMORY) == 2


@compiled
def waits(a: Arrivals, sight: Sight, j: int) -> int:
    """Scoreboards that a step waits for, as a mask."""
    mask: int = sight.controls[sight.steps[j * _STEP + Step.INSTRUCTION]] >> 11 & _BOARDS
    return mask | trait(a, sight, j, Trait.WAITS)


@compiled
def announces(sight: Sight, j: int, hazard: int) -> int:
    """Scoreboards that say when a step has its result; for its sources, those of either sort."""
    bits = sight.controls[sight.steps[j * _STEP + Step.INSTRUCTION]]
    mask: int = 1 << (bits >> 5 & NO_BARRIER)
    if hazard == WAR:
        mask |= 1 << (bits >> 8 & NO_BARRIER)
    return mask & _BOARDS


@compiled
def vouches(a: Arrivals, sight: Sight, j: int, k: int, hazard: int) -> bool:
    """Is step j over when step k behind it is? A result needs a result that was on its way for sure."""
    if not in_order(a, sight, j, k, hazard):
        return False
    return hazard == WAR or (trait(a, sight, k, Trait.RETURNS) == 1 and implies(a, sight, j, k))


@compiled
def announced(a: Arrivals, sight: Sight, j: int, second: int, hazard: int) -> int:
    """When an operation of variable latency is over for a later step.

    Compilers may wait for another one behind it in the queue instead. Hardware keeps these in order, the
    model does not: so what somebody has waited for speaks for all in front of it.
    """
    field = Step.FREED if hazard == WAR else Step.COMPLETE
    end: int = sight.steps[j * _STEP + field]
    waited = waits(a, sight, second)
    for k in range(second - 1, j, -1):
        if waited & announces(sight, k, hazard) and vouches(a, sight, j, k, hazard):
            end = min(end, sight.steps[k * _STEP + field])
        waited |= waits(a, sight, k)
    return end


@compiled
def yardstick(a: Arrivals, sight: Sight, j: int, k: int, latency: int) -> int:
    """Cycles from step j of fixed latency to step k.

    Where the guards of the two may exclude each other, the listing is believed if it has less.
    """
    if trait(a, sight, j, Trait.GUARD) < 0 or implies(a, sight, j, k):
        return latency
    listed: int = sight.steps[k * _STEP + Step.CLOCK] - sight.steps[j * _STEP + Step.CLOCK]
    return latency if listed < 0 else min(latency, listed)


@compiled
def read_end(a: Arrivals, sight: Sight, j: int, t: int, second: int, kind: int) -> int:
    """From when on a later step may overwrite a source of step j."""
    if a.uses[t + Touch.CLOCK] == Clock.FREED:
        return announced(a, sight, j, second, WAR)
    cycle: int = sight.steps[j * _STEP + Step.CYCLE]
    return cycle + yardstick(a, sight, j, second, a.free_after[a.uses[t + Touch.KIND] * a.kinds + kind])


@compiled
def result_end(a: Arrivals, sight: Sight, j: int, t: int, second: int, kind: int, hazard: int) -> int:
    """From when on a later step may read, or overwrite, a result of step j."""
    freed: int = sight.steps[j * _STEP + Step.FREED]
    if a.defs[t + Touch.CLOCK] == Clock.FREED:
        return freed
    if a.defs[t + Touch.CLOCK] == Clock.COMPLETE:
        return announced(a, sight, j, second, hazard)
    pair = a.defs[t + Touch.KIND] * a.kinds + kind
    latency = a.read_after[pair] if hazard == RAW else a.overwrite_after[pair]
    cycles = yardstick(a, sight, j, second, latency)
    complete: int = sight.steps[j * _STEP + Step.COMPLETE]
    cycle: int = sight.steps[j * _STEP + Step.CYCLE]
    return max(complete, cycle + cycles)
