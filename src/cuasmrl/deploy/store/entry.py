"""An entry: one cubin made faster, with everything that speaks for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cuasmrl.deploy.store.code import read_code
from cuasmrl.deploy.store.packing import SCHEMA, Packed, pack
from cuasmrl.errors import CuasmrlError

FIGURES = ("device", "unit", "original", "optimised", "gain", "interval")


@dataclass(frozen=True)
class Entry:
    key: str
    """Of the code of the original, see `code_key`."""
    arch: int
    kernels: tuple[str, ...]
    original: bytes = field(repr=False)
    optimised: bytes = field(repr=False)
    certificates: Mapping[str, Mapping[str, Any]] = field(repr=False)
    """Kernel: the certificate of the checker. `Store.put` makes them; what is given must agree."""
    measurement: Mapping[str, Any]
    """device, unit, original and optimised (in that unit), the confirmed gain, its interval ([low, high]).

    A gain is a share. A modelled one is the median over the ensemble, and original and optimised are those of
    the nominal chip; a measured one is the median over the rounds. `gpu` says what GPU measured it.
    """
    provenance: Mapping[str, Any] = field(default_factory=dict)
    """The run it comes from: config, versions, origin of the kernel."""
    schema: int = SCHEMA

    @staticmethod
    def of(
        original: bytes,
        optimised: bytes,
        measurement: Mapping[str, Any],
        provenance: Mapping[str, Any] | None = None,
        certificates: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> Entry:
        """From two cubins; key, chip and kernels are those of the original."""
        code = read_code(original)
        kernels = tuple(code.kernels)
        return Entry(
            code.key,
            code.arch,
            kernels,
            original,
            optimised,
            certificates or {},
            measurement,
            provenance or {},
        )

    @staticmethod
    def unpacked(packed: Packed) -> Entry:
        facts = packed.facts
        kernels = tuple(facts["kernels"])
        _check_measurement(facts["measurement"])
        return Entry(
            key=facts["key"],
            arch=facts["arch"],
            kernels=kernels,
            original=packed.original,
            optimised=packed.optimised,
            # The checker judges a cubin as a whole.
            certificates=dict.fromkeys(kernels, facts["certificate"]),
            measurement=facts["measurement"],
            provenance=dict(facts["provenance"]),
        )

    def packed(self) -> bytes:
        """As a file. Everything but the two cubins must be JSON."""
        _check_measurement(self.measurement)
        try:
            return pack(self.facts(), self.original, self.optimised)
        except (TypeError, ValueError) as error:
            raise CuasmrlError(f"measurement and provenance of an entry must be JSON: {error}") from error

    def facts(self) -> dict[str, Any]:
        """All but the two cubins."""
        certificates = list(self.certificates.values())
        if set(self.certificates) != set(self.kernels) or any(c != certificates[0] for c in certificates):
            raise CuasmrlError(f"entry {self.key[:12]} needs the one certificate of all its kernels")
        return {
            "key": self.key,
            "arch": self.arch,
            "kernels": list(self.kernels),
            "certificate": dict(certificates[0]),
            "measurement": dict(self.measurement),
            "provenance": dict(self.provenance),
        }

    @property
    def gain(self) -> float:
        """Share by which the original takes longer, as it was confirmed."""
        return float(self.measurement["gain"])


def _check_measurement(found: Mapping[str, Any]) -> None:
    missing = [name for name in FIGURES if name not in found]
    if missing:
        raise CuasmrlError(f"the measurement of an entry lacks {', '.join(missing)}")
    times = [found["original"], found["optimised"]]
    if not all(isinstance(time, int | float) and time > 0 for time in times):
        raise CuasmrlError(f"original and optimised of a measurement must be above zero, not {times}")
    if not isinstance(found["gain"], int | float):
        raise CuasmrlError(f"the gain of a measurement must be a share, not {found['gain']!r}")
    ends = found["interval"]
    if not isinstance(ends, list | tuple) or [isinstance(end, int | float) for end in ends] != [True, True]:
        raise CuasmrlError(f"the interval of a measurement must be [low, high] as shares, not {ends}")
