"""The driver by NVIDIA's bindings, on a C library whose functions are declared by the real cuda.h."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.devices.driver import Parameters, Together
from cuasmrl.gpu.devices.loading import load
from cuasmrl.gpu.emulator.tensor_maps import Element, TensorMap
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


def test_a_launch_in_clusters(found: Any) -> None:
    assert found["more"][:2] == ["clusters 2 1 1", "cuLaunchKernel 2 1 1, 4 1 1, 0, 28"]


def test_a_tensor_map_is_made_by_the_driver(found: Any) -> None:
    # BFLOAT16 is type 9 of cuda.h; swizzle 3 is that of 128 bytes, fill 1 is NaN.
    assert found["more"][2] == "map 9, 2, 200 of 64 by 1, 100 of 8 by 1, stride 512, 0 3 0 1"
    assert bytes.fromhex(found["map"])[:8] == (0x1000).to_bytes(8, "little")
    assert len(found["map"]) == 256


def test_a_graph_times_what_is_in_it(found: Any) -> None:
    """Events recorded while the stream is captured are nodes of the graph (flag 1)."""
    assert found["more"][3:5] == ["capture 1", "recorded 1"]
    made = "0x500000000002"
    assert found["more"][5:] == ["graph 0x500000000001 gone", f"run {made}", f"made {made} gone"]


def test_errors_have_the_names_of_the_driver(found: Any) -> None:
    text, code = found["error"]
    assert text.startswith("cuStreamSynchronize failed with CUDA_ERROR_ILLEGAL_ADDRESS (700")
    assert code == 700


def test_without_the_bindings_a_cooperative_launch_is_refused(library: str) -> None:
    driver = Loader(library)()
    stream = driver.create_stream()
    function = driver.function(driver.load_module(traced("vector_add").cubin.data), "add_kernel")
    with pytest.raises(CuasmrlError, match=r"pip install 'cuasmrl\[gpu\]'"):
        driver.launch(function, (1, 1, 1), (1, 1, 1), 0, stream, Parameters(b""), Together(True))
    together = Together(cluster=(2, 1, 1))
    with pytest.raises(CuasmrlError, match="a launch in clusters needs NVIDIA's Python bindings"):
        driver.launch(function, (2, 1, 1), (1, 1, 1), 0, stream, Parameters(b""), together)
    tiles = TensorMap(0, Element.F16, (64,), (), (64,))
    with pytest.raises(CuasmrlError, match="a tensor map needs NVIDIA's Python bindings"):
        driver.tensor_map(tiles)
    assert not driver.graphs


def test_the_driver_of_this_machine_is_asked_for_by_its_name() -> None:
    with pytest.raises(CuasmrlError, match="cannot be loaded"):
        load("libcuda-is-not-here.so")
