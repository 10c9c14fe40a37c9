import multiprocessing
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

from cuasmrl.errors import CuasmrlError
from cuasmrl.workloads import cache, cuda_compiler, get, triton_compiler


def build(name: str = "vector_add", arch: int = 80) -> bytes:
    workload = get(name)
    return workload.build(workload.configs[0], arch, workload.shapes[0]).cubin


def files(folder: Path, suffix: str) -> list[Path]:
    return sorted(folder.rglob(f"*{suffix}"))


@pytest.fixture
def no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("compiled although cached")

    monkeypatch.setattr(triton_compiler, "compile_cubin", refuse)
    monkeypatch.setattr(cuda_compiler, "compile_cubin", refuse)


@pytest.fixture
def clear_nvcc() -> Iterator[None]:
    cuda_compiler.find_nvcc.cache_clear()
    cuda_compiler.identity.cache_clear()
    yield
    cuda_compiler.find_nvcc.cache_clear()
    cuda_compiler.identity.cache_clear()


def test_second_build_does_not_compile(fresh_cache: Path, request: pytest.FixtureRequest) -> None:
    first = build()
    request.getfixturevalue("no_compiler")
    assert build() == first
    assert len(files(fresh_cache, ".cubin")) == len(files(fresh_cache, ".json")) == 1


def test_stored_kernel_comes_back_whole(fresh_cache: Path) -> None:
    workload = get("rmsnorm")
    config = workload.config("n32_w4_fixed")
    first = workload.build(config, 80, workload.shapes[0])
    assert workload.build(config, 80, workload.shapes[0]) == first


def test_hit_needs_no_triton(fresh_cache: Path, child_environment: dict[str, str]) -> None:
    build()
    code = (
        "import sys; from cuasmrl.workloads import get; w = get('vector_add'); "
        "w.build(w.configs[0], 80, w.shapes[0]); print('triton' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=child_environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize(
    ("suffix", "damage"),
    [(".cubin", b""), (".cubin", b"\x7fELF garbage"), (".json", b"{"), (".json", b"[]"), (".json", b"{}")],
)
def test_damaged_entry_is_rebuilt(fresh_cache: Path, suffix: str, damage: bytes) -> None:
    first = build()
    (entry,) = files(fresh_cache, suffix)
    entry.write_bytes(damage)
    assert build() == first
    assert entry.read_bytes() != damage


def test_missing_cubin_is_rebuilt(fresh_cache: Path) -> None:
    first = build()
    files(fresh_cache, ".cubin")[0].unlink()
    assert build() == first


def test_concurrent_builders_agree(fresh_cache: Path) -> None:
    with ProcessPoolExecutor(3, mp_context=multiprocessing.get_context("spawn")) as pool:
        results = set(pool.map(build, ["vector_add"] * 3))
    assert len(results) == 1
    assert len(files(fresh_cache, ".cubin")) == 1
    assert files(fresh_cache, ".tmp") == []


def test_changed_source_is_another_key(fresh_cache: Path, tmp_path: Path) -> None:
    from dataclasses import replace

    workload = get("transpose")
    edited = tmp_path / "transpose.cu"
    edited.write_text(workload.source.read_text() + "\n// edited\n")
    workload.build(workload.configs[0], 80)
    replace(workload, source=edited).build(workload.configs[0], 80)
    assert len(files(fresh_cache, ".cubin")) == 2


def test_other_compiler_is_another_key(fresh_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build()
    before = triton_compiler.identity()
    monkeypatch.setenv("PTXAS_OPTIONS", "-O2")
    assert triton_compiler.identity() != before
    assert cache.load("0" * 64) is None


def test_cache_that_cannot_be_written_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    occupied = tmp_path / "file"
    occupied.write_text("")
    monkeypatch.setenv("CUASMRL_CACHE_DIR", str(occupied))
    with pytest.raises(
        CuasmrlError, match=r"cannot be written .*point CUASMRL_CACHE_DIR to a directory that can"
    ):
        build()


def test_place_follows_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CUASMRL_CACHE_DIR", str(tmp_path / "a"))
    assert cache.cache_directory() == tmp_path / "a"
    monkeypatch.delenv("CUASMRL_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "b"))
    assert cache.cache_directory() == tmp_path / "b" / "cuasmrl"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache.cache_directory() == Path.home() / ".cache" / "cuasmrl"


def test_missing_triton_is_a_sentence(fresh_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib.metadata

    def absent(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", absent)
    with pytest.raises(CuasmrlError, match=r"Triton is missing; install cuasmrl\[triton\]"):
        build()


@pytest.mark.usefixtures("clear_nvcc")
def test_missing_nvcc_is_a_sentence(fresh_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(fresh_cache))
    monkeypatch.setattr(importlib_util(), "find_spec", lambda name: None)
    with pytest.raises(CuasmrlError, match=r"nvcc is missing; install cuasmrl\[cuda\]"):
        build("transpose")


def importlib_util() -> object:
    import importlib.util

    return importlib.util


def test_missing_host_compiler_is_a_sentence(fresh_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cuda_compiler.identity()
    monkeypatch.setenv("PATH", str(fresh_cache))
    with pytest.raises(CuasmrlError, match=r"g\+\+ is not on PATH; install g\+\+"):
        build("transpose")
