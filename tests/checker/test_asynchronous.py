"""Faults planted around products of a warpgroup, barriers in shared memory and copies by an engine."""

from collections.abc import Callable, Iterator
from functools import partial

import pytest

from cuasmrl import workloads
from cuasmrl.binary.cubin import Cubin
from tests.checker.campaign import Campaign, Turn
from tests.checker.conftest import SOURCES
from tests.checker.plants import KINDS
from tests.conftest import CompileCuda

_ASYNCHRONOUS = {"tests.checker.plants.products", "tests.checker.plants.engines"}


@pytest.fixture(scope="session")
def asynchronous(compile_cuda: CompileCuda) -> Callable[[str], Cubin]:
    """asynchronous("products"): sources/asynchronous/products.cu for sm_90a."""

    def build(name: str) -> Cubin:
        source = (SOURCES / "asynchronous" / f"{name}.cu").read_text()
        return Cubin.parse(compile_cuda(source, "sm_90a"), f"{name}.cubin")

    return build


def _of_triton(name: str, config: str) -> Cubin:
    workload = workloads.get(name)
    chosen = next(c for c in workload.configs if c.name == config)
    return Cubin.parse(workload.build(chosen, 90, workload.shapes[0]).cubin, f"{name} {config}")


def _kinds() -> list[str]:
    return [kind for kind, sites in KINDS.items() if sites.__module__ in _ASYNCHRONOUS]


def _turns(build: Callable[[str], Cubin], each: int) -> Iterator[Turn]:
    for is_rescheduled in (False, True):
        for name in ("products", "engines"):
            yield Turn(f"{name} {is_rescheduled}", partial(build, name), each, is_rescheduled)
        for name, config in (("bmm", "m128n128k64_w8_s3"), ("flash_attention", "m128n64_w4_s2")):
            yield Turn(f"{name} {is_rescheduled}", partial(_of_triton, name, config), each, is_rescheduled)


def test_faults_in_asynchronous_code_are_refused(asynchronous: Callable[[str], Cubin]) -> None:
    campaign = Campaign(_kinds())
    for turn in _turns(asynchronous, 40):
        campaign.plant(turn)
    assert not campaign.complaints, "\n".join(campaign.complaints[:20])
    assert all(tally.planted for tally in campaign.tallies.values()), campaign.table()
