"""Mode optimize: play after the first launch, and the result from then on."""

from typing import Any

import numpy as np
import pytest

import cuasmrl
from cuasmrl.agents import AGENTS
from cuasmrl.deploy.store import Store
from cuasmrl.gpu.devices import Objective, VirtualTimer
from cuasmrl.gpu.traced import TracedKernel
from cuasmrl.optimize import optimizer
from tests.deploy.triton import kernels
from tests.deploy.triton.kernels import compiled, put_result, softmax_of

ROWS = np.random.default_rng(0).standard_normal((200, kernels.COLUMNS)).astype(np.float32)


@pytest.fixture(autouse=True)
def quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(AGENTS.modules, "climber", "tests.climbing:Climber")
    monkeypatch.setitem(AGENTS.modules, "idler", "tests.climbing:Idler")

    def opened(
        name: str,
        kernel: TracedKernel,
        launch: object,
        objective: Objective = Objective.NOMINAL,
        game: int = 0,
    ) -> VirtualTimer:
        return VirtualTimer(kernel, members=3)

    monkeypatch.setattr(optimizer, "open_timer", opened)


def play(store: Store, **settings: Any) -> Any:
    cuasmrl.install("optimize", store=store, **settings)
    before = softmax_of(ROWS)
    after = softmax_of(ROWS)
    assert (before == after).all()
    return compiled()


@pytest.mark.slow
def test_the_result_is_used_from_the_next_launch_on(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    plain = compiled().asm["cubin"]
    kernels.forget()
    kernel = play(store, agent="climber", budget=2000)
    (entry,) = store.entries()
    assert entry.original == plain
    assert kernel.asm["cubin"] == entry.optimised == kernel.kernel
    assert entry.measurement["optimised"] < entry.measurement["original"]
    assert entry.provenance["run"]["agent"] == "climber"
    assert entry.provenance["origin"]["constants"] == {"BLOCK": "512"}
    assert not store.recorded()
    told = capsys.readouterr().err.splitlines()
    assert told[0] == "cuasmrl: playing on softmax"
    assert told[1].startswith("cuasmrl: softmax: confirmed gain in modelled cycles: ")
    assert len(told) == 2
    # Another process finds it in the store, and Triton's cache is as it was.
    kernels.forget()
    assert compiled().kernel == plain, "nothing is loaded yet"
    softmax_of(ROWS[:2].copy())
    assert compiled().kernel == entry.optimised
    assert not store.recorded()
    cuasmrl.uninstall()
    kernels.forget()
    assert compiled().asm["cubin"] == plain


def test_no_gain_is_said_and_not_tried_again(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    kernel = play(store, agent="idler", budget=5)
    softmax_of(ROWS[:7].copy())
    assert not list(store.entries())
    assert len(store.recorded()) == 1
    assert kernel.kernel == store.recorded()[0].cubin.read_bytes()
    told = capsys.readouterr().err
    assert told.count("playing on") == 1
    assert "no gain: the original is kept" in told


def test_what_the_store_has_is_used_at_once(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    entry = put_result(store, compiled().asm["cubin"])
    kernels.forget()
    kernel = play(store, agent="idler", budget=5)
    assert kernel.kernel == entry.optimised
    assert not capsys.readouterr().err
