"""Compilation is said, once."""

import logging

import pytest
from numba import njit
from numba.core.event import install_listener

from cuasmrl.compiled import FirstCompilation


def test_a_compilation_is_said() -> None:
    listener = FirstCompilation()
    with install_listener("numba:compile", listener):
        assert njit(lambda x: x + 1)(1) == 2
    assert listener.was_said


def test_it_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "cuasmrl.compiled")
    listener = FirstCompilation()
    for _ in range(2):
        listener.on_start(None)
    assert [record.getMessage().split()[0] for record in caplog.records] == ["compiling"]
