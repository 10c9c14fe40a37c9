"""Reschedule the SASS of compiled CUDA kernels, and prove that the result is safe."""

from cuasmrl.errors import CuasmrlError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cuasmrl.deploy.triton import install, jit, uninstall

__version__ = "0.1.0"
__all__ = ["CuasmrlError", "__version__", "install", "jit", "uninstall"]


def __getattr__(name: str) -> object:
    """What belongs to Triton is imported when it is asked for."""
    if name in ("install", "jit", "uninstall"):
        from cuasmrl.deploy import triton

        return getattr(triton, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
