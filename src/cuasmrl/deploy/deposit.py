"""An accepted result on its way into the store."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cuasmrl.binary.cubin import Cubin
from cuasmrl.deploy.store import Entry, Store, code_key
from cuasmrl.deploy.store.allowed import is_modelled, measured_on
from cuasmrl.deploy.store.proof import prove
from cuasmrl.gpu.devices.rounds import MeasuredGain
from cuasmrl.optimize.optimizer import Optimized


def deposit(found: Optimized, store: Store, origin: Mapping[str, Any] | None = None) -> Entry | None:
    """The entry that is in the store afterwards, so that its code waits no longer; None if there is no gain.

    A result that the store has already is replaced by a faster one by the same device and GPU, or by one of
    another, but a measured result never by a modelled one.
    """
    entry = shelve(found, store, origin)
    if entry is not None:
        store.forget_recorded(entry.key)
    return entry


def shelve(found: Optimized, store: Store, origin: Mapping[str, Any] | None = None) -> Entry | None:
    """As `deposit`, but what was recorded of this code stays, for who still plays on its other kernels."""
    if found.cubin is None:
        return None
    original = found.subject.kernel.cubin.data
    made = Entry.of(
        original,
        found.cubin.read_bytes(),
        _measurement(found),
        {"run": found.config.as_dict(), "origin": dict(origin or {})},
    )
    before = store.find(code_key(original))
    if before is not None:
        if _stays(before, made):
            return before
        made = with_other_kernels(made, before)
    entry = prove(made)
    store.keep(entry)
    return entry


def _measurement(found: Optimized) -> dict[str, Any]:
    verdict = found.verdict
    gain = verdict.gain
    assert gain is not None
    figures = {
        "kernel": verdict.kernel,
        "device": verdict.device,
        "unit": verdict.unit,
        "gain": gain.median,
        "interval": [gain.low, gain.high],
        "problem": found.config.problem,
    }
    if isinstance(gain, MeasuredGain):
        times = {"original": gain.old_time, "optimised": gain.new_time}
        return {**figures, **times, "gpu": gpu_of(gain)}
    return {**figures, "original": verdict.before, "optimised": verdict.after}


def gpu_of(gain: MeasuredGain) -> dict[str, str]:
    """What measured it, as an entry has it."""
    return {"name": gain.gpu, "compute_capability": f"{gain.arch // 10}.{gain.arch % 10}"}


def _stays(before: Entry, made: Entry) -> bool:
    """Is what the store has worth more than what was found now?"""
    old, new = before.measurement, made.measurement
    if is_modelled(old) != is_modelled(new):
        return is_modelled(new)
    same = all(old.get(name) == new.get(name) for name in ("kernel", "device", "gpu", "unit", "problem"))
    return same and before.gain >= made.gain


def with_other_kernels(made: Entry, before: Entry) -> Entry:
    """Where a cubin holds several kernels, what was found for the others stays if it ranks with it."""
    kernel = made.measurement["kernel"]
    alone = made.kernels == (kernel,) or made.original != before.original
    if alone or _rank(made) != _rank(before):
        return made
    joined = bytearray(before.optimised)
    layout = Cubin.parse(made.original, "the original")
    for name in (f".text.{kernel}", f".nv.info.{kernel}"):
        section = layout.section(name)
        if section is not None:
            part = slice(section.offset, section.offset + section.size)
            joined[part] = made.optimised[part]
    provenance = {**made.provenance, "other kernels": {**before.provenance, **before.measurement}}
    return Entry.of(made.original, bytes(joined), made.measurement, provenance)


def _rank(entry: Entry) -> tuple[bool, str | None]:
    """Modelled or measured, and on what GPU: one entry has one answer for all its kernels."""
    return is_modelled(entry.measurement), measured_on(entry.measurement)
