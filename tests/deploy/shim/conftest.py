"""A kernel, a store that knows a better schedule for it, and shims in folders of the test."""

import os
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import pytest

from cuasmrl.binary.cubin import Cubin
from cuasmrl.binary.sass import disassemble
from cuasmrl.deploy.shim.folders import script
from cuasmrl.deploy.store import Entry, Store
from cuasmrl.deploy.store.proof import prove
from cuasmrl.schedule import Board
from tests.conftest import AssemblePtx

PTX = Path(__file__).parent / "mix.ptx"
MEASURED = {
    "device": "cuda:0", "unit": "microseconds", "original": 2, "optimised": 1, "gain": 1, "interval": [0, 1],
    "gpu": {"name": "NVIDIA A100-SXM4-80GB", "compute_capability": "8.0"},
}  # fmt: skip
MODELLED = {
    "device": "virtual:a100", "unit": "modelled cycles", "original": 2, "optimised": 1, "gain": 1,
    "interval": [0, 1],
}  # fmt: skip


def rescheduled(cubin: bytes) -> bytes:
    """The first legal swap of the first kernel that has one."""
    read = Cubin.parse(cubin, "a cubin of the tests")
    for listing in disassemble(read).values():
        board = Board(listing)
        if swaps := board.legal_swaps():
            board.swap(swaps[0])
            return board.schedule().apply(read).data
    raise AssertionError("nothing can be moved")


@lru_cache
def proved(cubin: bytes) -> Entry:
    return prove(Entry.of(cubin, rescheduled(cubin), MEASURED))


def put(store: Store, cubin: bytes, modelled: bool = False) -> bytes:
    """Have the store know a better cubin, which is returned."""
    entry = replace(proved(cubin), measurement=MODELLED if modelled else MEASURED)
    store.keep(entry)
    return entry.optimised


@pytest.fixture(scope="session")
def cubin(assemble_ptx: AssemblePtx) -> bytes:
    return assemble_ptx(PTX.read_text(), "sm_80")


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """The store of the test, which the environment names; in a place of its own, like all caches."""
    place = tmp_path / "store"
    for name in list(os.environ):
        if name.startswith(("CUASMRL_", "TRITON_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("CUASMRL_STORE", str(place))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "triton"))
    return Store(place)


@pytest.fixture
def make_shim(tmp_path: Path) -> Callable[..., Path]:
    """make_shim(real): a shim for that ptxas."""

    def make(real: str | Path, name: str = "ptxas", beside: str = "", kept: str = "") -> Path:
        path = tmp_path / "shims" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(script(path, str(real), beside, kept))
        path.chmod(0o755)
        return path

    return make


@pytest.fixture
def fake_tool(tmp_path: Path) -> Callable[[str], Path]:
    """fake_tool(text): a shell script in the place of a ptxas."""

    def make(text: str) -> Path:
        path = tmp_path / "fake-ptxas"
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
        return path

    return make
