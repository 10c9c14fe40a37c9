"""Launch files: grid, block and arguments of a launch as JSON, buffers by how they are filled."""

from cuasmrl.gpu.launches.description import describe
from cuasmrl.gpu.launches.fields import parse
from cuasmrl.gpu.launches.record import Buffer, Bytes, LaunchRecord, SameAs, Scalar
from cuasmrl.gpu.launches.storage import as_json, load, save

__all__ = [
    "Buffer",
    "Bytes",
    "LaunchRecord",
    "SameAs",
    "Scalar",
    "as_json",
    "describe",
    "load",
    "parse",
    "save",
]
