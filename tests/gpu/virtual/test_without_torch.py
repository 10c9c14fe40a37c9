"""The virtual GPU in a process where torch cannot be imported."""

import subprocess
import sys
from pathlib import Path

SCRIPT = """
import sys

class NoTorch:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            raise ImportError("torch is blocked")

sys.meta_path.insert(0, NoTorch())

import numpy as np
import cuasmrl.gpu.virtual
from cuasmrl.gpu.virtual import device, wrap
from tests.gpu.virtual.kernels import add, tuned

class Emulator:
    warp_instructions = 100
    def __init__(self, cubin, kernel, chip):
        self.kernel = kernel
    def run(self, launch):
        *sources, target = [a.view(np.float32) for a in launch.arguments if isinstance(a, np.ndarray)]
        target[:] = sum(sources) + (self.kernel == "tuned")
        return self
    def cycles(self, launch):
        return 100

device.make_emulator = Emulator
cuasmrl.gpu.virtual.activate("a100")
x, z = np.arange(256, dtype=np.float32), np.zeros(256, np.float32)
add[(2,)](wrap(x), wrap(x), wrap(z), 256, BLOCK=128)
assert (z == 2 * x).all()
tuned[lambda meta: (256 // meta["BLOCK"],)](wrap(x), wrap(z), 256)
assert (z == x + 1).all()
cuasmrl.gpu.virtual.deactivate()
assert "torch" not in sys.modules
"""


def test_kernels_run_on_arrays() -> None:
    root = Path(__file__).parents[3]
    command = [sys.executable, "-c", SCRIPT]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
