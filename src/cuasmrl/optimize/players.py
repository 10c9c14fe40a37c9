"""What a run has to know of an agent, whichever it is."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from cuasmrl.agents import AGENTS, Agent
from cuasmrl.errors import CuasmrlError

_LAG = "lag"
"""The field of agents that can propose before they have been answered."""
_CURVES = "log_dir"
"""The field of agents that draw curves."""
_NOTES = "notes"
"""The field of agents that write down how it went."""


def agent_of(name: str, batch: int | None) -> Agent:
    """An agent by name; with a batch it proposes so many candidates at a time."""
    agent: Any = AGENTS.named(name)
    if batch is None:
        return agent  # type: ignore[no-any-return]
    if batch < 1:
        raise CuasmrlError(f"a batch of {batch} proposals is none; give at least 1")
    if all(each.name != _LAG for each in fields(agent)):
        raise CuasmrlError(
            f"{name} has batches of its own; leave out --batch, or let twin, greedy or evolve play"
        )
    found: Agent = replace(agent, **{_LAG: batch - 1})
    return found


def batch_of(settings: Mapping[str, Any]) -> int | None:
    """What `agent_of` was given, from the settings in a run."""
    return settings[_LAG] + 1 if _LAG in settings else None


def settings_of(agent: Any) -> dict[str, Any]:
    """What decides how an agent plays: the fields that it compares by, files by their content."""
    decisive = {each.name: getattr(agent, each.name) for each in fields(agent) if each.compare}
    return {name: _content(value) if isinstance(value, Path) else value for name, value in decisive.items()}


def with_places(agent: Any, run: Path) -> Agent:
    """The same agent with places in its run for curves and notes, if it has any.

    A continued run is played from its start, so curves from before would be there twice.
    """
    curves = run / "tensorboard"
    shutil.rmtree(curves, ignore_errors=True)
    places = {_CURVES: curves, _NOTES: run}
    known = {each.name for each in fields(agent)}
    found: Agent = replace(agent, **{name: place for name, place in places.items() if name in known})
    return found


def _content(path: Path) -> str:
    try:
        return f"{path.name} of sha256 {hashlib.sha256(path.read_bytes()).hexdigest()}"
    except OSError as error:
        raise CuasmrlError(f"cannot read {path}, which the agent needs: {error.strerror}") from error
