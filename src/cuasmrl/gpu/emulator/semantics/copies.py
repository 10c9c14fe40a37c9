"""Asynchronous copies from global to shared memory, and waiting for them."""

import numpy as np

from cuasmrl.gpu.emulator.addresses import far, near
from cuasmrl.gpu.emulator.forms import Form, Step
from cuasmrl.gpu.emulator.semantics.registry import executes
from cuasmrl.gpu.emulator.values import TRUE
from cuasmrl.gpu.emulator.warps import Warps


@executes("LDGSTS")
def copy_to_shared(form: Form) -> Step:
    """Copy to shared memory; where the last predicate is false, write zeros and read nothing."""
    form.ignore("BYPASS", "ACCESS", "LTC64B", "LTC128B", "LTC256B", "EF", "EL", "NA", "ZFILL")
    target, source = near(form, 0), far(form, 1)
    size = {"32": 4, "64": 8, "128": 16}[form.choose("32", "64", "128", default="32")]
    present = form.optional_predicate(2, TRUE)
    index = form.instruction.index

    def step(w: Warps) -> None:
        machine, slab = w.machine, w.machine.slab
        active = slab.active(w.active)
        reading = slab.active(w.active & present(w))
        at, to = slab.flat(source(w)), slab.flat(target(w))
        machine.note_copy(index, at, reading, to, active, size)
        values = machine.memory.load(at, reading, size)
        machine.shared.copy(to, active, size, np.stack([value.reshape(-1) for value in values]))

    return step


@executes("LDGDEPBAR")
def close_group(form: Form) -> Step:
    """All copies a warp has issued since the last one become a group that can be waited for."""

    def step(w: Warps) -> None:
        w.machine.shared.committed[w.machine.warps_of(w)] += 1

    return step


def land(w: Warps, in_flight: int) -> None:
    """All but the last `in_flight` groups of these warps have arrived."""
    shared, warps = w.machine.shared, w.machine.warps_of(w)
    arrived = shared.committed[warps].astype(np.int64) - in_flight
    shared.landed[warps] = np.maximum(arrived, shared.landed[warps]).astype(np.uint32)
