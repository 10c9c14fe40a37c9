"""The driver by NVIDIA's own Python bindings: `cuda-bindings` of the extra `gpu`, which follow new drivers.

`cuda.core`, which stands on them, is not used: its launches take Python objects for parameters and pack them
itself, while here the packed area is what the cubin says; and it owns modules and buffers until they are
collected, while here the order of loading and freeing is part of a measurement.
"""

from __future__ import annotations

import ctypes
from typing import Any
from uuid import UUID

import numpy as np

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
from cuasmrl.gpu.emulator.tensor_maps import Element, TensorMap

_NAME_BYTES = 256
_ELEMENTS = {
    Element.U8: "UINT8", Element.U16: "UINT16", Element.U32: "UINT32", Element.S32: "INT32",
    Element.U64: "UINT64", Element.S64: "INT64", Element.F16: "FLOAT16", Element.F32: "FLOAT32",
    Element.F32_FTZ: "FLOAT32_FTZ", Element.F64: "FLOAT64", Element.BF16: "BFLOAT16",
}  # fmt: skip
"""As CU_TENSOR_MAP_DATA_TYPE_... calls them."""


class BoundDriver:
    """Every handle is an integer on the outside and an object of the bindings inside."""

    def __init__(self, cuda: Any) -> None:
        """`cuda` is the module `cuda.bindings.driver`."""
        self._cuda = cuda
        self._capturing = False

    def initialise(self) -> None:
        self._call("cuInit", 0)

    def devices(self) -> int:
        return int(self._call("cuDeviceGetCount"))

    def gpu(self, ordinal: int) -> Gpu:
        device = self._call("cuDeviceGet", ordinal)
        name = self._call("cuDeviceGetName", _NAME_BYTES, device)
        major = self._attribute(device, Attribute.COMPUTE_CAPABILITY_MAJOR)
        minor = self._attribute(device, Attribute.COMPUTE_CAPABILITY_MINOR)
        return Gpu(
            ordinal,
            name.split(b"\0")[0].decode(errors="replace"),
            10 * major + minor,
            self._attribute(device, Attribute.MULTIPROCESSOR_COUNT),
            self._attribute(device, Attribute.L2_CACHE_SIZE),
            int(self._call("cuDriverGetVersion")),
            str(UUID(bytes=bytes(self._call("cuDeviceGetUuid", device).bytes))),
        )

    def open_context(self, ordinal: int) -> None:
        """Make the device's primary context current; it ends with the process."""
        device = self._call("cuDeviceGet", ordinal)
        self._call("cuCtxSetCurrent", self._call("cuDevicePrimaryCtxRetain", device))

    def load_module(self, image: bytes) -> Module:
        return Module(int(self._call("cuModuleLoadData", image)))

    def unload_module(self, module: Module) -> None:
        self._call("cuModuleUnload", self._cuda.CUmodule(module))

    def function(self, module: Module, name: str) -> Function:
        return Function(int(self._call("cuModuleGetFunction", self._cuda.CUmodule(module), name.encode())))

    def allow_shared(self, function: Function, size: int) -> None:
        """Let launches of a function have this much dynamic shared memory, at the expense of L1."""
        cuda, kernel = self._cuda, self._cuda.CUfunction(function)
        self._call("cuFuncSetCacheConfig", kernel, cuda.CUfunc_cache(CACHE_PREFER_SHARED))
        attribute = cuda.CUfunction_attribute(MAX_DYNAMIC_SHARED_SIZE_BYTES)
        self._call("cuFuncSetAttribute", kernel, attribute, size)

    def allocate(self, size: int) -> Address:
        return Address(int(self._call("cuMemAlloc", size)))

    def free(self, address: Address) -> None:
        self._call("cuMemFree", address)

    def upload(self, address: Address, data: Bytes, stream: Stream) -> None:
        """Copy to the GPU, and wait: from ordinary memory the driver may go on copying after it returned."""
        self._call("cuMemcpyHtoDAsync", address, data.ctypes.data, data.nbytes, self._stream(stream))
        self.synchronize(stream)

    def download(self, address: Address, size: int, stream: Stream) -> Bytes:
        data = np.empty(size, np.uint8)
        self._call("cuMemcpyDtoHAsync", data.ctypes.data, address, size, self._stream(stream))
        self.synchronize(stream)
        return data

    def copy(self, target: Address, source: Address, size: int, stream: Stream) -> None:
        self._call("cuMemcpyDtoDAsync", target, source, size, self._stream(stream))

    def fill(self, address: Address, byte: int, size: int, stream: Stream) -> None:
        self._call("cuMemsetD8Async", address, byte, size, self._stream(stream))

    def create_stream(self) -> Stream:
        return Stream(int(self._call("cuStreamCreate", NON_BLOCKING)))

    def create_event(self) -> Event:
        return Event(int(self._call("cuEventCreate", 0)))

    def record(self, event: Event, stream: Stream) -> None:
        if self._capturing:
            # Otherwise it would only say what depends on what inside the graph.
            external = self._cuda.CUevent_record_flags.CU_EVENT_RECORD_EXTERNAL
            self._call(
                "cuEventRecordWithFlags", self._cuda.CUevent(event), self._stream(stream), int(external)
            )
        else:
            self._call("cuEventRecord", self._cuda.CUevent(event), self._stream(stream))

    def has_happened(self, event: Event) -> bool:
        (code,) = self._cuda.cuEventQuery(self._cuda.CUevent(event))
        if int(code) not in (Status.SUCCESS, Status.NOT_READY):
            raise self._error("cuEventQuery", code)
        return int(code) == Status.SUCCESS

    def elapsed(self, start: Event, end: Event) -> float:
        """Microseconds from one event to another; both have to be over."""
        cuda = self._cuda
        return 1e3 * float(self._call("cuEventElapsedTime", cuda.CUevent(start), cuda.CUevent(end)))

    def synchronize(self, stream: Stream) -> None:
        self._call("cuStreamSynchronize", self._stream(stream))

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
        cuda, kernel = self._cuda, self._cuda.CUfunction(function)
        extra = ctypes.addressof(parameters.extra) if parameters.extra is not None else 0
        if together.is_plain:
            where = self._stream(stream)
            self._call("cuLaunchKernel", kernel, *grid, *block, shared_bytes, where, 0, extra)
            return
        config = cuda.CUlaunchConfig()
        config.gridDimX, config.gridDimY, config.gridDimZ = grid
        config.blockDimX, config.blockDimY, config.blockDimZ = block
        config.sharedMemBytes, config.hStream = shared_bytes, self._stream(stream)
        config.attrs = self._attributes(together)
        config.numAttrs = len(config.attrs)
        self._call("cuLaunchKernelEx", config, kernel, 0, extra)

    def _attributes(self, together: Together) -> list[Any]:
        cuda, found = self._cuda, []
        if together.cooperative:
            all_blocks = cuda.CUlaunchAttribute()
            all_blocks.id = cuda.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_COOPERATIVE
            all_blocks.value.cooperative = 1
            found.append(all_blocks)
        if together.cluster is not None:
            cluster = cuda.CUlaunchAttribute()
            cluster.id = cuda.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
            size = cluster.value.clusterDim
            size.x, size.y, size.z = together.cluster
            found.append(cluster)
        return found

    def tensor_map(self, tiles: TensorMap) -> bytes:
        """As the driver makes it, for a tensor at an address of the GPU."""
        cuda, rank = self._cuda, tiles.rank
        made = self._call(
            "cuTensorMapEncodeTiled",
            getattr(cuda.CUtensorMapDataType, _element_name(tiles)),
            rank,
            tiles.address,
            [cuda.cuuint64_t(size) for size in tiles.sizes],
            [cuda.cuuint64_t(stride) for stride in tiles.strides],
            [cuda.cuuint32_t(size) for size in tiles.box],
            [cuda.cuuint32_t(1)] * rank,
            cuda.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
            cuda.CUtensorMapSwizzle((0, 32, 64, 128).index(tiles.swizzle)),
            cuda.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_NONE,
            cuda.CUtensorMapFloatOOBfill(int(tiles.fills_nan)),
        )
        return b"".join(int(word).to_bytes(8, "little") for word in made.opaque)

    graphs = True

    def begin_capture(self, stream: Stream) -> None:
        """What the stream is given from now on is kept instead of run."""
        mode = self._cuda.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
        self._call("cuStreamBeginCapture", self._stream(stream), mode)
        self._capturing = True

    def end_capture(self, stream: Stream) -> Graph:
        self._capturing = False
        graph = self._call("cuStreamEndCapture", self._stream(stream))
        made = self._call("cuGraphInstantiate", graph, 0)
        self._call("cuGraphDestroy", graph)
        return Graph(int(made))

    def run_graph(self, graph: Graph, stream: Stream) -> None:
        self._call("cuGraphLaunch", self._cuda.CUgraphExec(graph), self._stream(stream))

    def drop_graph(self, graph: Graph) -> None:
        self._call("cuGraphExecDestroy", self._cuda.CUgraphExec(graph))

    def monitor(self, gpu: Gpu) -> Monitor | None:
        return open_monitor(gpu.uuid)

    def activity(self) -> Activity | None:
        return open_activity()

    def _stream(self, stream: Stream) -> Any:
        return self._cuda.CUstream(stream)

    def _attribute(self, device: Any, attribute: Attribute) -> int:
        return int(self._call("cuDeviceGetAttribute", self._cuda.CUdevice_attribute(attribute), device))

    def _call(self, name: str, *arguments: Any) -> Any:
        """What a call gives besides its status."""
        code, *answers = getattr(self._cuda, name)(*arguments)
        if int(code) != Status.SUCCESS:
            raise self._error(name, code)
        return answers[0] if answers else None

    def _error(self, call: str, code: Any) -> DriverError:
        words = []
        for ask in (self._cuda.cuGetErrorName, self._cuda.cuGetErrorString):
            known, text = ask(code)
            named = int(known) == Status.SUCCESS and text
            words.append(text.decode(errors="replace") if named else "an error it has no name for")
        return DriverError(call, int(code), words[0], words[1])


def _element_name(tiles: TensorMap) -> str:
    name = _ELEMENTS[tiles.element]
    return f"CU_TENSOR_MAP_DATA_TYPE_{'T' if tiles.rounds_to_tf32 else ''}{name}"
