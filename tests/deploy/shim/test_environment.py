"""What a program's environment becomes, for machines with one toolkit, several or none."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from cuasmrl.deploy.shim import environment as module
from cuasmrl.deploy.shim.caches import CACHES
from cuasmrl.deploy.shim.environment import Prepared, prepare
from cuasmrl.deploy.shim.folders import shadow_toolkit
from cuasmrl.deploy.shim.tools import is_shim, original, toolkit_on_path
from cuasmrl.deploy.store import Store
from cuasmrl.deploy.triton.modes import Mode
from tests.deploy.shim.conftest import put

Toolkit = Callable[..., Path]


@pytest.fixture
def toolkit(tmp_path: Path) -> Toolkit:
    """toolkit(name, release): a toolkit whose tools are scripts."""

    def make(name: str, release: str = "13.0") -> Path:
        folder = tmp_path / name
        for part in ("bin", "include", "nvvm/bin"):
            (folder / part).mkdir(parents=True)
        for tool, text in (
            ("ptxas", f"echo release {release}"),
            ("nvcc", "echo '#$ _HERE_='$(dirname $0) >&2"),
        ):
            (folder / "bin" / tool).write_text(f"#!/bin/sh\n{text}\n")
            (folder / "bin" / tool).chmod(0o755)
        return folder

    return make


@pytest.fixture(autouse=True)
def no_other_toolkit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_USUAL_HOME", tmp_path / "none")
    monkeypatch.setattr(module, "toolkit_in_packages", lambda: None)


def prepared(tmp_path: Path, store: Store, **given: str | Path) -> Prepared:
    base = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(tmp_path),
        **{name: str(value) for name, value in given.items()},
    }
    return prepare(tmp_path / "shims", store, Mode.DEPLOY, None, base)


def test_without_a_toolkit_only_triton_changes(tmp_path: Path, store: Store) -> None:
    found = prepared(tmp_path, store, PATH=tmp_path)
    assert set(found.changes) == {
        "CUASMRL_STORE", "CUASMRL_MODE", "TRITON_PTXAS_PATH", "TRITON_PTXAS_BLACKWELL_PATH",
        "CUASMRL_PTXAS", "CUASMRL_PTXAS_BLACKWELL",
    }  # fmt: skip
    assert found.problems == ()
    assert is_shim(found.changes["TRITON_PTXAS_PATH"])


def test_what_the_user_asks_of_triton_is_found_as_triton_finds_it(
    tmp_path: Path, store: Store, toolkit: Toolkit
) -> None:
    real = toolkit("cuda", "12.3")
    named = prepared(tmp_path, store, PATH=f"{real}/bin:/usr/bin:/bin", TRITON_PTXAS_PATH="ptxas").changes
    assert named["CUASMRL_PTXAS"] == f"{real}/bin/ptxas"
    broken = prepared(tmp_path, store, PATH=tmp_path, TRITON_PTXAS_PATH="/nowhere/ptxas")
    assert broken.changes["CUASMRL_PTXAS"] == ""
    assert is_shim(broken.changes["TRITON_PTXAS_PATH"])
    assert broken.problems == (
        "TRITON_PTXAS_PATH is /nowhere/ptxas, which does not say its release: Triton takes its own",
    )


def test_a_toolkit_on_the_path_gets_a_shadow(tmp_path: Path, store: Store, toolkit: Toolkit) -> None:
    real = toolkit("cuda")
    changes = prepared(tmp_path, store, PATH=f"{real}/bin:/usr/bin:/bin").changes
    shadow = Path(changes["CUDA_HOME"])
    assert changes["PATH"] == f"{shadow}/bin:{real}/bin:/usr/bin:/bin"
    assert changes["XLA_FLAGS"] == f"--xla_gpu_cuda_data_dir={shadow}"
    assert is_shim(shadow / "bin/ptxas")
    assert (shadow / "bin/nvcc").resolve() == real / "bin/nvcc"
    assert (shadow / "nvvm").resolve() == real / "nvvm"
    assert original(shadow) == real


def test_each_variable_keeps_its_own_toolkit(tmp_path: Path, store: Store, toolkit: Toolkit) -> None:
    on_path, home, compiler, xla = (toolkit(name) for name in ("a", "b", "c", "d"))
    flags = f"--xla_dump_to=/x --xla_gpu_cuda_data_dir={xla} --xla_y=1"
    changes = prepared(
        tmp_path, store, PATH=f"{on_path}/bin:/usr/bin:/bin", CUDA_HOME=home, CUDA_PATH=home,
        CUDACXX=compiler / "bin/nvcc", XLA_FLAGS=flags,
    ).changes  # fmt: skip
    assert original(Path(changes["PATH"].split(":")[0]).parent) == on_path
    assert original(Path(changes["CUDA_HOME"])) == home
    assert changes["CUDA_PATH"] == changes["CUDA_HOME"]
    assert original(Path(changes["CUDACXX"]).parent.parent) == compiler
    assert changes["XLA_FLAGS"].startswith("--xla_dump_to=/x --xla_y=1 --xla_gpu_cuda_data_dir=")
    assert original(Path(changes["XLA_FLAGS"].rpartition("=")[2])) == xla


def test_shadows_are_not_shadowed(tmp_path: Path, store: Store, toolkit: Toolkit) -> None:
    real = toolkit("cuda")
    first = prepared(tmp_path, store, PATH=f"{real}/bin:/usr/bin:/bin").changes
    second = prepared(tmp_path, store, **{**first, "HOME": str(tmp_path)}).changes
    assert second == first


def test_a_toolkit_that_changes_gets_a_new_shadow(tmp_path: Path, toolkit: Toolkit) -> None:
    real = toolkit("cuda")
    first = shadow_toolkit(tmp_path / "shims", real)
    assert shadow_toolkit(tmp_path / "shims", real) == first
    (real / "bin/cuobjdump").write_text("new")
    second = shadow_toolkit(tmp_path / "shims", real)
    assert second != first
    assert (second / "bin/cuobjdump").exists()
    assert list((tmp_path / "shims").glob("*.partial")) == []


@pytest.mark.parametrize("text", ["exit 3", "echo no version here"])
def test_a_ptxas_that_does_not_answer_is_left_alone(
    tmp_path: Path, store: Store, toolkit: Toolkit, text: str
) -> None:
    real = toolkit("cuda")
    (real / "bin/ptxas").write_text(f"#!/bin/sh\n{text}\n")
    found = prepared(tmp_path, store, PATH=f"{real}/bin:/usr/bin:/bin")
    assert "CUDA_HOME" not in found.changes
    assert found.problems == (f"{real}/bin/ptxas does not say its release, so it is called without cuasmrl",)


def test_shims_that_do_not_run_are_not_used(
    tmp_path: Path, store: Store, toolkit: Toolkit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a disk from which nothing may be executed."""
    real = toolkit("cuda")
    monkeypatch.setattr(
        "cuasmrl.deploy.shim.folders._write_executable", lambda path, text: path.write_text(text)
    )
    found = prepared(tmp_path, store, PATH=f"{real}/bin:/usr/bin:/bin")
    assert set(found.changes) == {"CUASMRL_STORE", "CUASMRL_MODE"}
    assert len(found.problems) == 3


