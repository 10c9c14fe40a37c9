"""What a run has to know of an agent, whichever it is."""

from __future__ import annotations

import hashlib
import shutil
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from cuasmrl.agents import Agent
from cuasmrl.errors import CuasmrlError

_CURVES = "log_dir"
"""The field of agents that draw curves."""


def settings_of(agent: Any) -> dict[str, Any]:
    """What decides how an agent plays: the fields that it compares by, files by their content."""
    decisive = {each.name: getattr(agent, each.name) for each in fields(agent) if each.compare}
    return {name: _content(value) if isinstance(value, Path) else value for name, value in decisive.items()}


def with_curves(agent: Any, place: Path) -> Agent:
    """The same agent with a place for its curves, if it draws any.

    A continued run is played from its start, so curves from before would be there twice.
    """
    shutil.rmtree(place, ignore_errors=True)
    draws = any(each.name == _CURVES for each in fields(agent))
    found: Agent = replace(agent, **{_CURVES: place}) if draws else agent
    return found


def _content(path: Path) -> str:
    try:
        return f"{path.name} of sha256 {hashlib.sha256(path.read_bytes()).hexdigest()}"
    except OSError as error:
        raise CuasmrlError(f"cannot read {path}, which the agent needs: {error.strerror}") from error
