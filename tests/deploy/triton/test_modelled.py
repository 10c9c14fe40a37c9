"""Modelled results on a GPU: left out or used, as the user says, and said once."""

import os
from pathlib import Path

import numpy as np
import pytest

import cuasmrl
from cuasmrl.deploy.store import Store
from cuasmrl.deploy.triton import lookup
from tests.deploy.triton import kernels
from tests.deploy.triton.kernels import (
    MEASURED,
    MODELLED,
    code,
    compiled,
    put_result,
    scale,
    softmax,
    softmax_of,
)
from tests.deploy.triton.test_installation import again, warning

A100 = "NVIDIA A100-SXM4-80GB (8.0)"
ROWS = np.ones((2, kernels.COLUMNS), np.float32)
LEFT_OUT = (
    "is modelled, and no GPU has measured it; cuasmrl.install(modelled=True) or CUASMRL_MODELLED=1 "
    "allows such results (said once)"
)
USED = "which is modelled, and no GPU has measured it; so may be others (said once)"


@pytest.fixture
def triton_cache(own_cache: Path) -> Path:
    return own_cache


@pytest.fixture(autouse=True)
def gpu(clean: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The emulator stands for an A100, and nobody knows."""
    monkeypatch.setattr(lookup, "on_virtual_gpu", lambda: False)
    monkeypatch.setattr(lookup, "visible_gpus", lambda: (A100,))


def both(store: Store) -> tuple[bytes, bytes]:
    """Cubins of two kernels that have modelled results."""
    first, second = compiled().asm["cubin"], compiled(scale).asm["cubin"]
    for cubin in (first, second):
        put_result(store, cubin)
    return first, second


def test_they_are_left_out_and_that_is_said_once(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = both(store)
    cuasmrl.install(store=store)
    assert (code(again()), code(again(scale))) == (code(first), code(second))
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("cuasmrl: softmax stays as compiled: entry ")
    assert line.endswith(LEFT_OUT)


def test_they_are_used_and_that_is_said_once(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = both(store)
    cuasmrl.install(store=store, modelled=True)
    assert code(again()) != code(first)
    assert code(again(scale)) != code(second)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("cuasmrl: softmax is entry ")
    assert line.endswith(USED)


def test_caches_tell_the_two_apart(store: Store) -> None:
    first, _ = both(store)
    keys = set()
    for modelled in (False, True, False):
        cuasmrl.install(store=store, modelled=modelled)
        kernel = again()
        assert (code(kernel) == code(first)) == (not modelled)
        keys.add(kernel.hash)
        cuasmrl.uninstall()
    assert len(keys) == 2


def test_the_environment_may_allow_them(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    first, _ = both(store)
    monkeypatch.setenv("CUASMRL_MODELLED", "1")
    cuasmrl.install(store=store)
    assert code(again()) != code(first)
    cuasmrl.uninstall()
    cuasmrl.install(store=store, modelled=False)
    assert code(again()) == code(first)
    assert os.environ["CUASMRL_MODELLED"] == "0", "workers are told as well"
    cuasmrl.uninstall()
    assert os.environ["CUASMRL_MODELLED"] == "1"


def test_workers_are_told(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUASMRL_MODELLED", raising=False)
    both(store)
    cuasmrl.install(store=store, modelled=True)
    assert os.environ["CUASMRL_MODELLED"] == "1"
    assert os.environ["TORCH_COMPILE_CACHE_KEY_TAG"] == f"cuasmrl-{store.epoch}-modelled"
    cuasmrl.uninstall()
    assert "CUASMRL_MODELLED" not in os.environ


def test_the_decorator(store: Store) -> None:
    first, _ = both(store)
    cuasmrl.jit(store=store, modelled=True)(softmax)
    assert code(again()) != code(first)
    # A second one that says nothing of it agrees, one that says no does not.
    cuasmrl.jit(store=store)(scale)
    with warning("and modelled results is in force already", "the first one stays"):
        cuasmrl.jit(store=store, modelled=False)(scale)


def test_a_result_of_this_kind_of_gpu_needs_no_word(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    plain = compiled().asm["cubin"]
    entry = put_result(store, plain, MEASURED)
    cuasmrl.install(store=store)
    assert code(again()) == code(entry.optimised)
    assert not capsys.readouterr().err


def test_a_result_of_another_gpu_is_a_doubt(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = compiled().asm["cubin"]
    put_result(store, plain, MEASURED)
    monkeypatch.setattr(lookup, "visible_gpus", lambda: ("NVIDIA A30 (8.0)",))
    cuasmrl.install(store=store, modelled=True)
    with warning("softmax stays as compiled", f"was measured on {A100}, and here is NVIDIA A30 (8.0)"):
        assert code(again()) == code(plain)


@pytest.mark.parametrize("modelled", [False, True])
def test_what_is_only_modelled_is_recorded_to_be_measured(store: Store, modelled: bool) -> None:
    put_result(store, compiled().asm["cubin"])
    kernels.forget()
    cuasmrl.install("record", store=store, modelled=modelled)
    softmax_of(ROWS)
    assert len(store.recorded()) == (0 if modelled else 1)


def test_what_is_measured_is_not_recorded(store: Store) -> None:
    put_result(store, compiled().asm["cubin"], MEASURED)
    kernels.forget()
    cuasmrl.install("record", store=store)
    softmax_of(ROWS)
    assert not store.recorded()


def test_on_the_virtual_gpu_everything_is_used_without_a_word(
    store: Store, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(lookup, "on_virtual_gpu", lambda: True)
    for measurement in (MODELLED, MEASURED):
        entry = put_result(store, compiled().asm["cubin"], measurement)
        cuasmrl.install(store=store)
        assert code(again()) == code(entry.optimised)
        cuasmrl.uninstall()
        kernels.forget()
    assert not capsys.readouterr().err
