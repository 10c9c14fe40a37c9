"""Deployment: the stored code in place of the compiled one, or on any doubt the very same cubin."""

from __future__ import annotations

from cuasmrl.deploy.store.allowed import Allowed, is_modelled
from cuasmrl.deploy.store.code import read_code
from cuasmrl.deploy.store.contract import check_contract, substituted
from cuasmrl.deploy.store.packing import DamagedError, UnusableError, unpack

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cuasmrl.deploy.store.store import Store


class Deployment:
    """What to use, and why."""

    __slots__ = ("cubin", "doubt", "modelled", "reason", "used")

    def __init__(
        self, cubin: bytes, used: bool, reason: str, doubt: bool = False, modelled: bool = False
    ) -> None:
        self.cubin = cubin
        self.used = used
        """Does it hold stored code? Otherwise it is the very object that was given."""
        self.reason = reason
        """In words."""
        self.doubt = doubt
        """Was something found that could not be used? A user should hear of it, once."""
        self.modelled = modelled
        """Is a modelled result used, or left out because it is modelled? A user should hear of that too."""

    def __repr__(self) -> str:
        return f"Deployment({len(self.cubin)} bytes, used={self.used}, {self.reason!r})"


_MEASURED = Allowed()


def deploy(cubin: bytes, store: Store, allowed: Allowed = _MEASURED) -> Deployment:
    """The cubin to use for one that a compiler has just made. Never raises, never guesses."""
    try:
        code = read_code(cubin)
    except Exception as error:
        return Deployment(cubin, False, str(error))
    try:
        root = store.shelf.root
        data = store.shelf.read(code.key)
    except Exception as error:
        return Deployment(cubin, False, f"the store is not used: {error}", doubt=True)
    if data is None:
        return Deployment(cubin, False, f"nothing is stored in {root} for this code")
    what = f"entry {code.key[:12]} of {root}"
    try:
        packed = unpack(data, code.key)
        stored = check_contract(packed, code.key)
        measurement = packed.facts.get("measurement", {})
        modelled, refusal = is_modelled(measurement), allowed.refusal(measurement)
        if refusal is not None:
            return Deployment(cubin, False, f"{what} {refusal}", not modelled, modelled)
        return Deployment(substituted(cubin, code, packed, stored), True, what, modelled=modelled)
    except UnusableError as error:
        return Deployment(cubin, False, f"{what} is not used: {error}", doubt=True)
    except DamagedError as error:
        return Deployment(
            cubin, False, f"{what} is damaged: {error}{_aside(store, code.key, data, error)}", True
        )
    except Exception as error:
        return Deployment(cubin, False, f"{what} is not used: {type(error).__name__}: {error}", doubt=True)


def _aside(store: Store, key: str, data: bytes, why: Exception) -> str:
    from cuasmrl.deploy.store.change import set_aside

    try:
        place = set_aside(store.shelf, key, data, str(why))
    except Exception:
        place = None
    return f"; it is now in {place}" if place else ""
