"""Results of a store for the GPU of this process: which are allowed, and what a user has to hear of it."""

from __future__ import annotations

import sys

from cuasmrl.deploy.store import EMPTY, Allowed, Deployment, Store, deploy
from cuasmrl.deploy.store.allowed import MODELLED, UNCONFIRMED
from cuasmrl.deploy.triton.gpus import on_virtual_gpu, visible_gpus


class Lookup:
    """On the virtual GPU every result; on a GPU those measured on its kind, and modelled ones if allowed."""

    def __init__(self, store: Store, modelled: bool) -> None:
        self.store = store
        self.modelled = modelled
        """Are results used that no GPU has measured?"""
        self._told: set[bool] = set()

    @property
    def allowed(self) -> Allowed:
        # Not decided before: the virtual GPU may be activated at any time.
        if on_virtual_gpu():
            return Allowed(modelled=True)
        return Allowed(self.modelled, visible_gpus())

    @property
    def state(self) -> str | None:
        """For the keys of caches: the epoch, and what is allowed of it; None if there are no results."""
        epoch = self.store.epoch
        return None if epoch == EMPTY else "-".join(filter(None, (epoch, self.allowed.tag)))

    def deploy(self, cubin: bytes, name: str) -> Deployment:
        """As the store does it; what it means for modelled results is said once of each kind."""
        found = deploy(cubin, self.store, self.allowed)
        if found.modelled and found.used not in self._told and not on_virtual_gpu():
            self._told.add(found.used)
            sys.stderr.write(f"cuasmrl: {_said(found, name)}\n")
        return found

    def has(self, key: str) -> bool:
        """Is there a result for that code which may be used here?"""
        entry = self.store.find(key)
        return entry is not None and self.allowed.refusal(entry.measurement) is None


def _said(found: Deployment, name: str) -> str:
    if found.used:
        return f"{name} is {found.reason}, which {UNCONFIRMED}; so may be others (said once)"
    return (
        f"{name} stays as compiled: {found.reason}; cuasmrl.install(modelled=True) or {MODELLED}=1 "
        "allows such results (said once)"
    )
