"""Cubins to check: a few kernels by nvcc for every chip, and real workloads by Triton for two."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from cuasmrl.binary.cubin import Cubin
from cuasmrl.binary.sass import Listing, disassemble, distances
from cuasmrl.checker import Checker
from tests.checker.subjects import Subject
from tests.conftest import CompileCuda

CHIPS = ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120")
SOURCE = Path(__file__).parent / "sources" / "kernels.cu"


@pytest.fixture(scope="session")
def compiled(compile_cuda: CompileCuda) -> Callable[[str], Cubin]:
    """compiled("sm_80"): sources/kernels.cu for that chip."""
    source, made = SOURCE.read_text(), dict[str, Cubin]()

    def build(chip: str) -> Cubin:
        if chip not in made:
            made[chip] = Cubin.parse(compile_cuda(source, chip), f"kernels-{chip}.cubin")
        return made[chip]

    return build


@pytest.fixture(scope="session")
def listed(compiled: Callable[[str], Cubin]) -> Callable[[str], dict[str, Listing]]:
    made: dict[str, dict[str, Listing]] = {}

    def build(chip: str) -> dict[str, Listing]:
        if chip not in made:
            made[chip] = disassemble(compiled(chip))
        return made[chip]

    return build


@pytest.fixture(scope="session")
def subject(
    compiled: Callable[[str], Cubin], listed: Callable[[str], dict[str, Listing]]
) -> Callable[[str, str], Subject]:
    """subject("sm_80", "tile"): one kernel to edit."""

    def build(chip: str, kernel: str) -> Subject:
        cubin = compiled(chip)
        return Subject(cubin, listed(chip)[kernel], distances(cubin.arch))

    return build


@pytest.fixture(scope="session")
def checker(
    compiled: Callable[[str], Cubin], listed: Callable[[str], dict[str, Listing]]
) -> Callable[[str], Checker]:
    made: dict[str, Checker] = {}

    def build(chip: str) -> Checker:
        if chip not in made:
            made[chip] = Checker(compiled(chip), listed(chip))
        return made[chip]

    return build


@pytest.fixture(scope="session")
def corpus() -> Path:
    """Every cubin below $CUASMRL_CORPUS, a folder that `cuasmrl workloads --build` fills."""
    folder = os.environ.get("CUASMRL_CORPUS")
    if not folder:
        pytest.skip("set CUASMRL_CORPUS to a folder of cubins")
    return Path(folder)
