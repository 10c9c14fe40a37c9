"""The cubin container: kernels, attributes, and patching in place."""

from cuasmrl.binary.cubin.container import SUPPORTED_ARCHS, WORD_BYTES, Cubin, Kernel, Parameter
from cuasmrl.binary.cubin.elf import Section, Symbol
from cuasmrl.binary.cubin.records import Attribute, Format, Offsets, Record

__all__ = [
    "SUPPORTED_ARCHS",
    "WORD_BYTES",
    "Attribute",
    "Cubin",
    "Format",
    "Kernel",
    "Offsets",
    "Parameter",
    "Record",
    "Section",
    "Symbol",
]
