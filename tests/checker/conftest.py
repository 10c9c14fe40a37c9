"""Cubins to check: small kernels by nvcc for every chip."""

import os
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from cuasmrl.binary.cubin import Cubin
from cuasmrl.binary.sass import Listing, disassemble, distances
from cuasmrl.checker import Checker
from tests.checker.subjects import Subject
from tests.conftest import CompileCuda

CHIPS = ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120")
SOURCES = Path(__file__).parent / "sources"
UNSAFE = ("lanes", "overwritten", "ordered", "queued", "branching", "outside")
"""Sources of kernels in which something was once changed unsafely and certified."""
_SPECIFIC = {("ordered", chip): f"{chip}a" for chip in ("sm_90", "sm_100", "sm_120")}
"""Some instructions are for these targets only."""
Examined = Callable[[str, str], tuple[Checker, dict[str, Subject]]]


def each(*chips: str, soon: tuple[str, ...] = ("sm_80",)) -> pytest.MarkDecorator:
    """A test for each of these chips: for some with every run, for the others among the campaigns."""
    slow = pytest.mark.slow
    return pytest.mark.parametrize(
        "chip", [pytest.param(chip, marks=() if chip in soon else slow) for chip in chips]
    )


@pytest.fixture(scope="session")
def built(compile_cuda: CompileCuda) -> Callable[[str, str], Cubin]:
    """built("lanes", "sm_80"): sources/lanes.cu for that chip."""
    made = dict[tuple[str, str], Cubin]()

    def build(name: str, chip: str) -> Cubin:
        if (name, chip) not in made:
            source, target = (SOURCES / f"{name}.cu").read_text(), _SPECIFIC.get((name, chip), chip)
            made[name, chip] = Cubin.parse(compile_cuda(source, target), f"{name}-{chip}.cubin")
        return made[name, chip]

    return build


@pytest.fixture(scope="session")
def examined(built: Callable[[str, str], Cubin]) -> Examined:
    """examined("lanes", "sm_80"): the checker of that cubin, and its kernels by name."""

    @cache
    def build(name: str, chip: str) -> tuple[Checker, dict[str, Subject]]:
        cubin = built(name, chip)
        listings, table = disassemble(cubin), distances(cubin.arch)
        subjects = {kernel: Subject(cubin, listing, table) for kernel, listing in listings.items()}
        return Checker(cubin, listings), subjects

    return build


@pytest.fixture(scope="session")
def compiled(built: Callable[[str, str], Cubin]) -> Callable[[str], Cubin]:
    """compiled("sm_80"): sources/kernels.cu for that chip."""
    return lambda chip: built("kernels", chip)


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
