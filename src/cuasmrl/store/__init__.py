"""Results on disk, found by the code they replace, and their deployment."""

from cuasmrl.store.code import code_key
from cuasmrl.store.deployment import Deployment, deploy
from cuasmrl.store.shelf import EMPTY
from cuasmrl.store.store import LOCATION, Store

# As `typing` has it, whose import takes longer than all that is needed to deploy.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from cuasmrl.store.entry import Entry
    from cuasmrl.store.pending import Recorded

__all__ = ["EMPTY", "LOCATION", "Deployment", "Entry", "Recorded", "Store", "code_key", "deploy"]


def __getattr__(name: str) -> object:
    """Entries and recorded kernels are for writers; who only deploys does not wait for their imports."""
    if name == "Entry":
        from cuasmrl.store.entry import Entry

        return Entry
    if name == "Recorded":
        from cuasmrl.store.pending import Recorded

        return Recorded
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
