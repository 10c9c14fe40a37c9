"""`cuasmrl doctor`: what it finds on machines that are well, and on those that are not."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from cuasmrl.cli import app
from cuasmrl.deploy.doctor import (
    Finding,
    Level,
    compilers,
    examine,
    hooks,
    installed,
    results,
    staleness,
)
from cuasmrl.deploy.doctor.findings import Surroundings
from cuasmrl.deploy.shim.environment import prepare
from cuasmrl.deploy.store import Store
from cuasmrl.deploy.triton.modes import Mode
from tests.conftest import AssemblePtx
from tests.deploy.shim.conftest import PTX, put


@pytest.fixture(scope="session")
def cubin(assemble_ptx: AssemblePtx) -> bytes:
    return assemble_ptx(PTX.read_text(), "sm_80")


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """That of a user with nothing set, at home in a folder of the test."""
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    return {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def running(environment: dict[str, str], store: Store, tmp_path: Path) -> dict[str, str]:
    """The environment inside `cuasmrl run`."""
    return {**environment, **prepare(tmp_path / "shims", store, Mode.DEPLOY, None, environment).changes}


def actions(findings: list[Finding]) -> list[Finding]:
    for finding in findings:
        assert finding.text
        assert finding.level is not Level.ACTION or finding.advice, "says what is wrong but not what to do"
    return [finding for finding in findings if finding.level is Level.ACTION]


def test_a_healthy_machine(environment: dict[str, str], store: Store, tmp_path: Path, cubin: bytes) -> None:
    found = list(examine(store, environment))
    assert actions(found) == []
    assert [f.text for f in found if f.topic == "hooks"] == ["not in use here; they can be made and answer"]
    put(store, cubin)
    inside = list(examine(store, running(environment, store, tmp_path)))
    assert actions(inside) == []
    said = [f.subject for f in inside if f.topic == "hooks" and "asks the store" in f.text]
    assert said[:2] == ["TRITON_PTXAS_PATH", "TRITON_PTXAS_BLACKWELL_PATH"]


def test_a_variable_that_triton_ignores(environment: dict[str, str]) -> None:
    named = Surroundings({**environment, "TRITON_PTXAS_PATH": "/nowhere/ptxas"})
    (found,) = actions(list(compilers.examine(named)))
    assert "Triton silently takes its own" in found.text
    assert found.advice.startswith("unset TRITON_PTXAS_PATH")


def test_one_variable_without_the_other(environment: dict[str, str], store: Store, tmp_path: Path) -> None:
    half = running(environment, store, tmp_path)
    del half["TRITON_PTXAS_BLACKWELL_PATH"]
    (found,) = actions(list(hooks.examine(Surroundings(half), store)))
    assert found.subject == "TRITON_PTXAS_BLACKWELL_PATH"
    assert "compiled without the store" in found.text


def test_a_shim_that_does_not_reach_the_store(
    environment: dict[str, str], store: Store, tmp_path: Path, cubin: bytes
) -> None:
    inside = running(environment, store, tmp_path)
    put(store, cubin)
    shim = Path(inside["TRITON_PTXAS_PATH"])
    shim.write_text(shim.read_text().replace("\nprogram=", "\nprogram=/nowhere"))
    (found,) = actions(list(hooks.examine(Surroundings(inside), store)))
    assert "does not ask this store" in found.text


def test_a_shim_that_does_not_run(environment: dict[str, str], store: Store, tmp_path: Path) -> None:
    inside = running(environment, store, tmp_path)
    Path(inside["TRITON_PTXAS_PATH"]).chmod(0o644)
    (found,) = actions(list(hooks.examine(Surroundings(inside), store)))
    assert "does not answer" in found.text


def test_a_path_that_hides_our_nvcc(environment: dict[str, str], store: Store, tmp_path: Path) -> None:
    inside = {**running(environment, store, tmp_path), "PATH": environment["PATH"]}
    (found,) = [f for f in hooks.examine(Surroundings(inside), store) if f.level is Level.NOTE]
    assert found.subject == "nvcc on PATH"


def test_shims_that_cannot_be_made(environment: dict[str, str], store: Store, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    environment["XDG_CACHE_HOME"] = str(tmp_path / "file")
    found = actions(list(hooks.examine(Surroundings(environment), store)))
    assert "cannot make the shims" in found[0].text


def test_a_bootstrap_that_python_does_not_see(environment: dict[str, str], store: Store) -> None:
    environment["CUASMRL_TRITON"] = "deploy"
    (found,) = actions(list(hooks.examine(Surroundings(environment), store)))
    assert "PYTHONPATH" in found.text


@pytest.mark.parametrize("version", ["3.5.1", "3.10.0", "4.0", "dev"])
def test_a_triton_that_is_not_known(monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    monkeypatch.setattr(installed, "version_of", lambda package: version if package == "triton" else None)
    (found,) = actions(list(installed.examine()))
    assert version in found.text
    assert "3.6 to 3.9" in found.text


def test_without_triton(monkeypatch: pytest.MonkeyPatch, environment: dict[str, str]) -> None:
    monkeypatch.setattr(installed, "version_of", lambda package: None)
    assert actions(list(installed.examine())) == []


def test_frameworks_that_compile_in_their_process(monkeypatch: pytest.MonkeyPatch) -> None:
    versions = {"triton": "3.9.0", "cupy-cuda13x": "14.2", "numba-cuda": "0.30"}
    monkeypatch.setattr(installed, "version_of", versions.get)
    found = [f for f in installed.examine() if f.level is Level.NOTE]
    assert [f.subject for f in found] == ["cupy-cuda13x", "numba-cuda"]
    assert "without ptxas" in found[0].text


def test_jax_and_tilelang(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], store: Store, tmp_path: Path
) -> None:
    monkeypatch.setattr(compilers, "version_of", lambda package: "1.0")
    inside = list(compilers.examine(Surroundings(running(environment, store, tmp_path))))
    texts = {f.subject: f.text for f in inside}
    if shutil.which("nvcc"):
        assert "through the shim" in texts["JAX"]
        assert "through the shim" in texts["tilelang"]
    monkeypatch.setattr(compilers, "toolkit_in_packages", lambda: None)
    bare = list(compilers.examine(Surroundings({**environment, "PATH": str(tmp_path)})))
    assert {"JAX", "tilelang"} <= {f.subject for f in actions(bare)}


def test_a_toolkit_without_a_ptxas(environment: dict[str, str], tmp_path: Path) -> None:
    environment["CUDA_HOME"] = str(tmp_path)
    (found,) = actions(list(compilers.examine(Surroundings(environment))))
    assert found.subject == "CUDA_HOME"


def test_a_store_of_the_future(store: Store, cubin: bytes) -> None:
    put(store, cubin)
    Path(store.root, "schema").write_text("99\n")
    (found,) = actions(list(results.examine(Surroundings({}), store)))
    assert "schema 99" in found.text


def test_a_damaged_entry(store: Store, cubin: bytes) -> None:
    put(store, cubin)
    (entry,) = Path(store.root).glob("objects/*/*")
    entry.write_bytes(entry.read_bytes()[:-3])
    found = actions(list(results.examine(Surroundings({}), store)))
    assert "cannot be used" in found[0].text
    assert "set aside" in found[1].text


def test_results_that_no_gpu_has_measured(store: Store, cubin: bytes) -> None:
    put(store, cubin)
    subjects = [f.subject for f in results.examine(Surroundings({}), store)]
    assert "modelled" not in subjects
    put(store, cubin, modelled=True)
    for environment, level, words in (
        ({}, Level.NOTE, "1 of them: no GPU has measured them, so compilers do not take them"),
        (
            {"CUASMRL_MODELLED": "1"},
            Level.OK,
            "1 of them: no GPU has measured them, and the environment allows",
        ),
    ):
        (found,) = [f for f in results.examine(Surroundings(environment), store) if f.subject == "modelled"]
        assert found.level is level
        assert words in found.text


def test_caches_are_compared_with_what_may_be_used(
    environment: dict[str, str], store: Store, tmp_path: Path, cubin: bytes, filled: Callable[[str], Path]
) -> None:
    put(store, cubin, modelled=True)
    kernels = filled("triton")
    (kernels / "sub" / "a.cubin").write_bytes(cubin)
    environment["TRITON_CACHE_DIR"] = str(kernels)
    plain = next(staleness.examine(Surroundings(environment), store))
    assert plain.text.endswith("nothing that the store has better")
    environment["CUASMRL_MODELLED"] = "1"
    assert "1 cubins as compiled" in next(staleness.examine(Surroundings(environment), store)).text


def test_kernels_that_wait(store: Store, cubin: bytes) -> None:
    store.record(cubin)
    assert any("cuasmrl optimize --recorded" in f.advice for f in results.examine(Surroundings({}), store))


@pytest.mark.parametrize(("forbidden", "level"), [(os.W_OK, Level.NOTE), (os.R_OK | os.X_OK, Level.ACTION)])
def test_a_store_without_permission(
    store: Store, cubin: bytes, monkeypatch: pytest.MonkeyPatch, forbidden: int, level: Level
) -> None:
    put(store, cubin)
    monkeypatch.setattr(os, "access", lambda path, wanted: not wanted & forbidden)
    assert next(f for f in results.examine(Surroundings({}), store) if f.subject == "place").level is level


def test_a_full_disk(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(1, 1, 0))
    assert "0 MB left" in actions(list(results.examine(Surroundings({}), store)))[0].text


@pytest.fixture
def filled(tmp_path: Path) -> Callable[[str], Path]:
    """filled(place): a cache with something in it."""

    def fill(place: str) -> Path:
        folder = tmp_path / place
        (folder / "sub").mkdir(parents=True)
        return folder

    return fill


def test_cubins_that_the_store_has_better(
    environment: dict[str, str], store: Store, tmp_path: Path, cubin: bytes, filled: Callable[[str], Path]
) -> None:
    better = put(store, cubin)
    graphs = filled("inductor")
    for name, content in (("a", cubin), ("b", better), ("c", b"broken")):
        (graphs / "sub" / f"{name}.cubin").write_bytes(content)
    environment["TORCHINDUCTOR_CACHE_DIR"] = str(graphs)
    (note,) = [f for f in staleness.examine(Surroundings(environment), store) if f.subject == "torch.compile"]
    assert "1 cubins as compiled" in note.text
    assert note.level is Level.NOTE
    inside = running(environment, store, tmp_path)
    assert actions(list(staleness.examine(Surroundings(inside), store))) == []
    del inside["TORCH_COMPILE_CACHE_KEY_TAG"]
    (found,) = actions(list(staleness.examine(Surroundings(inside), store)))
    assert f"TORCH_COMPILE_CACHE_KEY_TAG={store.epoch}" in found.advice


def test_caches_that_do_not_see_the_store(
    environment: dict[str, str], store: Store, tmp_path: Path, cubin: bytes, filled: Callable[[str], Path]
) -> None:
    put(store, cubin)
    kernels = filled(".tilelang/cache")
    (kernels / "cuasmrl-0123").mkdir()
    found = list(staleness.examine(Surroundings(environment), store))
    assert [f.level for f in found if f.subject == "tilelang"] == [Level.OK, Level.NOTE]
    assert f"rm -r {kernels}/cuasmrl-0123" in found[-1].advice
    inside = running(environment, store, tmp_path)
    assert actions(list(staleness.examine(Surroundings(inside), store))) == []
    del inside["TILELANG_CACHE_DIR"]
    (problem,) = actions(list(staleness.examine(Surroundings(inside), store)))
    assert problem.subject == "tilelang"


def test_the_command(
    environment: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name in [*os.environ]:
        if name.startswith(("CUDA", "CUASMRL_", "TRITON_", "XLA_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    command = ["doctor", "--store", str(tmp_path / "store")]
    assert not app(command, standalone_mode=False)
    assert capsys.readouterr().out.endswith("nothing needs action\n")
    monkeypatch.setenv("TRITON_PTXAS_PATH", "/nowhere")
    assert app(command, standalone_mode=False) == 1
    assert "! Triton below" in capsys.readouterr().out
    assert app([*command, "--json"], standalone_mode=False) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["healthy"] is False
    assert any(f["level"] == "action" and f["advice"] for f in found["findings"])
