"""Kernels of `sources/`, compiled once for each chip that a test asks for."""

from pathlib import Path

import pytest

from cuasmrl.binary.cubin import Cubin
from tests.conftest import CompileCuda
from tests.gpu.emulator.kernels import Kernels, Load

SOURCES = Path(__file__).parent / "sources"


@pytest.fixture(scope="session")
def load(compile_cuda: CompileCuda) -> Load:
    made: dict[tuple[str, str], Kernels] = {}

    def build(source: str, chip: str) -> Kernels:
        if (source, chip) not in made:
            data = compile_cuda((SOURCES / f"{source}.cu").read_text(), chip)
            made[source, chip] = Kernels(Cubin.parse(data, f"{source}-{chip}.cubin"))
        return made[source, chip]

    return build
