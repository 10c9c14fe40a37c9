"""The CUDA driver API as far as timing a kernel needs it: the interface, and the numbers of cuda.h.

Two modules speak to the driver: `bindings`, by NVIDIA's Python bindings, and `libcuda`, by ctypes, where
those are not installed.
"""

from __future__ import annotations

import ctypes
import sys
from ctypes import c_size_t, c_ubyte, c_void_p
from dataclasses import dataclass
from enum import IntEnum
from typing import NewType, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.devices.activity import Activity
from cuasmrl.gpu.devices.monitor import Monitor
from cuasmrl.gpu.emulator.tensor_maps import TensorMap

Module = NewType("Module", int)
Function = NewType("Function", int)
Stream = NewType("Stream", int)
Event = NewType("Event", int)
Graph = NewType("Graph", int)
"""What a stream was given while it was captured, ready to be run at once."""
Address = NewType("Address", int)
"""Of the GPU's memory."""
Dimensions: TypeAlias = tuple[int, int, int]
Bytes: TypeAlias = npt.NDArray[np.uint8]

LIBRARY = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
OLDEST = 12000
"""CUDA version of the oldest driver that will do."""
INSTEAD = "use a virtual GPU instead, such as --device virtual:a100"


class Status(IntEnum):
    """Results of driver calls that are treated differently from other failures."""

    SUCCESS = 0
    OUT_OF_MEMORY = 2
    STUB_LIBRARY = 34
    DEVICE_UNAVAILABLE = 46
    NO_DEVICE = 100
    INVALID_DEVICE = 101
    ECC_UNCORRECTABLE = 214
    NOT_READY = 600
    SYSTEM_NOT_READY = 802


ELSEWHERE = frozenset(
    {
        Status.OUT_OF_MEMORY,
        Status.DEVICE_UNAVAILABLE,
        Status.NO_DEVICE,
        Status.INVALID_DEVICE,
        Status.ECC_UNCORRECTABLE,
        Status.SYSTEM_NOT_READY,
    }
)
"""Failures that no schedule can cause: it neither allocates anything nor breaks the machine."""


class Attribute(IntEnum):
    """CU_DEVICE_ATTRIBUTE_..."""

    MULTIPROCESSOR_COUNT = 16
    L2_CACHE_SIZE = 38
    COMPUTE_CAPABILITY_MAJOR = 75
    COMPUTE_CAPABILITY_MINOR = 76


MAX_DYNAMIC_SHARED_SIZE_BYTES = 8
"""CU_FUNC_ATTRIBUTE_..."""
CACHE_PREFER_SHARED = 1
"""CU_FUNC_CACHE_..."""
NON_BLOCKING = 1
"""CU_STREAM_...: no implicit order with the default stream, which nobody uses here."""
# CU_LAUNCH_PARAM_...: how a packed parameter area is handed over.
BUFFER_POINTER, BUFFER_SIZE, END = 1, 2, 0


class DriverError(CuasmrlError):
    """A call that the driver refused, or the failure of an earlier launch that it reports now."""

    def __init__(self, call: str, code: int, name: str, text: str) -> None:
        super().__init__(f"{call} failed with {name} ({code}: {text})")
        self.code = code


@dataclass(frozen=True)
class Gpu:
    """What the driver says about a GPU."""

    ordinal: int
    name: str
    arch: int
    """Compute capability without the point, as in sm_80."""
    sm_count: int
    l2_bytes: int
    driver_version: int
    """The CUDA version that the driver supports, 13010 for 13.1."""
    uuid: str = ""
    """By which other tools know it, whatever number it has here."""


@dataclass(frozen=True)
class Together:
    """Which blocks of a launch run at the same time."""

    cooperative: bool = False
    """All of them."""
    cluster: Dimensions | None = None
    """Those of a cluster, where the launch says it instead of the cubin."""

    @property
    def is_plain(self) -> bool:
        return not self.cooperative and self.cluster is None


ALONE = Together()


class Parameters:
    """A packed parameter area in the form `cuLaunchKernel` wants; made once, passed many times."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self._buffer = (c_ubyte * len(data)).from_buffer_copy(data)
        self._size = c_size_t(len(data))
        entries = (
            BUFFER_POINTER,
            ctypes.addressof(self._buffer),
            BUFFER_SIZE,
            ctypes.addressof(self._size),
            END,
        )
        # A kernel without parameters gets no area at all.
        self.extra = (c_void_p * 5)(*entries) if data else None


class Driver(Protocol):
    """What `Bench` asks of a driver; one device, one context, current in the thread that calls."""

    def devices(self) -> int: ...
    def gpu(self, ordinal: int) -> Gpu: ...
    def open_context(self, ordinal: int) -> None: ...
    def load_module(self, image: bytes) -> Module: ...
    def unload_module(self, module: Module) -> None: ...
    def function(self, module: Module, name: str) -> Function: ...
    def allow_shared(self, function: Function, size: int) -> None: ...
    def allocate(self, size: int) -> Address: ...
    def free(self, address: Address) -> None: ...
    def upload(self, address: Address, data: Bytes, stream: Stream) -> None: ...
    def download(self, address: Address, size: int, stream: Stream) -> Bytes: ...
    def copy(self, target: Address, source: Address, size: int, stream: Stream) -> None: ...
    def fill(self, address: Address, byte: int, size: int, stream: Stream) -> None: ...
    def create_stream(self) -> Stream: ...
    def create_event(self) -> Event: ...
    def record(self, event: Event, stream: Stream) -> None: ...
    def has_happened(self, event: Event) -> bool: ...
    def elapsed(self, start: Event, end: Event) -> float: ...
    def synchronize(self, stream: Stream) -> None: ...
    def launch(
        self,
        function: Function,
        grid: Dimensions,
        block: Dimensions,
        shared_bytes: int,
        stream: Stream,
        parameters: Parameters,
        together: Together = ALONE,
    ) -> None: ...
    def tensor_map(self, tiles: TensorMap) -> bytes: ...
    @property
    def graphs(self) -> bool: ...
    def begin_capture(self, stream: Stream) -> None: ...
    def end_capture(self, stream: Stream) -> Graph: ...
    def run_graph(self, graph: Graph, stream: Stream) -> None: ...
    def drop_graph(self, graph: Graph) -> None: ...
    def monitor(self, gpu: Gpu) -> Monitor | None: ...
    def activity(self) -> Activity | None: ...
