"""A certified schedule computes the same bits as the original."""

import pytest

from cuasmrl import workloads
from tests.gpu.emulator.reordering import Tally, play

PUBLISHED = [w.name for w in workloads.all() if w.published]
VARIANTS = 1000
PRODUCTS = {
    "bmm": ("m64n64k64_w4_s3", {"B": 1, "M": 64, "N": 64, "K": 192}),
    "flash_attention": ("m64n64_w4_s3", {"B": 1, "H": 1, "S": 128, "D": 64}),
    "gemm_fp8": ("m64n64k64_w4_s3", {"M": 64, "N": 64, "K": 192}),
    "fused_ff": ("m64n64k64_w4_s3", {"M": 64, "N": 64, "K": 128}),
    "gemm_tma": ("m64n64k64_w4_s3", {"M": 64, "N": 64, "K": 256}),
    "gemm_specialised": ("m64n128k64_w4_s2", {"M": 64, "N": 128, "K": 192}),
}
"""Workloads with products of warpgroups on sm_90, in loops of two to four iterations; the last two copy by
TMA, one of them in a warp of its own."""
TENSOR_MEMORY = {"bmm": PRODUCTS["bmm"], "flash_attention": PRODUCTS["flash_attention"]}
"""Products in tensor memory, on sm_100."""


@pytest.mark.parametrize("name", PUBLISHED)
def test_rescheduled_variants_give_the_same_bits(name: str) -> None:
    workload = workloads.get(name)
    tally = play(workload, workload.configs[0], 80, workload.shapes[-1], variants=4, seed=1)
    assert tally.displaced


@pytest.mark.slow
@pytest.mark.parametrize("name", PUBLISHED)
def test_a_thousand_variants_of_each_published_workload(name: str) -> None:
    workload = workloads.get(name)
    total = Tally()
    archs = (80, 86, 89)
    configs = [c for c in workload.configs if all(workload.supports(c, arch) is None for arch in archs)]
    cases = [(config, arch) for arch in archs for config in configs]
    for number, (config, arch) in enumerate(cases):
        share = VARIANTS // len(cases) + 1
        sizes = workload.shapes[number % len(workload.shapes)]
        tally = play(workload, config, arch, sizes, share, seed=number)
        total.variants += tally.variants
        total.displaced += tally.displaced
        total.moves += tally.moves
    assert total.variants >= VARIANTS
    print(f"\n{name}: {total.variants} variants, {total.displaced} instructions displaced, {total.moves}")


def _play_products(name: str, variants: int, seed: int, arch: int = 90) -> Tally:
    workload, (config, sizes) = workloads.get(name), PRODUCTS[name]
    return play(workload, workload.config(config), arch, sizes, variants, seed)


def test_rescheduled_products_of_warpgroups_give_the_same_bits() -> None:
    """What is touched in flight would be a fault of the emulator, beside other bits."""
    assert _play_products("bmm", 3, seed=1).displaced


def test_rescheduled_products_in_tensor_memory_give_the_same_bits() -> None:
    assert _play_products("bmm", 3, seed=1, arch=100).displaced


@pytest.mark.slow
@pytest.mark.parametrize("name", TENSOR_MEMORY)
def test_a_thousand_variants_with_products_in_tensor_memory(name: str) -> None:
    total = _play_products(name, VARIANTS, seed=5, arch=100)
    assert total.variants == VARIANTS
    print(f"\n{name}: {total.variants} variants, {total.displaced} instructions displaced, {total.moves}")


@pytest.mark.slow
@pytest.mark.parametrize("name", PRODUCTS)
def test_a_thousand_variants_with_products_of_warpgroups(name: str) -> None:
    total = _play_products(name, VARIANTS, seed=5)
    assert total.variants == VARIANTS
    print(f"\n{name}: {total.variants} variants, {total.displaced} instructions displaced, {total.moves}")
