"""Schedules as plain data: the order, and the control bits field by field."""

from __future__ import annotations

from typing import Any

from cuasmrl.binary.sass import Control, Listing
from cuasmrl.errors import CuasmrlError
from cuasmrl.schedule import Schedule


def schedule_to(schedule: Schedule) -> dict[str, Any]:
    return {
        "key": schedule.key.hex(),
        "order": list(schedule.order),
        "controls": [_fields(control) for control in schedule.controls],
    }


def schedule_from(listing: Listing, data: Any, where: str) -> Schedule:
    """The schedule of this listing that was written; refused if it is one of something else."""
    try:
        order = tuple(int(i) for i in data["order"])
        controls = tuple(Control(*fields) for fields in data["controls"])
        key = str(data["key"])
    except (KeyError, TypeError, ValueError) as error:
        raise CuasmrlError(f"{where} holds no schedule: {error!r}") from None
    if sorted(order) != list(range(len(listing.instructions))) or len(controls) != len(order):
        raise CuasmrlError(f"{where} holds a schedule of another kernel than {listing.kernel.name}")
    schedule = Schedule(listing, order, controls)
    if schedule.key.hex() != key:
        raise CuasmrlError(f"{where} is damaged: the schedule does not have the key it says")
    return schedule


def _fields(control: Control) -> list[int | bool | None]:
    return [
        control.stall,
        control.yield_,
        control.write_barrier,
        control.read_barrier,
        control.wait_mask,
        control.reuse,
    ]
