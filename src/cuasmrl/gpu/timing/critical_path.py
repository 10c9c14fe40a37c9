"""How soon a warp can be through its path under any legal schedule, and what it takes on its way.

A legal schedule permutes the instructions of a block and edits control bits. What follows holds in all of
them, and nothing else is counted here:

* a result is read after it is there: after the latency of an idle machine, or after the smaller of the mined
  distance and the distance that the compiler left;
* blocks follow each other on the traced path, and nothing crosses a pinned instruction: the stretches in
  between are called regions;
* memory accesses and synchronisation keep their order; a barrier opens some cycles after a warp came to it,
  and copies that a DEPBAR waits for have arrived;
* an instruction stalls at least as long as compilers let it;
* instructions of one warp for one unit follow each other at the pace of the unit.
"""

from cuasmrl.compiled import compiled
from cuasmrl.gpu.timing.code import Int
from cuasmrl.gpu.timing.dataflow import Fact, Order, define
from cuasmrl.gpu.timing.demand import BEHIND, Demand, demand_of, is_cached_load
from cuasmrl.gpu.timing.records import BOARDS, IN_FLIGHT, SIXTEENTH, Job, Kind, Row, Unit, Way
from cuasmrl.gpu.timing.survey import (
    PACED,
    Code,
    Move,
    Now,
    Past,
    Survey,
    Taken,
    Use,
    Walker,
    World,
    new_walker,
)

_DEPBAR_STALL = 4
"""As in the replay: a DEPBAR that stalls less holds nobody up."""
_VISIT_WIDTH = 2


