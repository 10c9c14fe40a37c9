"""Triton with stored schedules: the cubin is swapped in the compile stage, before Triton caches it.

Nothing here imports Triton before it is needed, and deploying imports neither NumPy nor anything as large.
"""

# As `typing` has it, whose import takes longer than all that a process without Triton needs of us.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from cuasmrl.deploy.triton.activation import Installation, install, installation, jit, uninstall
    from cuasmrl.deploy.triton.modes import Mode

__all__ = ["Installation", "Mode", "install", "installation", "jit", "uninstall"]


def __getattr__(name: str) -> object:
    """Every Python that `cuasmrl run` starts imports this package; few of them import Triton."""
    if name == "Mode":
        from cuasmrl.deploy.triton.modes import Mode

        return Mode
    if name in __all__:
        from cuasmrl.deploy.triton import activation

        return getattr(activation, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
