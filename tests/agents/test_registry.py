"""Agents by name."""

import subprocess
import sys

import pytest

from cuasmrl.agents import AGENTS
from cuasmrl.errors import CuasmrlError


def test_every_agent_is_found_under_its_own_name() -> None:
    assert "random" in AGENTS
    for name in AGENTS:
        assert AGENTS[name].name == name
        assert AGENTS.named(name) == AGENTS.named(name)


def test_an_unknown_agent_is_refused_with_a_hint() -> None:
    with pytest.raises(CuasmrlError, match="there is no agent 'randon'; choose random"):
        AGENTS.named("randon")


def test_what_an_agent_needs_is_not_loaded_for_others() -> None:
    code = (
        "import sys; from cuasmrl.agents import AGENTS; AGENTS.named('random'); print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(AGENTS.modules, "far", "no_such_package.player:Player")
    with pytest.raises(CuasmrlError, match="the agent far needs no_such_package; install it with pip"):
        AGENTS.named("far")
