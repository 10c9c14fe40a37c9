"""The key of a cubin's code."""

import random
import re
from collections.abc import Callable

import pytest

from cuasmrl.binary.cubin import Cubin
from cuasmrl.deploy.store import code_key
from cuasmrl.deploy.store.code import is_idle, read_code
from cuasmrl.errors import CuasmrlError
from tests.conftest import AssemblePtx, CompileCuda
from tests.deploy.store.results import compiled, rearranged, with_byte

SOURCE = """
__constant__ float table[4] = {1, 2, 3, 4};
extern "C" __global__ void scale(float *x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = x[i] * table[i & 3];
}
extern "C" __global__ void shift(float *x) { __shared__ float s[64]; s[threadIdx.x] = x[threadIdx.x];
    __syncthreads(); x[threadIdx.x] = s[63 - threadIdx.x]; }
"""


@pytest.mark.parametrize("arch", ["sm_80", "sm_90", "sm_100", "sm_120"])
def test_source_lines_do_not_count(compile_cuda: CompileCuda, arch: str) -> None:
    plain = compile_cuda(SOURCE, arch, "-lineinfo")
    moved = compile_cuda("\n\n// three lines further down\n" + SOURCE, arch, "-lineinfo")
    assert plain != moved
    assert code_key(plain) == code_key(moved)


def test_options_without_effect_do_not_count(compile_cuda: CompileCuda) -> None:
    plain, wordy = compile_cuda(SOURCE, "sm_90"), compile_cuda(SOURCE, "sm_90", "-Xptxas=-v")
    assert plain != wordy, "the note of the toolkit has the options"
    assert code_key(plain) == code_key(wordy)


def test_whatever_runs_counts(compile_cuda: CompileCuda) -> None:
    cubins = [
        compile_cuda(SOURCE, "sm_80"),
        compile_cuda(SOURCE, "sm_86"),
        compile_cuda(SOURCE.replace("{1, 2", "{1, 3"), "sm_80"),
        compile_cuda(SOURCE.replace("s[64]", "s[65]"), "sm_80"),
        compile_cuda(SOURCE.replace("scale(", "scaled("), "sm_80"),
        compile_cuda(SOURCE, "sm_80", "-maxrregcount=16"),
        compile_cuda(SOURCE, "sm_80", "-Xptxas=-O1"),
    ]
    assert len({code_key(cubin) for cubin in cubins}) == len(cubins)


def test_the_toolchain_counts(
    cuda_to_ptx: Callable[[str, str], str], assemble_ptx: AssemblePtx, compile_cuda: CompileCuda
) -> None:
    """CUDA 13 notes its release down; with another one the same code is another."""
    ours = compile_cuda(SOURCE, "sm_80")
    release = re.search(rb"release \d+\.(\d)", ours)
    assert release is not None
    assert code_key(with_byte(ours, release.start(1))) != code_key(ours)
    assert code_key(assemble_ptx(cuda_to_ptx(SOURCE, "sm_80"), "sm_80")) != code_key(ours)


def test_another_schedule_is_other_code() -> None:
    original = compiled()
    assert code_key(rearranged(original)) != code_key(original)


def test_kernels_and_chip(compile_cuda: CompileCuda) -> None:
    code = read_code(compile_cuda(SOURCE, "sm_90"))
    assert (code.arch, code.kernels) == (90, ["scale", "shift"])
    assert code.kernels == sorted(k.name for k in Cubin.parse(compile_cuda(SOURCE, "sm_90")).kernels)


@pytest.mark.parametrize(
    ("name", "idle"),
    [
        (".debug_line", True), (".rela.debug_frame", True), (".nv_debug_ptx_txt", True), ("", True),
        (".nv.merc.debug_str", True), (".nv.merc.rela.nv_debug_line_sass", True), (".symtab", True),
        (".text.k", False), (".rel.text.k", False), (".rela.text.k", False), (".nv.info", False),
        (".nv.constant0.k", False), (".nv.global.init", False), (".nv.shared.k", False),
        (".nv.capmerc.text.k", False), (".nv.merc.nv.info.k", False), (".nv.callgraph", False),
        (".something.new", False),
    ],
)  # fmt: skip
def test_what_counts_as_code(name: str, idle: bool) -> None:
    assert is_idle(name) is idle


@pytest.mark.parametrize("data", [b"", b"\x7fELF", b"not a cubin", b"\x7fELF" + bytes(400)])
def test_no_cubin_is_one_sentence(data: bytes) -> None:
    with pytest.raises(CuasmrlError, match="not a readable cubin"):
        code_key(data)


def test_a_damaged_cubin_has_another_key_or_none() -> None:
    original, rng = compiled(), random.Random(0)
    key, lengths = code_key(original), range(len(original))
    damaged = [original[: rng.choice(lengths)] for _ in range(60)]
    tables = range(len(original) - 2000, len(original))
    damaged += [with_byte(original, rng.choice(tables), 1 << rng.randrange(8)) for _ in range(200)]
    other = 0
    for data in damaged:
        try:
            other += code_key(data) != key
        except CuasmrlError:
            other += 1
    # Bits of what only debuggers and linkers read may change without notice.
    assert other > 100
