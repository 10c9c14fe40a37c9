"""Which results may be deployed: those measured on a GPU of the same kind, and modelled ones where asked for.

A modelled gain is what the virtual GPU says. Code for a real GPU is replaced by what a GPU has shown to be
faster, unless the user decides otherwise.
"""

from __future__ import annotations

import hashlib

from cuasmrl.deploy.store.packing import DamagedError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

MODELLED = "CUASMRL_MODELLED"
"""The variable that allows modelled results, with the value 1."""
VIRTUAL = "CUASMRL_VIRTUAL"
"""The variable that names a chip: kernels are launched on the virtual GPU."""
UNCONFIRMED = "is modelled, and no GPU has measured it"
_YES, _NO = "1", "0"
_GPU = "cuda:"


class Allowed:
    """What `deploy` may use. By default nothing modelled, and no GPU is known, as where a compiler runs."""

    __slots__ = ("gpus", "modelled")

    def __init__(self, modelled: bool = False, gpus: tuple[str, ...] = ()) -> None:
        self.modelled = modelled
        self.gpus = gpus
        """Kinds of GPU that the code may run on (`gpu_kind`); empty if they are not known."""

    @property
    def tag(self) -> str:
        """For the keys of compilers' caches: where other results are allowed, it is another one."""
        parts = ["modelled"] if self.modelled else []
        if self.gpus:
            parts.append(hashlib.sha256("\n".join(sorted(self.gpus)).encode()).hexdigest()[:8])
        return "-".join(parts)

    def refusal(self, measurement: Mapping[str, Any]) -> str | None:
        """Why a result with this measurement may not be used, as the end of a sentence about it."""
        if is_modelled(measurement):
            return None if self.modelled else UNCONFIRMED
        kind = measured_on(measurement)
        if not self.gpus or kind in self.gpus:
            return None
        return f"was measured on {kind or 'a GPU without a name'}, and here is {' and '.join(self.gpus)}"


def asked_for(environment: Mapping[str, str]) -> bool:
    """Does an environment allow modelled results, by its own variable or by that of the virtual GPU?"""
    return environment.get(MODELLED) == _YES or bool(environment.get(VIRTUAL))


def asking_for(modelled: bool, environment: Mapping[str, str]) -> dict[str, str]:
    """The variable to set, over those of an environment, so that it allows modelled results or not."""
    if modelled == (environment.get(MODELLED) == _YES):
        return {}
    return {MODELLED: _YES if modelled else _NO}


def is_modelled(measurement: Mapping[str, Any]) -> bool:
    """Whatever no GPU has measured counts as modelled."""
    try:
        return not measurement["device"].startswith(_GPU)
    except (LookupError, TypeError, AttributeError):
        raise DamagedError("its measurement does not name a device") from None


def measured_on(measurement: Mapping[str, Any]) -> str | None:
    """The kind of GPU that a result was measured on; None if it is modelled, or if nobody noted it."""
    gpu = measurement.get("gpu")
    try:
        return None if gpu is None else gpu_kind(gpu["name"], gpu["compute_capability"])
    except (LookupError, TypeError):
        raise DamagedError("its measurement does not describe a GPU") from None


def gpu_kind(name: str, compute_capability: str) -> str:
    """GPUs of one kind run the same code at the same speed."""
    return f"{name} ({compute_capability})"
