"""Exchanges between the lanes of a warp: votes, shuffles, matches, reductions."""

from collections.abc import Callable
from typing import Any

import numpy as np

from cuasmrl.gpu.emulator.faults import UnsupportedError
from cuasmrl.gpu.emulator.forms import Form, Step
from cuasmrl.gpu.emulator.semantics.float_extrema import FloatExtremum
from cuasmrl.gpu.emulator.semantics.registry import executes
from cuasmrl.gpu.emulator.values import LANES, Array, Mask, Value, constant
from cuasmrl.gpu.emulator.warps import Warps

_LANE = np.arange(LANES, dtype=np.int32).reshape(1, 1, LANES)


def over_lanes(value: Array) -> Array:
    """All 32 lanes of a value, also of one that is the same in all."""
    return np.broadcast_to(value, (*value.shape[:2], LANES))


def packed(mask: Mask) -> Value:
    """One bit per lane, as one number per warp."""
    bits: Value = np.packbits(over_lanes(mask), axis=2, bitorder="little").view(np.uint32)
    return bits


def _any(mask: Mask) -> Mask:
    return mask if mask.shape[2] == 1 else np.logical_or.reduce(mask, axis=2, keepdims=True)


def _votes(name: str, mask: Mask, active: Mask) -> Mask:
    match name:
        case "ANY":
            return _any(mask & active)
        case "ALL":
            return ~_any(~mask & active)
    return ~(_any(mask & active) & _any(~mask & active))


@executes("VOTE", "VOTEU")
def vote(form: Form) -> Step:
    """Does the predicate hold in any, in all, equally in all (.EQ) active lanes; and in which?"""
    name = form.choose("ANY", "ALL", "EQ")
    mask, predicate = form.predicate(0), form.result_predicate(0)
    if all(destination.is_predicate for destination in form.destinations):
        ballot = None
    else:
        ballot = form.result()
        if name == "EQ":
            raise UnsupportedError("ballot of .EQ")

    def step(w: Warps) -> None:
        value = mask(w)
        lanes = packed(value & w.active) if ballot is not None else None
        if predicate is not None:
            predicate(w, _votes(name, value, w.active))
        if ballot is not None and lanes is not None:
            ballot(w, lanes)

    return step


@executes("SHFL")
def shuffle(form: Form) -> Step:
    """Read a register of another lane; out of its segment a lane reads its own, and the predicate is false.

    A lane that does not execute gives what its register holds; hardware leaves it open.
    """
    mode = form.choose("IDX", "UP", "DOWN", "BFLY")
    source, lane, clamp = form.integer(0), form.integer(1), form.integer(2)
    write, predicate = form.result(), form.result_predicate(0)
    fixed = None
    if form.known(1) is not None and form.known(2) is not None:
        fixed = _origin(mode, constant(form.known(1) or 0), constant(form.known(2) or 0))

    def step(w: Warps) -> None:
        origin, inside = fixed or _origin(mode, lane(w), clamp(w))
        value = source(w)
        if value.shape[2] > 1:
            value = _taken(value, origin)
        write(w, value)
        if predicate is not None:
            predicate(w, inside)

    return step


def lanes_read(form: Form, w: Warps, value: Array) -> Array:
    """What a SHFL would give of another value than its source."""
    mode = form.choose("IDX", "UP", "DOWN", "BFLY")
    origin, _ = _origin(mode, form.integer(1)(w), form.integer(2)(w))
    return _taken(value, origin)


def _origin(mode: str, lane: Value, clamp: Value) -> tuple[Array, Mask]:
    """From which lane each lane reads, and whether that is inside its segment (PTX ISA, shfl)."""
    distance = (lane & np.uint32(0x1F)).view(np.int32)
    limit = (clamp & np.uint32(0x1F)).view(np.int32)
    segment = (clamp >> np.uint32(8) & np.uint32(0x1F)).view(np.int32)
    last = (_LANE & segment) | (limit & ~segment)
    match mode:
        case "UP":
            origin = _LANE - distance
            inside = origin >= last
        case "DOWN":
            origin = _LANE + distance
            inside = origin <= last
        case "BFLY":
            origin = _LANE ^ distance
            inside = origin <= last
        case _:
            origin = (_LANE & segment) | (distance & ~segment)
            inside = origin <= last
    return np.where(inside, origin, _LANE).astype(np.intp), inside