def test_nvcc_may_be_a_script_that_starts_another(tmp_path: Path, toolkit: Toolkit) -> None:
    real, place = toolkit("cuda"), tmp_path / "local"
    place.mkdir()
    (place / "nvcc").write_text(f'#!/bin/sh\nexec {real}/bin/nvcc "$@"\n')
    (place / "nvcc").chmod(0o755)
    assert toolkit_on_path({"PATH": f"{place}:/usr/bin:/bin"}) == real


def test_caches_are_told_apart_by_the_store(tmp_path: Path, store: Store, cubin: bytes) -> None:
    names = {cache.variable for cache in CACHES}
    assert not names & set(prepared(tmp_path, store).changes)
    put(store, cubin)
    changes = prepared(tmp_path, store, TORCH_COMPILE_CACHE_KEY_TAG="mine", TILELANG_CACHE_DIR="/x").changes
    tag = f"cuasmrl-{store.epoch}"
    assert {name: changes[name] for name in names & set(changes)} == {
        "TORCH_COMPILE_CACHE_KEY_TAG": f"mine+{tag}",
        "TORCH_EXTENSIONS_DIR": f"{tmp_path}/.cache/torch_extensions/{tag}",
        "TILELANG_CACHE_DIR": f"/x/{tag}",
        "CUPY_CACHE_DIR": f"{tmp_path}/.cupy/kernel_cache/{tag}",
        "CCACHE_NAMESPACE": tag,
    }
    assert prepared(tmp_path, store, JAX_COMPILATION_CACHE_DIR="/jax").changes[
        "JAX_COMPILATION_CACHE_DIR"
    ] == (f"/jax/{tag}")
    # A run inside a run after the store has changed.
    again = {name: changes[name] for name in names & set(changes)}
    (key,) = store.keys()
    store.remove(key)
    assert CACHES[0].plain(again) == "mine"


def test_a_store_that_cannot_be_read_leaves_the_virtual_gpu(
    tmp_path: Path, store: Store, cubin: bytes
) -> None:
    put(store, cubin)
    Path(store.root, "schema").write_text("99\n")
    found = prepare(tmp_path / "shims", store, Mode.RECORD, "a100", {"PATH": os.defpath})
    assert set(found.changes) == {"CUASMRL_STORE", "CUASMRL_VIRTUAL", "PYTHONPATH"}
    assert "schema 99" in found.problems[0]


def test_other_modes_tell_triton_too(tmp_path: Path, store: Store) -> None:
    found = prepare(tmp_path / "shims", store, Mode.RECORD, "a100", {"PATH": os.defpath})
    assert found.changes["CUASMRL_MODE"] == "record"
    assert found.changes["CUASMRL_TRITON"] == "record"
    assert found.changes["CUASMRL_VIRTUAL"] == "a100"
    assert "PYTHONPATH" in found.changes
