"""The driver by NVIDIA's bindings, on a C library whose functions are declared by the real cuda.h."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.devices.driver import Parameters
from cuasmrl.gpu.devices.loading import load
from tests.gpu.devices.test_driver import Loader, compiled, library
from tests.traced_kernels import traced

__all__ = ["library"]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Any:
    if importlib.util.find_spec("cuda") is None or importlib.util.find_spec("cuda.bindings") is None:
        pytest.skip("cuda-bindings is not installed")
    folder = tmp_path_factory.mktemp("bound")
    # By this name the bindings find it; nobody in this process must.
    library = compiled(folder / "libcuda.so.1", "-Wl,-soname,libcuda.so.1")
    image = folder / "k.cubin"
    image.write_bytes(traced("vector_add").cubin.data)
    command = [sys.executable, "-m", "tests.gpu.devices.bound", library, str(image)]
    root = Path(__file__).parents[3]
    done = subprocess.run(command, capture_output=True, text=True, cwd=root, check=False)
    assert not done.returncode, done.stderr
    return json.loads(done.stdout)


def test_a_gpu_is_described(found: Any) -> None:
    assert found["bound"]
    assert found["available"] is None
    uuid = "292a2b2c-2d2e-2f30-3132-333435363738"
    assert found["gpu"] == ["Fake GPU 1", 86, 108, 1 << 20, True, uuid]


def test_a_kernel_gets_its_arguments_and_its_results_come_back(found: Any) -> None:
    assert (found["early"], found["happened"]) == (False, True)
    assert found["elapsed"] == pytest.approx(21.0)
    assert (found["computed"], found["copied"]) == (True, True)
    assert "cuLaunchKernel 1 2 3, 4 5 6, 70000, 28" in found["calls"]
    assert {"cuModuleGetFunction add_kernel", "cuFuncSetAttribute 8 100000"} < set(found["calls"])


def test_a_cooperative_launch(found: Any) -> None:
    assert found["calls"][-2:] == ["attribute 2 1", "cuLaunchKernel 1 1 1, 4 1 1, 0, 28"]


def test_errors_have_the_names_of_the_driver(found: Any) -> None:
    text, code = found["error"]
    assert text.startswith("cuStreamSynchronize failed with CUDA_ERROR_ILLEGAL_ADDRESS (700")
    assert code == 700


def test_without_the_bindings_a_cooperative_launch_is_refused(library: str) -> None:
    driver = Loader(library)()
    stream = driver.create_stream()
    function = driver.function(driver.load_module(traced("vector_add").cubin.data), "add_kernel")
    with pytest.raises(CuasmrlError, match=r"pip install 'cuasmrl\[gpu\]'"):
        driver.launch(function, (1, 1, 1), (1, 1, 1), 0, stream, Parameters(b""), cooperative=True)


def test_the_driver_of_this_machine_is_asked_for_by_its_name() -> None:
    with pytest.raises(CuasmrlError, match="cannot be loaded"):
        load("libcuda-is-not-here.so")
