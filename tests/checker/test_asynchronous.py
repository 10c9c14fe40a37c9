"""Faults planted around products of a warpgroup, barriers in shared memory and copies by an engine."""

from collections.abc import Callable, Iterator
from functools import partial

import pytest

from cuasmrl import workloads
from cuasmrl.binary.cubin import Cubin
from cuasmrl.binary.sass import disassemble, distances
from cuasmrl.checker import Checker, Refusal, Rule
from tests.checker.campaign import Campaign, Turn
from tests.checker.conftest import SOURCES
from tests.checker.plants import KINDS, tensors
from tests.checker.subjects import Subject
from tests.conftest import CompileCuda

_ASYNCHRONOUS = {"tests.checker.plants.products", "tests.checker.plants.engines"}


@pytest.fixture(scope="session")
def asynchronous(compile_cuda: CompileCuda) -> Callable[[str], Cubin]:
    """asynchronous("products"): sources/asynchronous/products.cu, for sm_90a if it does not need sm_100a."""

    def build(name: str) -> Cubin:
        source = (SOURCES / "asynchronous" / f"{name}.cu").read_text()
        chip = "sm_100a" if name == "tensors" else "sm_90a"
        return Cubin.parse(compile_cuda(source, chip), f"{name}.cubin")

    return build


def _of_triton(name: str, config: str, arch: int = 90) -> Cubin:
    workload = workloads.get(name)
    chosen = next(c for c in workload.configs if c.name == config)
    return Cubin.parse(workload.build(chosen, arch, workload.shapes[0]).cubin, f"{name} {config}")


def _kinds() -> list[str]:
    found = [kind for kind, sites in KINDS.items() if sites.__module__ in _ASYNCHRONOUS]
    return [kind for kind in found if kind not in tensors.NAMES]


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


def test_faults_around_tensor_memory_are_refused(asynchronous: Callable[[str], Cubin]) -> None:
    campaign = Campaign(tensors.NAMES)
    for is_rescheduled in (False, True):
        name = f"tensors {is_rescheduled}"
        campaign.plant(Turn(name, partial(asynchronous, "tensors"), 60, is_rescheduled))
    campaign.plant(Turn("bmm", partial(_of_triton, "bmm", "m64n64k64_w4_s3", 100), 20))
    assert not campaign.complaints, "\n".join(campaign.complaints[:20])
    assert all(tally.planted for tally in campaign.tallies.values()), campaign.table()


def test_a_utcbar_stays_with_its_padding() -> None:
    """Compilers put a NOP behind it; what stands behind the two does not come in between."""
    cubin = _of_triton("gemm_leaky_relu", "m64n64k32_w4_s3", 100)
    (listing,) = disassemble(cubin).values()
    code, checker = listing.instructions, Checker(cubin)
    padded = [i.index for i in code if i.opcode == "UTCBAR" and code[i.index + 1].opcode == "NOP"]
    assert padded
    subject = Subject(cubin, listing, distances(100))
    for c in padded:
        for order in (subject.moved(c + 2, c + 1), subject.moved(c - 1, c + 1), subject.moved(c + 1, c)):
            with pytest.raises(Refusal) as caught:
                checker.check(subject.build(order))
            assert caught.value.rule in (Rule.PINNED, Rule.BLOCK)
