"""A cache folder of its own for every test that builds, shared by the tests of one run."""

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def session_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of all workers, whose own folders stand beside each other."""
    folder = tmp_path_factory.getbasetemp()
    return (folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder) / "kernels"


@pytest.fixture(autouse=True)
def _cache(session_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUASMRL_CACHE_DIR", str(session_cache))


@pytest.fixture
def fresh_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache for this test alone."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("CUASMRL_CACHE_DIR", str(folder))
    return folder


@pytest.fixture
def child_environment(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Environment for a fresh Python process that imports this source tree."""
    source = str(Path(__file__).parents[2] / "src")
    monkeypatch.setenv("PYTHONPATH", source)
    return dict(os.environ)
