"""Products of warpgroups: an engine of the SM that works beside the warps, and what awaits it.

The four warps of a warpgroup issue a product each by itself; it begins when the last of them has, and when
the engine is through with those before. How long a warp that awaits a group has to wait is known when all
four have issued the last product of that group: until then it is parked.

Products of tcgen05 are ordered by one warp, which does not wait; who awaits them waits for an mbarrier.

In compiled functions `g` is the record of a warpgroup, `p` that of an instruction, `w` that of a warp.
"""

from cuasmrl.compiled import compiled, inlined
from cuasmrl.gpu.timing.async_records import Happening, Side
from cuasmrl.gpu.timing.code import Int
from cuasmrl.gpu.timing.machine import Layout, Machine
from cuasmrl.gpu.timing.memory import take_port
from cuasmrl.gpu.timing.records import (
    GROUPS_KNOWN,
    PRODUCTS_AHEAD,
    SIXTEENTH,
    SUB_CORES,
    WARPS_OF_GROUP,
    Cause,
    Row,
    Sm,
    Squad,
    Warp,
)
from cuasmrl.gpu.timing.waits import resume, up

_FEW_ROWS = 64
_SQUAD_WIDTH, _WARP_WIDTH = int(Squad.WIDTH), int(Warp.WIDTH)


@inlined
def squad_of(layout: Layout, state: Int, w: int) -> int:
    """The record of a warp's warpgroup."""
    first = w - state[w + Warp.NUMBER] % WARPS_OF_GROUP * _WARP_WIDTH
    place: int = layout.squads + (first - layout.warps) // _WARP_WIDTH * _SQUAD_WIDTH
    return place


@compiled
def begin_squads(layout: Layout, state: Int, first: int, warps: int) -> None:
    """A block starts with nothing in flight; `first` is the record of its first warp."""
    for k in range(0, warps, WARPS_OF_GROUP):
        g = layout.squads + ((first - layout.warps) // _WARP_WIDTH + k) * _SQUAD_WIDTH
        for field in range(g, g + _SQUAD_WIDTH):
            state[field] = 0
        state[g + Squad.MEMBERS] = min(WARPS_OF_GROUP, warps - k)


@compiled
def send_product(code: Int, layout: Layout, state: Int, p: int, w: int, now: int) -> None:
    """A warp issues its part of a product, which begins with the last part."""
    g, member = squad_of(layout, state, w), state[w + Warp.NUMBER] % WARPS_OF_GROUP
    number = state[g + Squad.ISSUED + member]
    if number - state[g + Squad.BEGUN] >= PRODUCTS_AHEAD:
        # No room: whoever awaits it does so for ever, and the replay is seen to stand still.
        return
    state[g + Squad.ISSUED + member] = number + 1
    state[g + Squad.SENT + member] += code[p + Row.CLOSES]
    place = number % PRODUCTS_AHEAD
    state[g + Squad.ARRIVED + place] += 1
    if state[g + Squad.ARRIVED + place] < state[g + Squad.MEMBERS]:
        return
    state[g + Squad.ARRIVED + place] = 0
    state[g + Squad.BEGUN] += 1
    start = max(now * SIXTEENTH, state[Sm.ENGINE_FREE])
    end = start + code[p + Row.INTERVAL]
    fed = feed(state, start // SIXTEENTH, code[p + Row.INTERVAL] // SIXTEENTH, code[p + Row.TURNS])
    end = max(end, fed * SIXTEENTH)
    state[Sm.ENGINE_FREE] = end
    if code[p + Row.CLOSES]:
        done = up(end) + code[p + Row.RAW]
        state[g + Squad.DONE + state[g + Squad.CLOSED] % GROUPS_KNOWN] = done
        state[g + Squad.CLOSED] += 1
        release(code, layout, state, g, w - member * _WARP_WIDTH, now)


@compiled
def multiply(
    code: Int, work: Int, machine: Machine, state: Int, p: int, s: int, e: int, accepted: int
) -> None:
    """A product that one warp orders (tcgen05): it begins when those before are done.

    `s` is what the warp has beside it, `e` the order.
    """
    start = max(accepted * SIXTEENTH, state[Sm.ENGINE_FREE])
    turns = work[e + Happening.BYTES] // machine.shared_bytes
    interval = max(work[e + Happening.COUNT] * code[p + Row.INTERVAL], turns * SIXTEENTH)
    fed = feed(state, start // SIXTEENTH, interval // SIXTEENTH, turns)
    state[Sm.ENGINE_FREE] = max(start + interval, fed * SIXTEENTH)
    latency = code[p + Row.RAW] if work[e + Happening.PHASE] > _FEW_ROWS else code[p + Row.AHEAD]
    state[s + Side.PRODUCTS] = max(state[s + Side.PRODUCTS], up(state[Sm.ENGINE_FREE]) + latency)


@inlined
def feed(state: Int, start: int, interval: int, turns: int) -> int:
    """Take turns of the data port for the tiles of a product, spread over its time; says when they end."""
    end = start
    for k in range(turns):
        end = take_port(state, max(end, start + k * interval // turns), 1) + 1
    return end


@inlined
def release(code: Int, layout: Layout, state: Int, g: int, first: int, now: int) -> None:
    """The end of a group is known: its warps that are parked for it learn when they may go on."""
    for k in range(state[g + Squad.MEMBERS]):
        target = state[g + Squad.AWAITED + k]
        if 0 < target <= state[g + Squad.CLOSED]:
            w = first + k * _WARP_WIDTH
            set_end(state, g, w, target)
            resume(code, layout, state, w)
            state[g + Squad.AWAITED + k] = 0
    for next_of_core in range(layout.nexts, layout.nexts + SUB_CORES):
        state[next_of_core] = min(state[next_of_core], now + 1)


@inlined
def set_end(state: Int, g: int, w: int, target: int) -> None:
    state[w + Warp.COPIES_END] = state[g + Squad.DONE + (target - 1) % GROUPS_KNOWN]
    state[w + Warp.COPIES_END_CAUSE] = Cause.PRODUCT


@compiled
def await_products(code: Int, layout: Layout, state: Int, p: int, w: int) -> None:
    """A warp awaits all but some groups of products; it is parked if nobody knows yet for how long."""
    g, member = squad_of(layout, state, w), state[w + Warp.NUMBER] % WARPS_OF_GROUP
    target = state[g + Squad.SENT + member] - code[p + Row.DEPBAR_COUNT]
    if target > state[g + Squad.CLOSED]:
        state[g + Squad.AWAITED + member] = target
    elif target > 0:
        set_end(state, g, w, target)


@compiled
def is_parked(layout: Layout, state: Int, w: int) -> bool:
    g = squad_of(layout, state, w)
    return bool(state[g + Squad.AWAITED + state[w + Warp.NUMBER] % WARPS_OF_GROUP])