@compiled
def walk(world: World, warp: int) -> None:
    """Follow the path of one traced warp, in the order of the original."""
    rows, moves, work = world.code.rows, world.code.moves, world.work
    start, end = work[work[Job.PATH_STARTS] + warp], work[work[Job.PATH_STARTS] + warp + 1]
    walker = new_walker(world.survey, len(rows), (end - start) // _VISIT_WIDTH, warp)
    now = walker.now
    following = -1
    for visit in range(start, end, _VISIT_WIDTH):
        now[Now.VISIT] = (visit - start) // _VISIT_WIDTH
        walker.visits[now[Now.VISIT], 0] = walker.taken[Use.BEHIND_QUEUE :, Taken.TOTAL]
        i = work[work[Job.BLOCK_STARTS] + work[visit]] // Row.WIDTH
        if following not in (-1, i):
            now[Now.NEXT] = max(now[Now.NEXT], now[Now.LATEST] + world.machine.branch_taken)
        last = False
        while not last:
            if moves[i, Move.FENCE]:
                close_region(walker.now, walker.taken)
            step(world, walker, visit, i)
            last = rows[i, Row.LAST] != 0
            i += 1
        following = i
    world.survey.length[warp] = now[Now.LATEST] + 1
    world.survey.l2_visits[warp] = max(0, now[Now.GATES + Demand.L2])
    for k in range(BEHIND):
        gate = now[Now.GATES + k]
        if gate >= 0:
            walker.taken[Use.BEHIND_QUEUE + k, Taken.AWAITED] = walker.visits[gate, :, k].sum()


@compiled
def step(world: World, walker: Walker, visit: int, i: int) -> None:
    """The next instruction of the path."""
    rows, moves, past, now = world.code.rows, world.code.moves, walker.past, walker.now
    order = world.code.flow.facts[i, Fact.ORDER]
    for board in range(BOARDS):
        if rows[i, Row.WAIT] >> board & 1:
            now[Now.WAITED + board] = now[Now.NUMBER]
    at = max(now[Now.ENTRY], results(world, walker, i))
    if order != Order.FREE:
        at = max(at, now[Now.SYNCED])
    if order == Order.SYNC:
        at = max(at, now[Now.ACCESSED] + 1)
    kind, raw = rows[i, Row.KIND], rows[i, Row.RAW]
    past[i, Past.ISSUED] = at
    past[i, Past.DONE] = at + (raw // SIXTEENTH if kind == Kind.TENSOR else raw)
    past[i, Past.CLOCK] = now[Now.CLOCK]
    past[i, Past.NUMBER] = now[Now.NUMBER]
    past[i, Past.VISIT] = now[Now.VISIT]
    past[i, Past.IS_AWAITED] = 0
    occupy(world.code, walker.taken, i, at)
    if kind == Kind.QUEUED:
        send(world, walker, visit, i)
    if order == Order.SYNC:
        synchronise(world, walker, i, at)
    elif order == Order.MEMORY:
        now[Now.ACCESSED] = max(now[Now.ACCESSED], at)
    define(world.code.flow, walker.writers, i)
    now[Now.NUMBER] += 1
    now[Now.CLOCK] += rows[i, Row.STALL]
    now[Now.PASSED] += moves[i, Move.STALL]
    now[Now.NEXT] = max(now[Now.NEXT], at + moves[i, Move.STALL])
    now[Now.LATEST] = max(now[Now.LATEST], at)


@compiled
def results(world: World, walker: Walker, i: int) -> int:
    """When everything that an instruction reads can be there."""
    rows, flow, past, now, writers = world.code.rows, world.code.flow, walker.past, walker.now, walker.writers
    ready = 0
    for u in range(flow.facts[i, Fact.USES], flow.facts[i, Fact.USES_END]):
        register = flow.uses[u, 0]
        for k in range(1, writers[register, 0] + 1):
            d = writers[register, k]
            p = flow.defs[d, 2]
            if flow.facts[p, Fact.IS_VARIABLE]:
                # In the model a result may overtake one that is announced by the scoreboard of another.
                board = rows[p, Row.WRITE_BOARD]
                if board >= 0 and now[Now.WAITED + board] > past[p, Past.NUMBER]:
                    ready = max(ready, past[p, Past.DONE])
                    if rows[p, Row.KIND] == Kind.QUEUED and not past[p, Past.IS_AWAITED]:
                        await_load(world.survey, walker, p)
            else:
                kept = now[Now.CLOCK] - past[p, Past.CLOCK]
                need = min(flow.needs[flow.defs[d, 1], flow.uses[u, 1]], kept)
                ready = max(ready, past[p, Past.ISSUED] + need)
                if rows[p, Row.KIND] == Kind.TENSOR:
                    ready = max(ready, past[p, Past.DONE])
    return ready


@compiled
def await_load(survey: Survey, walker: Walker, i: int) -> None:
    """Somebody waits for a load: what came to the same ports before it has had its turn by then."""
    past, taken, now = walker.past, walker.taken, walker.now
    past[i, Past.IS_AWAITED] = 1
    visit = past[i, Past.VISIT]
    latency = past[i, Past.DONE] - past[i, Past.ISSUED]
    for k in range(BEHIND):
        amount = past[i, Past.AMOUNTS + k]
        if amount or (k == Demand.L2 and past[i, Past.MISSES]):
            walker.visits[visit, 1, k] += amount
            now[Now.GATES + k] = max(now[Now.GATES + k], visit)
            use = Use.BEHIND_QUEUE + k
            taken[use, Taken.LATENCY] = min(taken[use, Taken.LATENCY], latency)
    if past[i, Past.MISSES]:
        survey.l2_loads[past[i, Past.ACCESS]] = 1


@compiled
def close_region(now: Int, taken: Int) -> None:
    """Behind everything so far: stall counts, results, synchronisation, and units at their pace."""
    entry = max(now[Now.ENTRY] + now[Now.PASSED], now[Now.NEXT], now[Now.SYNCED])
    for use in range(PACED):
        busy = taken[use, Taken.REGION_TOTAL]
        if busy:
            if use == Use.FMA_PAIR:
                busy = (busy + 1) // 2
            busy -= taken[use, Taken.REGION_LARGEST]
            if use == Use.TENSOR:
                busy //= SIXTEENTH
            entry = max(entry, taken[use, Taken.REGION_FIRST] + busy + 1)
            taken[use, Taken.REGION_TOTAL] = 0
            taken[use, Taken.REGION_LARGEST] = 0
    now[Now.ENTRY] = entry
    now[Now.PASSED] = 0


@compiled
def take(taken: Int, use: int, amount: int, at: int) -> None:
    """An instruction that can issue in cycle `at` takes an amount of something."""
    taken[use, Taken.TOTAL] += amount
    taken[use, Taken.FIRST] = min(taken[use, Taken.FIRST], at)
    taken[use, Taken.LARGEST] = max(taken[use, Taken.LARGEST], amount)
    if taken[use, Taken.REGION_TOTAL] == 0:
        taken[use, Taken.REGION_FIRST] = at
    taken[use, Taken.REGION_FIRST] = min(taken[use, Taken.REGION_FIRST], at)
    taken[use, Taken.REGION_LARGEST] = max(taken[use, Taken.REGION_LARGEST], amount)
    taken[use, Taken.REGION_TOTAL] += amount


@compiled
def occupy(code: Code, taken: Int, i: int, at: int) -> None:
    """The issue slot of an instruction, its unit and its read ports."""
    rows = code.rows
    kind, unit, hold = rows[i, Row.KIND], rows[i, Row.UNIT], rows[i, Row.HOLD]
    take(taken, Use.ISSUE, 1, at)
    if kind == Kind.TENSOR:
        take(taken, Use.TENSOR, rows[i, Row.INTERVAL], at)
        if code.lone:
            take(taken, Use.TENSOR_FEED, rows[i, Row.SAME_WARP], at)
    elif kind == Kind.PRODUCT:
        take(taken, Use.ENGINE, rows[i, Row.INTERVAL], at)
    elif kind == Kind.PRODUCT_WAIT and rows[i, Row.DEPBAR_COUNT] == 0:
        taken[Use.ENGINE, Taken.AWAITED] = taken[Use.ENGINE, Taken.TOTAL]
    elif kind == Kind.QUEUED:
        take(taken, Use.MEMORY, 1, at)
    elif unit == Unit.FMA:
        if not rows[i, Row.LITE]:
            take(taken, Use.FMA, hold, at)
        if code.paired:
            take(taken, Use.FMA_PAIR, hold, at)
    elif unit != Unit.NONE:
        take(taken, unit - Unit.INT + Use.INT, hold, at)
    if kind not in (Kind.TENSOR, Kind.QUEUED, Kind.UNIT):
        for k in range(rows[i, Row.SOURCE_COUNT]):
            place = rows[i, Row.SOURCES + k] & 7
            # A reuse flag saves one later read at most.
            if not rows[i, Row.REUSE] >> (place >> 1) & 1:
                take(taken, Use.EVEN_PORT + (place & 1), 1, at)


@compiled
def send(world: World, walker: Walker, visit: int, i: int) -> None:
    """What a memory instruction takes behind the queue, and when its data can be there."""
    work, rows, past, now = world.work, world.code.rows, walker.past, walker.now
    slot, at = rows[i, Row.SLOT], past[i, Past.ISSUED]
    place = work[Job.ACCESSES] + work[visit + 1] + slot if slot >= 0 else -1
    amounts = past[i, Past.AMOUNTS :]
    misses = demand_of(rows, work, world.machine, world.sectors, place, i, amounts)
    past[i, Past.ACCESS], past[i, Past.MISSES] = place, misses
    if misses:
        past[i, Past.DONE] = max(past[i, Past.DONE], at + world.code.far)
    for k in range(BEHIND):
        # What loads take of L2 is counted elsewhere; when the first of them comes, here.
        if amounts[k] or (k == Demand.L2 and is_cached_load(rows, i)):
            take(walker.taken, Use.BEHIND_QUEUE + k, amounts[k], at)
    if rows[i, Row.WAY] == Way.COPY:
        now[Now.COPIES] = max(now[Now.COPIES], past[i, Past.DONE])
        if misses:
            now[Now.COPY_VISIT] = now[Now.VISIT]


@compiled
def synchronise(world: World, walker: Walker, i: int, at: int) -> None:
    """What a barrier, the end of a group of copies or a wait for groups holds up."""
    now, groups, rows = walker.now, walker.groups, world.code.rows
    kind = rows[i, Row.KIND]
    free = at + 1
    if kind == Kind.BARRIER:
        free = at + max(1, world.machine.bar_latency)
    elif kind == Kind.GROUP:
        groups[now[Now.GROUPS] % IN_FLIGHT, 0] = now[Now.COPIES]
        groups[now[Now.GROUPS] % IN_FLIGHT, 1] = now[Now.COPY_VISIT]
        now[Now.GROUPS] += 1
    elif kind == Kind.DEPBAR and world.code.moves[i, Move.STALL] >= _DEPBAR_STALL:
        board = rows[i, Row.DEPBAR_BOARD]
        arrived = now[Now.GROUPS] - rows[i, Row.DEPBAR_COUNT]
        if board >= 0:
            now[Now.WAITED + board] = now[Now.NUMBER]
        elif arrived > 0:
            k = (arrived - 1) % IN_FLIGHT
            free = max(free, groups[k, 0])
            if groups[k, 1] >= 0:
                await_copies(now, walker.taken, groups[k, 1], world.code.far)
    now[Now.SYNCED] = max(now[Now.SYNCED], free)


@compiled
def await_copies(now: Int, taken: Int, visit: int, latency: int) -> None:
    """Somebody waits for the copies of a visit; what came in earlier visits is sure to be before them."""
    for k in (Demand.TAGS, Demand.L2):
        now[Now.GATES + k] = max(now[Now.GATES + k], visit)
        use = Use.BEHIND_QUEUE + k
        taken[use, Taken.LATENCY] = min(taken[use, Taken.LATENCY], latency)
