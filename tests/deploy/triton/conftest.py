"""A clean Triton for each test: caches of its own, a store of its own, and nothing left installed."""

import shutil
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
import triton

import cuasmrl
import cuasmrl.gpu.virtual
from cuasmrl.deploy.store import Store
from cuasmrl.deploy.triton.compiler import backend_class
from tests.deploy.triton import kernels


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


@pytest.fixture
def kept_cache(pytestconfig: pytest.Config) -> Path:
    """Compiled kernels are kept between runs of the tests."""
    assert pytestconfig.cache is not None
    return pytestconfig.cache.mkdir("cuasmrl-triton-plain")


@pytest.fixture
def triton_cache(kept_cache: Path) -> Path:
    return kept_cache


@pytest.fixture
def own_cache(kept_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """For tests that look at the cache, or fill it with other than plain kernels."""
    with monkeypatch.context() as patch, cuasmrl.gpu.virtual.active("a100"):
        patch.setenv("TRITON_CACHE_DIR", str(kept_cache))
        patch.setenv("TRITON_DEFAULT_FP_FUSION", "1")
        for function in (kernels.softmax, kernels.scale):
            files = kernels.compiled(function).metadata_group
            made = Path(next(iter(files.values()))).parent
            shutil.copytree(made, tmp_path / "triton" / made.name)
    return tmp_path / "triton"


@pytest.fixture(autouse=True)
def clean(tmp_path: Path, triton_cache: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Each test begins like a process, with the virtual A100 as the device."""
    monkeypatch.setenv("TRITON_CACHE_DIR", str(triton_cache))
    monkeypatch.setenv("TRITON_DEFAULT_FP_FUSION", "1")
    monkeypatch.setenv("CUASMRL_STORE", str(tmp_path / "store"))
    kernels.forget()
    backend = backend_class()
    before = backend.add_stages, backend.hash
    with cuasmrl.gpu.virtual.active("a100"), warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        yield
    cuasmrl.uninstall()
    assert (backend.add_stages, backend.hash) == before
    assert triton.runtime.driver._active is None
