"""torch.compile: its autotuner compiles through Triton and launches from the file that Triton wrote."""

import os
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
import triton

import cuasmrl
from cuasmrl.deploy.store import Store
from tests.deploy.triton import kernels
from tests.deploy.triton.kernels import put_result, rearranged

heuristics = pytest.importorskip("torch._inductor.runtime.triton_heuristics")


@pytest.fixture
def triton_cache(tmp_path: Path) -> Path:
    return tmp_path / "triton"


@pytest.fixture(autouse=True)
def no_gpu_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heuristics.triton_helpers, "set_driver_to_gpu", lambda: None)


def precompiled() -> Any:
    """As Inductor's generated code does it, for an A100 that is not there."""
    from torch._inductor.runtime.hints import DeviceProperties

    device = DeviceProperties(
        type="cuda", index=0, multi_processor_count=108, cc=80, major=8, regs_per_multiprocessor=65536,
        max_threads_per_multi_processor=2048, warp_size=32,
    )  # fmt: skip
    config = triton.Config({"BLOCK": 512}, num_warps=4, num_stages=1)
    tuner = heuristics.CachingAutotuner(
        fn=kernels.softmax,
        triton_meta={
            "signature": {"x": "*fp32", "z": "*fp32", "columns": "i32", "BLOCK": "constexpr"},
            "device": device, "constants": {"BLOCK": 512}, "configs": [{(0,): [["tt.divisibility", 16]]}],
        },
        configs=[config], save_cache_hook=None, mutated_arg_names=["z"], optimize_mem=True,
        heuristic_type=heuristics.HeuristicType.TEMPLATE, inductor_meta={"kernel_name": "softmax"},
    )  # fmt: skip
    return tuner._precompile_config(config)


def cubins(directory: Path) -> set[bytes]:
    return {path.read_bytes() for path in directory.rglob("*.cubin")}


def test_the_file_that_is_launched_holds_the_result(store: Store, triton_cache: Path) -> None:
    precompiled()
    (plain,) = cubins(triton_cache)
    put_result(store, plain)
    cuasmrl.install(store=store)
    found = precompiled()
    assert cubins(triton_cache) == {plain, rearranged(plain)}
    path = getattr(found.kernel, "cubin_path", None)
    if path is not None:
        assert Path(path).read_bytes() == rearranged(plain)


def test_an_empty_store_changes_nothing(store: Store, triton_cache: Path) -> None:
    precompiled()
    before = {path: path.read_bytes() for path in triton_cache.rglob("*.cubin")}
    cuasmrl.install(store=store)
    precompiled()
    assert {path: path.read_bytes() for path in triton_cache.rglob("*.cubin")} == before


def mode_in_a_worker() -> str | None:
    __import__("triton")
    from cuasmrl.deploy.triton import installation

    found = installation()
    return str(found.mode) if found else None


@pytest.mark.slow
def test_workers_install_themselves(store: Store) -> None:
    """Inductor's own pool of processes, as torch.compile starts it."""
    from torch._inductor.compile_worker.subproc_pool import SubprocPool

    before = list(sys.path)
    modes = []
    for is_in in (False, True):
        if is_in:
            assert cuasmrl.install(store=store)
        pool = SubprocPool(1)
        modes.append(pool.submit(mode_in_a_worker).result(timeout=300))
        pool.shutdown()
    assert modes == [None, "deploy"]
    cuasmrl.uninstall()
    assert sys.path == before


def test_the_keys_of_its_caches_follow_the_store(store: Store, triton_cache: Path) -> None:
    """Its own caches hold cubins and know nothing of ours."""
    config = torch.compiler.config
    before = config.cache_key_tag
    cuasmrl.install(store=store)
    assert config.cache_key_tag == before, "nothing is stored yet"
    cuasmrl.uninstall()
    precompiled()
    (plain,) = cubins(triton_cache)
    put_result(store, plain)
    cuasmrl.install(store=store)
    assert config.cache_key_tag == f"{before}+cuasmrl-{store.epoch}".lstrip("+")
    cuasmrl.uninstall()
    assert config.cache_key_tag == before
    assert "TORCH_COMPILE_CACHE_KEY_TAG" not in os.environ