def _taken(value: Array, lanes: Array) -> Array:
    """`value` of the given lanes of the same warp."""
    if lanes.shape[:2] == (1, 1):
        return value[:, :, lanes[0, 0]]
    warps = np.broadcast_shapes(value.shape[:2], lanes.shape[:2])
    return np.take_along_axis(
        np.broadcast_to(value, (*warps, value.shape[2])),
        np.broadcast_to(lanes, (*warps, lanes.shape[2])),
        axis=2,
    )


def _of_first(value: Array, active: Mask) -> Array:
    """The value of the first active lane, one per warp."""
    if value.shape[2] == 1:
        return value
    if active.shape[2] == 1:
        return value[:, :, :1]
    return _taken(value, active.argmax(axis=2)[:, :, None])


@executes("R2UR")
def to_uniform(form: Form) -> Step:
    """ptxas moves values that are the same in all lanes; where they are not we take the first active lane."""
    # .FILL brings back what a MOV.SPILL put aside; .BROADCAST stands under the predicate of one elected lane.
    form.ignore("FILL", "BROADCAST")
    if form.result_predicate(0) is not None:
        raise UnsupportedError("result predicate")
    read, write = form.integer(0), form.result()
    return lambda w: write(w, _of_first(read(w), w.active))


@executes("ELECT")
def elect(form: Form) -> Step:
    """The first active lane: a predicate that is true there only, and its number."""
    if form.known(0) != 1:
        raise UnsupportedError("election among some lanes")
    predicate, write = form.result_predicate(0), form.result()

    def step(w: Warps) -> None:
        leader = over_lanes(w.active).argmax(axis=2)[:, :, None]
        write(w, leader.astype(np.uint32))
        if predicate is not None:
            predicate(w, leader == _LANE)

    return step


@executes("MATCH")
def match(form: Form) -> Step:
    """Which active lanes hold the same value (.ANY); do all, and which are they (.ALL)?"""
    among_all = form.choose("ANY", "ALL") == "ALL"
    read: Callable[[Warps], Array] = form.long(0) if form.has("U64") else form.integer(0)
    write, predicate = form.result(), form.result_predicate(0)

    def any_step(w: Warps) -> None:
        value = over_lanes(read(w))
        same = (value[:, :, :, None] == value[:, :, None, :]) & w.active[:, :, None, :]
        write(w, np.packbits(same, axis=3, bitorder="little").view(np.uint32)[..., 0])

    def all_step(w: Warps) -> None:
        value = read(w)
        same = _votes("ALL", value == _of_first(value, w.active), w.active)
        write(w, packed(same & w.active))
        if predicate is not None:
            predicate(w, same)

    return all_step if among_all else any_step


_REDUCTIONS: dict[str, Any] = {
    "SUM": np.add, "MIN": np.minimum, "MAX": np.maximum, "AND": np.bitwise_and, "OR": np.bitwise_or,
    "XOR": np.bitwise_xor,
}  # fmt: skip


@executes("REDUX", "CREDUX")
def reduce(form: Form) -> Step:
    """One number per warp out of those of the active lanes. nvdisasm leaves out the name of AND."""
    if form.opcode == "CREDUX" and form.has("F32"):
        return _reduce_floats(form)
    name = form.choose("SUM", "MIN", "MAX", "OR", "XOR", default="AND")
    if form.opcode == "CREDUX" and name not in ("MIN", "MAX"):
        raise UnsupportedError("reduction")
    view: Any = np.int32 if form.has("S32") else np.uint32
    limits = np.iinfo(view)
    start = {"MIN": limits.max, "MAX": limits.min, "AND": limits.max if view is np.uint32 else -1}.get(
        name, 0
    )
    function = _REDUCTIONS[name]
    read, write = form.integer(0), form.result()

    def step(w: Warps) -> None:
        value, active = np.broadcast_arrays(over_lanes(read(w)).view(view), w.active)
        found = function.reduce(value, axis=2, keepdims=True, where=active, initial=start)
        write(w, found.astype(view).view(np.uint32))

    return step


def _reduce_floats(form: Form) -> Step:
    extremum = FloatExtremum.of(form)
    read, write = form.integer(0), form.result()

    def step(w: Warps) -> None:
        value, active = np.broadcast_arrays(over_lanes(read(w)), w.active)
        write(w, extremum.along(2, np.ascontiguousarray(value), active))

    return step
