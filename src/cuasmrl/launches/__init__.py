"""Launch files: grid, block and arguments of a launch as JSON, buffers by how they are filled."""

from cuasmrl.launches.description import describe
from cuasmrl.launches.fields import parse
from cuasmrl.launches.record import Buffer, Bytes, LaunchRecord, SameAs, Scalar
from cuasmrl.launches.storage import load, save

__all__ = ["Buffer", "Bytes", "LaunchRecord", "SameAs", "Scalar", "describe", "load", "parse", "save"]
