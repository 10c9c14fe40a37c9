import re
import subprocess
import sys

import pytest

from cuasmrl.errors import CuasmrlError
from cuasmrl.workloads import ARCHS, all, get, names, variants

PUBLISHED = {"gemm_leaky_relu", "bmm", "fused_ff", "flash_attention", "softmax", "rmsnorm"}


def test_the_papers_six_come_first() -> None:
    assert set(names()[:6]) == PUBLISHED
    assert {workload.name for workload in all() if workload.published} == PUBLISHED


def test_published_shapes_are_the_defaults() -> None:
    assert get("gemm_leaky_relu").sizes == {"M": 512, "N": 512, "K": 2048}
    assert get("bmm").sizes == {"B": 4, "M": 512, "N": 512, "K": 2048}
    assert get("fused_ff").sizes == {"M": 512, "N": 512, "K": 2048}
    assert get("flash_attention").sizes == {"B": 1, "H": 4, "S": 4096, "D": 32}
    assert get("softmax").sizes == {"M": 512, "N": 4096}
    assert get("rmsnorm").sizes == {"B": 1, "H": 32, "S": 4096, "D": 64}


def test_published_feed_forward_config_is_the_first() -> None:
    config = get("fused_ff").configs[0]
    assert dict(config.constants) == {"BLOCK_M": 64, "BLOCK_N": 32, "BLOCK_K": 32}
    assert (config.num_warps, config.num_stages) == (2, 2)


@pytest.mark.parametrize("name", names())
def test_definitions_are_complete(name: str) -> None:
    workload = get(name)
    assert workload.source.is_file()
    assert re.search(rf"\b{workload.symbol}\(", workload.source.read_text())
    assert len({config.name for config in workload.configs}) == len(workload.configs)
    assert "\n" not in workload.title
    for sizes in (*workload.shapes, workload.large or workload.sizes):
        assert set(sizes) == set(workload.sizes)
        assert min(min(workload.grid(sizes, config)) for config in workload.configs) >= 1


def test_unknown_name_suggests_close_ones() -> None:
    with pytest.raises(CuasmrlError, match=r"no workload 'sofmax'; did you mean softmax"):
        get("sofmax")


def test_unknown_name_without_close_ones_lists_all() -> None:
    with pytest.raises(CuasmrlError, match=r"choose one of .*softmax"):
        get("@@@")


def test_unknown_config_suggests_close_ones() -> None:
    with pytest.raises(CuasmrlError, match=r"softmax has no config 'w3'; did you mean w"):
        get("softmax").config("w3")


def test_wrong_sizes_are_named() -> None:
    with pytest.raises(CuasmrlError, match=r"softmax is sized by M, N, not by K"):
        get("softmax").inputs({"K": 1})


def test_variants_leave_out_what_cannot_be_built() -> None:
    listed = {(workload.name, arch) for workload, _, arch in variants(ARCHS)}
    assert ("gemm_fp8", 80) not in listed
    assert ("gemm_fp8", 89) in listed
    assert ("gemm_int8", 75) not in listed
    assert ("gemm_int8", 80) in listed


def test_reasons_are_sentences() -> None:
    reasons = {
        reason
        for workload in all()
        for config in workload.configs
        for arch in ARCHS
        if (reason := workload.supports(config, arch))
    }
    assert reasons
    assert all_sentences(reasons)


def all_sentences(reasons: set[str]) -> bool:
    return not [reason for reason in reasons if not reason.endswith(".") or "\n" in reason]


def test_unknown_chip_is_refused_in_a_sentence() -> None:
    workload = get("softmax")
    with pytest.raises(
        CuasmrlError, match=r"softmax \(w4\) cannot be built for sm_70: .*choose one of 75, 80"
    ):
        workload.build(workload.configs[0], 70)


def test_import_is_cheap(child_environment: dict[str, str]) -> None:
    code = (
        "import sys, cuasmrl.workloads as w; w.names(); "
        "print([m for m in ('triton', 'torch', 'ml_dtypes') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=child_environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
