"""An accepted result on its way into the store."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cuasmrl.binary.cubin import Cubin
from cuasmrl.deploy.store import Entry, Store, code_key
from cuasmrl.gpu.devices.rounds import MeasuredGain
from cuasmrl.optimize.optimizer import Optimized


def deposit(found: Optimized, store: Store, origin: Mapping[str, Any] | None = None) -> Entry | None:
    """The entry that is in the store afterwards; None if the result was not accepted.

    A result that the store has already, by the figures of the same device, is replaced by faster ones only.
    """
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
        if _is_as_fast(before, made):
            return before
        made = with_other_kernels(made, before)
    return store.put(made)


def _measurement(found: Optimized) -> dict[str, Any]:
    verdict = found.verdict
    assert verdict.gain is not None
    gain = verdict.gain
    measured = isinstance(gain, MeasuredGain)
    return {
        "kernel": verdict.kernel,
        "device": verdict.device,
        "unit": "microseconds" if measured else verdict.unit,
        "original": gain.old_time if isinstance(gain, MeasuredGain) else verdict.before,
        "optimised": gain.new_time if isinstance(gain, MeasuredGain) else verdict.after,
        "gain": gain.median,
        "interval": [gain.low, gain.high],
        "problem": found.config.problem,
    }


def _is_as_fast(before: Entry, made: Entry) -> bool:
    old, new = before.measurement, made.measurement
    same = all(old.get(name) == new[name] for name in ("kernel", "device", "unit", "problem"))
    return same and bool(old["optimised"] <= new["optimised"])


def with_other_kernels(made: Entry, before: Entry) -> Entry:
    """Where a cubin holds several kernels, what was found for the others stays."""
    kernel = made.measurement["kernel"]
    if made.kernels == (kernel,) or made.original != before.original:
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
