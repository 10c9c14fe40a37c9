"""Results on disk, found by the code they replace, and their deployment."""

from cuasmrl.deploy.store.allowed import Allowed
from cuasmrl.deploy.store.code import code_key
from cuasmrl.deploy.store.deployment import Deployment, deploy
from cuasmrl.deploy.store.shelf import EMPTY
from cuasmrl.deploy.store.store import LOCATION, Store

# As `typing` has it, whose import takes longer than all that is needed to deploy.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from cuasmrl.deploy.store.entry import Entry
    from cuasmrl.deploy.store.pending import Recorded

__all__ = ["EMPTY", "LOCATION", "Allowed", "Deployment", "Entry", "Recorded", "Store", "code_key", "deploy"]


def __getattr__(name: str) -> object:
    """Entries and recorded kernels are for writers; who only deploys does not wait for their imports."""
    if name == "Entry":
        from cuasmrl.deploy.store.entry import Entry

        return Entry
    if name == "Recorded":
        from cuasmrl.deploy.store.pending import Recorded

        return Recorded
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
