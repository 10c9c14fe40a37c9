"""Python reads this when it starts, if its folder is on PYTHONPATH: the process gets the virtual GPU.

It belongs to the environment that `pytest_plugin` gives to the processes which tests start.
"""

import atexit
import os
from contextlib import ExitStack

_stack = ExitStack()
if chip := os.environ.get("CUASMRL_VIRTUAL_CUDA"):
    from cuasmrl.gpu.virtual.torch_cuda import as_cuda

    _stack.enter_context(as_cuda(chip))
    atexit.register(_stack.close)
