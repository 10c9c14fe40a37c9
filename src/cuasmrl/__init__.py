"""Reschedule the SASS of compiled CUDA kernels, and prove that the result is safe."""

from cuasmrl.errors import CuasmrlError

__version__ = "0.1.0"
__all__ = ["CuasmrlError", "__version__"]
