"""A run as `cuasmrl optimize` leaves it, made once, and copies of it that something has happened to."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from cuasmrl.agents import AGENTS
from cuasmrl.explain.moves import explain_run
from cuasmrl.optimize import Optimized, optimize, optimizer
from tests.optimize.playing import Device, asking

Changed: TypeAlias = Callable[..., Path]


@pytest.fixture(scope="session")
def played(tmp_path_factory: pytest.TempPathFactory) -> Optimized:
    """A small product, a bit faster, confirmed and explained."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(AGENTS.modules, "climber", "tests.climbing:Climber")
        patch.setattr(optimizer, "open_timer", Device().open)
        found = optimize(asking(), tmp_path_factory.mktemp("report") / "run")
    assert found.verdict.accepted, found.verdict.lines()
    return found


@pytest.fixture(scope="session")
def run(played: Optimized) -> Path:
    """Its directory; the moves that mattered are known."""
    explain_run(played.run)
    return played.run


@pytest.fixture
def changed(run: Path, tmp_path: Path) -> Changed:
    """changed(without=[...], **files): a copy without some files, and others with entries changed."""

    def make(name: str = "copy", without: tuple[str, ...] = (), **files: dict[str, Any]) -> Path:
        copy = tmp_path / name
        shutil.copytree(run, copy)
        for gone in without:
            (copy / gone).unlink()
        for file, entries in files.items():
            where = copy / f"{file}.json"
            where.write_text(json.dumps({**json.loads(where.read_text()), **entries}))
        return copy

    return make
