"""NVIDIA's bindings on the C library that pretends, in a process of its own: they keep the first libcuda.

`python -m tests.gpu.devices.bound LIBRARY CUBIN` prints what came of each call."""

import ctypes
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from cuasmrl.gpu.devices.bindings import BoundDriver
from cuasmrl.gpu.devices.cuda import available
from cuasmrl.gpu.devices.driver import DriverError, Parameters, Together
from cuasmrl.gpu.devices.loading import load
from cuasmrl.gpu.emulator.tensor_maps import Element, TensorMap


def examined(library: str, image: bytes) -> dict[str, Any]:
    fake = ctypes.CDLL(library)
    fake.fake_calls.restype = ctypes.c_char_p
    fake.fake_reset(0, 2)
    driver = load()
    found: dict[str, Any] = {"bound": isinstance(driver, BoundDriver), "available": available()}
    gpu = driver.gpu(1)
    found["gpu"] = [gpu.name, gpu.arch, gpu.sm_count, gpu.l2_bytes, gpu.driver_version >= 12000, gpu.uuid]
    driver.open_context(1)
    stream = driver.create_stream()
    x, y = np.arange(100, dtype=np.uint16), np.full(100, 5, np.uint16)
    buffers = [driver.allocate(x.nbytes) for _ in range(3)]
    driver.upload(buffers[0], x.view(np.uint8), stream)
    driver.upload(buffers[1], y.view(np.uint8), stream)
    driver.fill(buffers[2], 0, x.nbytes, stream)
    module = driver.load_module(image)
    function = driver.function(module, "add_kernel")
    area = b"".join(address.to_bytes(8, "little") for address in buffers) + (100).to_bytes(4, "little")
    driver.allow_shared(function, 100_000)
    begin, end = driver.create_event(), driver.create_event()
    driver.record(begin, stream)
    driver.launch(function, (1, 2, 3), (4, 5, 6), 70_000, stream, Parameters(area))
    driver.record(end, stream)
    found["early"] = driver.has_happened(end)
    driver.synchronize(stream)
    found["happened"], found["elapsed"] = driver.has_happened(end), driver.elapsed(begin, end)
    sums = driver.download(buffers[2], x.nbytes, stream).view(np.uint16)
    found["computed"] = bool((sums == x ^ y).all())
    driver.copy(buffers[2], buffers[0], x.nbytes, stream)
    found["copied"] = bool((driver.download(buffers[2], x.nbytes, stream).view(np.uint16) == x).all())
    driver.launch(function, (1, 1, 1), (4, 1, 1), 0, stream, Parameters(area), Together(True))
    found["calls"] = fake.fake_calls().decode().splitlines()
    together = Together(cluster=(2, 1, 1))
    driver.launch(function, (2, 1, 1), (4, 1, 1), 0, stream, Parameters(area), together)
    tiles = TensorMap(0x1000, Element.BF16, (200, 100), (512,), (64, 8), 128, fills_nan=True)
    found["map"] = driver.tensor_map(tiles).hex()
    driver.begin_capture(stream)
    driver.record(begin, stream)
    graph = driver.end_capture(stream)
    driver.run_graph(graph, stream)
    driver.drop_graph(graph)
    found["more"] = fake.fake_calls().decode().splitlines()[len(found["calls"]) :]
    driver.free(buffers[0])
    driver.unload_module(module)
    fake.fake_fail(700)
    try:
        driver.synchronize(stream)
    except DriverError as error:
        found["error"] = [str(error), error.code]
    return found


if __name__ == "__main__":
    print(json.dumps(examined(sys.argv[1], Path(sys.argv[2]).read_bytes())))
