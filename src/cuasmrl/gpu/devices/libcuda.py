"""The driver by typed calls into libcuda: for machines without NVIDIA's Python bindings.

It stays because it needs nothing but the driver: `doctor` lists GPUs with it, and a plain installation can
time kernels. Signatures and numbers are those of cuda.h; names end in `_v2` where that header renames them.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from ctypes import POINTER, byref, c_char_p, c_float, c_int, c_size_t, c_ubyte, c_uint, c_uint64, c_void_p
from typing import Any
from uuid import UUID

import numpy as np

from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.devices.activity import Activity, open_activity
from cuasmrl.gpu.devices.driver import (
    ALONE,
    CACHE_PREFER_SHARED,
    MAX_DYNAMIC_SHARED_SIZE_BYTES,
    NON_BLOCKING,
    Address,
    Attribute,
    Bytes,
    Dimensions,
    DriverError,
    Event,
    Function,
    Gpu,
    Graph,
    Module,
    Parameters,
    Status,
    Stream,
    Together,
)
from cuasmrl.gpu.devices.monitor import Monitor, open_monitor
from cuasmrl.gpu.emulator.tensor_maps import TensorMap

_HANDLE = POINTER(c_void_p)
_ADDRESS = c_uint64
_DIMENSIONS = (c_uint,) * 6
PROTOTYPES: Mapping[str, Sequence[Any]] = {
    "cuInit": (c_uint,),
    "cuDriverGetVersion": (POINTER(c_int),),
    "cuGetErrorName": (c_int, POINTER(c_char_p)),
    "cuGetErrorString": (c_int, POINTER(c_char_p)),
    "cuDeviceGetCount": (POINTER(c_int),),
    "cuDeviceGet": (POINTER(c_int), c_int),
    "cuDeviceGetName": (c_char_p, c_int, c_int),
    "cuDeviceGetUuid_v2": (c_void_p, c_int),
    "cuDeviceGetAttribute": (POINTER(c_int), c_int, c_int),
    "cuDevicePrimaryCtxRetain": (_HANDLE, c_int),
    "cuCtxSetCurrent": (c_void_p,),
    "cuModuleLoadData": (_HANDLE, c_void_p),
    "cuModuleUnload": (c_void_p,),
    "cuModuleGetFunction": (_HANDLE, c_void_p, c_char_p),
    "cuFuncSetAttribute": (c_void_p, c_int, c_int),
    "cuFuncSetCacheConfig": (c_void_p, c_int),
    "cuMemAlloc_v2": (POINTER(_ADDRESS), c_size_t),
    "cuMemFree_v2": (_ADDRESS,),
    "cuMemcpyHtoDAsync_v2": (_ADDRESS, c_void_p, c_size_t, c_void_p),
    "cuMemcpyDtoHAsync_v2": (c_void_p, _ADDRESS, c_size_t, c_void_p),
    "cuMemcpyDtoDAsync_v2": (_ADDRESS, _ADDRESS, c_size_t, c_void_p),
    "cuMemsetD8Async": (_ADDRESS, c_ubyte, c_size_t, c_void_p),
    "cuStreamCreate": (_HANDLE, c_uint),
    "cuStreamSynchronize": (c_void_p,),
    "cuEventCreate": (_HANDLE, c_uint),
    "cuEventRecord": (c_void_p, c_void_p),
    "cuEventQuery": (c_void_p,),
    # The second version differs in that it may miss errors of pending work.
    "cuEventElapsedTime": (POINTER(c_float), c_void_p, c_void_p),
    "cuLaunchKernel": (c_void_p, *_DIMENSIONS, c_uint, c_void_p, POINTER(c_void_p), POINTER(c_void_p)),
}
"""Every function that is called, with the types of its arguments; all return a CUresult."""


class LibCuda:
    """The driver of this machine."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library
        for name, arguments in PROTOTYPES.items():
            try:
                function = getattr(library, name)
            except AttributeError:
                raise CuasmrlError(
                    f"the CUDA driver has no {name}; install a driver for CUDA 12 or later"
                ) from None
            function.argtypes = arguments
            function.restype = c_int

    def initialise(self) -> None:
        self._call("cuInit", 0)

    def devices(self) -> int:
        count = c_int()
        self._call("cuDeviceGetCount", byref(count))
        return count.value

    def gpu(self, ordinal: int) -> Gpu:
        device, name, version = self._device(ordinal), ctypes.create_string_buffer(256), c_int()
        unique = (c_ubyte * 16)()
        self._call("cuDeviceGetName", name, len(name), device)
        self._call("cuDriverGetVersion", byref(version))
        self._call("cuDeviceGetUuid_v2", unique, device)
        major = self._attribute(device, Attribute.COMPUTE_CAPABILITY_MAJOR)
        minor = self._attribute(device, Attribute.COMPUTE_CAPABILITY_MINOR)
        return Gpu(
            ordinal,
            name.value.decode(errors="replace"),
            10 * major + minor,
            self._attribute(device, Attribute.MULTIPROCESSOR_COUNT),
            self._attribute(device, Attribute.L2_CACHE_SIZE),
            version.value,
            str(UUID(bytes=bytes(unique))),
        )

    def open_context(self, ordinal: int) -> None:
        """Make the device's primary context current; it ends with the process."""
        context = self._handle("cuDevicePrimaryCtxRetain", self._device(ordinal))
        self._call("cuCtxSetCurrent", context)

    def load_module(self, image: bytes) -> Module:
        return Module(self._handle("cuModuleLoadData", image))

    def unload_module(self, module: Module) -> None:
        self._call("cuModuleUnload", module)

    def function(self, module: Module, name: str) -> Function:
        return Function(self._handle("cuModuleGetFunction", module, name.encode()))

    def allow_shared(self, function: Function, size: int) -> None:
        """Let launches of a function have this much dynamic shared memory, at the expense of L1."""
        self._call("cuFuncSetCacheConfig", function, CACHE_PREFER_SHARED)
        self._call("cuFuncSetAttribute", function, MAX_DYNAMIC_SHARED_SIZE_BYTES, size)

    def allocate(self, size: int) -> Address:
        address = _ADDRESS()
        self._call("cuMemAlloc_v2", byref(address), size)
        return Address(address.value)

    def free(self, address: Address) -> None:
        self._call("cuMemFree_v2", address)

    def upload(self, address: Address, data: Bytes, stream: Stream) -> None:
        """Copy to the GPU, and wait: from ordinary memory the driver may go on copying after it returned."""
        self._call("cuMemcpyHtoDAsync_v2", address, data.ctypes.data, data.nbytes, stream)
        self.synchronize(stream)

    def download(self, address: Address, size: int, stream: Stream) -> Bytes:
        data = np.empty(size, np.uint8)
        self._call("cuMemcpyDtoHAsync_v2", data.ctypes.data, address, size, stream)
        self.synchronize(stream)
        return data

    def copy(self, target: Address, source: Address, size: int, stream: Stream) -> None:
        self._call("cuMemcpyDtoDAsync_v2", target, source, size, stream)

    def fill(self, address: Address, byte: int, size: int, stream: Stream) -> None:
        self._call("cuMemsetD8Async", address, byte, size, stream)

    def create_stream(self) -> Stream:
        return Stream(self._handle("cuStreamCreate", NON_BLOCKING))

    def create_event(self) -> Event:
        return Event(self._handle("cuEventCreate", 0))

    def record(self, event: Event, stream: Stream) -> None:
        self._call("cuEventRecord", event, stream)

    def has_happened(self, event: Event) -> bool:
        code = self._library.cuEventQuery(event)
        if code not in (Status.SUCCESS, Status.NOT_READY):
            raise self._error("cuEventQuery", code)
        return bool(code == Status.SUCCESS)

    def elapsed(self, start: Event, end: Event) -> float:
        """Microseconds from one event to another; both have to be over."""
        milliseconds = c_float()
        self._call("cuEventElapsedTime", byref(milliseconds), start, end)
        return 1e3 * milliseconds.value

    def synchronize(self, stream: Stream) -> None:
        self._call("cuStreamSynchronize", stream)

    def launch(
        self,
        function: Function,
        grid: Dimensions,
        block: Dimensions,
        shared_bytes: int,
        stream: Stream,
        parameters: Parameters,
        together: Together = ALONE,
    ) -> None:
        if not together.is_plain:
            what = "a cooperative launch" if together.cooperative else "a launch in clusters"
            raise CuasmrlError(f"{what} needs NVIDIA's Python bindings; pip install 'cuasmrl[gpu]'")
        self._call("cuLaunchKernel", function, *grid, *block, shared_bytes, stream, None, parameters.extra)

    def tensor_map(self, tiles: TensorMap) -> bytes:
        raise CuasmrlError("a tensor map needs NVIDIA's Python bindings; pip install 'cuasmrl[gpu]'")

    graphs = False
    """Streams are not captured: times are taken between events of the stream."""

    def begin_capture(self, stream: Stream) -> None:
        raise AssertionError("whoever has no graphs is not asked for one")

    def end_capture(self, stream: Stream) -> Graph:
        raise AssertionError("whoever has no graphs is not asked for one")

    def run_graph(self, graph: Graph, stream: Stream) -> None:
        raise AssertionError("whoever has no graphs is not asked for one")

    def drop_graph(self, graph: Graph) -> None:
        raise AssertionError("whoever has no graphs is not asked for one")

    def monitor(self, gpu: Gpu) -> Monitor | None:
        return open_monitor(gpu.uuid)

    def activity(self) -> Activity | None:
        return open_activity()

    def _device(self, ordinal: int) -> int:
        device = c_int()
        self._call("cuDeviceGet", byref(device), ordinal)
        return device.value

    def _attribute(self, device: int, attribute: Attribute) -> int:
        value = c_int()
        self._call("cuDeviceGetAttribute", byref(value), attribute, device)
        return value.value

    def _handle(self, call: str, *arguments: Any) -> int:
        """What a call writes to its first argument."""
        handle = c_void_p()
        self._call(call, byref(handle), *arguments)
        return handle.value or 0

    def _call(self, name: str, *arguments: Any) -> None:
        code = getattr(self._library, name)(*arguments)
        if code != Status.SUCCESS:
            raise self._error(name, code)

    def _error(self, call: str, code: int) -> DriverError:
        words = []
        for ask in (self._library.cuGetErrorName, self._library.cuGetErrorString):
            text = c_char_p()
            known = ask(code, byref(text)) == Status.SUCCESS and text.value
            words.append(known.decode(errors="replace") if known else "an error it has no name for")
        return DriverError(call, code, words[0], words[1])
