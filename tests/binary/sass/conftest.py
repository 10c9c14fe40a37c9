"""Real cubins with opcodes of every family: the sources in this folder, for every chip that has them."""

import itertools
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from cuasmrl.binary.cubin import Cubin
from cuasmrl.binary.sass import Instruction, Listing, disassemble
from cuasmrl.binary.sass.instruction import parse_instruction
from tests.conftest import AssemblePtx, CompileCuda

SOURCES = Path(__file__).parent / "sources"
CHIPS = ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_120a")
SAMPLES = (
    *itertools.product(("memory", "mma"), CHIPS),
    # sm_86 and sm_89 differ from sm_80 in few opcodes, and these sources have none of them.
    *itertools.product(("arithmetic", "atomics", "warp"), (*CHIPS[:2], *CHIPS[4:])),
    *itertools.product(("hopper",), CHIPS[4:]),
    ("blackwell", "sm_100a"),
    ("textures", "sm_75"),
    ("textures", "sm_80"),
)
ONE_OF_EACH = (
    ("warp", "sm_75"),
    ("memory", "sm_80"),
    ("mma", "sm_86"),
    ("atomics", "sm_89"),
    ("hopper", "sm_90a"),
    ("blackwell", "sm_100a"),
    ("arithmetic", "sm_120a"),
)
"""Every source once and every chip once, for tests that would take long over all samples."""


class Sample(NamedTuple):
    cubin: Cubin
    listings: dict[str, Listing]

    @property
    def instructions(self) -> list[Instruction]:
        return [i for listing in self.listings.values() for i in listing.instructions]


Samples = Callable[[str, str], Sample]


@pytest.fixture(scope="session")
def samples(compile_cuda: CompileCuda) -> Samples:
    """samples("memory", "sm_80"): sources/memory.cu, compiled for that chip and disassembled."""

    @cache
    def build(name: str, chip: str) -> Sample:
        data = compile_cuda((SOURCES / f"{name}.cu").read_text(), chip, "-std=c++17", "-w")
        cubin = Cubin.parse(data, f"{name}-{chip}.cubin")
        return Sample(cubin, disassemble(cubin))

    return build


@pytest.fixture(params=SAMPLES, ids="-".join)
def sample(request: pytest.FixtureRequest, samples: Samples) -> Sample:
    return samples(*request.param)


@pytest.fixture(params=ONE_OF_EACH, ids="-".join)
def one_of_each(request: pytest.FixtureRequest, samples: Samples) -> Sample:
    return samples(*request.param)


@pytest.fixture(scope="session")
def old_container(assemble_ptx: AssemblePtx, cuda_to_ptx: Callable[[str, str], str]) -> Sample:
    """A cubin in the container of CUDA 12."""
    ptx = cuda_to_ptx((SOURCES / "mma.cu").read_text(), "compute_80")
    cubin = Cubin.parse(assemble_ptx(ptx, "sm_80"), "mma-cuda12-sm_80.cubin")
    return Sample(cubin, disassemble(cubin))


def parse(text: str, arch: int = 80, word: int = 0, registers: int = 64) -> Instruction:
    """One instruction from its text; `word` matters only where bits are read that nvdisasm does not print."""
    return parse_instruction(0, word.to_bytes(16, "little"), text, arch, registers, {".L_x_1": 0x100})
