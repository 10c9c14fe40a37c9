"""A GPU that is not there: unmodified Triton code compiles and runs on the emulator after one call.

    import cuasmrl.gpu.virtual

    cuasmrl.gpu.virtual.activate("a100")
    kernel[grid](x, y, n, BLOCK=128)      # CPU tensors, or NumPy arrays by cuasmrl.gpu.virtual.wrap(array)

Neither Triton nor torch is imported before they are needed, and torch never has to be there.
"""

from cuasmrl.gpu.virtual.activation import activate, active, deactivate
from cuasmrl.gpu.virtual.device import Launched
from cuasmrl.gpu.virtual.memory import Buffer, wrap

__all__ = ["Buffer", "Launched", "activate", "active", "deactivate", "wrap"]
