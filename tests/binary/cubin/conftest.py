"""The same kernels in both ABIs and for chips with and without a second description of the code."""

from collections.abc import Callable
from pathlib import Path

import pytest

from cuasmrl.binary.cubin import Cubin
from tests.conftest import AssemblePtx, CompileCuda

SOURCES = Path(__file__).parent / "sources"
OLD_ABI = ("cuda12-sm_75", "cuda12-sm_80", "cuda12-sm_90")
NEW_ABI = ("cuda13-sm_80", "cuda13-sm_90", "cuda13-sm_100", "cuda13-sm_120")


@pytest.fixture(scope="session")
def sample(
    compile_cuda: CompileCuda, assemble_ptx: AssemblePtx, cuda_to_ptx: Callable[[str, str], str]
) -> Callable[[str], Cubin]:
    """sample("cuda12-sm_80"): the cubin of sources/many.cu in that ABI for that chip."""
    source = (SOURCES / "many.cu").read_text()

    def build(name: str) -> Cubin:
        abi, arch = name.split("-")
        if abi == "cuda12":
            data = assemble_ptx(cuda_to_ptx(source, arch.replace("sm", "compute")), arch)
        else:
            data = compile_cuda(source, arch, "-lineinfo")
        return Cubin.parse(data, f"{name}.cubin")

    return build


@pytest.fixture(params=OLD_ABI + NEW_ABI)
def cubin(request: pytest.FixtureRequest, sample: Callable[[str], Cubin]) -> Cubin:
    return sample(request.param)


@pytest.fixture(params=("cuda12-sm_80", "cuda13-sm_100"))
def one_of_each(request: pytest.FixtureRequest, sample: Callable[[str], Cubin]) -> Cubin:
    """For tests that would be slow over all samples."""
    return sample(request.param)
