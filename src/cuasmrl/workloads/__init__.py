"""Real kernels with their launch, inputs and reference."""

from cuasmrl.workloads.chips import ARCHS
from cuasmrl.workloads.corpus import Corpus, CorpusEntry, build_corpus
from cuasmrl.workloads.evidence import build_evidence
from cuasmrl.workloads.model import BuiltKernel, Config, Expected, Parameter, Workload
from cuasmrl.workloads.registry import all, get, names, shape, variants

__all__ = [
    "ARCHS", "BuiltKernel", "Config", "Corpus", "CorpusEntry", "Expected", "Parameter", "Workload",
    "all", "build_corpus", "build_evidence", "get", "names", "shape", "variants",
]  # fmt: skip
