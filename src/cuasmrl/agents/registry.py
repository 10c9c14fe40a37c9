"""Agents by name, imported when asked for: some need packages that others do without."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from importlib import import_module

from cuasmrl.agents.agent import Agent
from cuasmrl.errors import CuasmrlError


class Agents(Mapping[str, type[Agent]]):
    """The classes; their places are written `module:Class`."""

    def __init__(self, places: dict[str, str]) -> None:
        self.places = places

    def __getitem__(self, name: str) -> type[Agent]:
        module, _, kind = self.places[name].partition(":")
        try:
            found: type[Agent] = getattr(import_module(module), kind)
        except ModuleNotFoundError as error:
            raise CuasmrlError(f"the agent {name} needs {error.name}; install it with pip") from error
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self.places)

    def __len__(self) -> int:
        return len(self.places)

    def named(self, name: str) -> Agent:
        """The agent of that name with its default settings."""
        if name not in self.places:
            close = difflib.get_close_matches(name, self.places, n=3, cutoff=0.4)
            raise CuasmrlError(f"there is no agent {name!r}; choose {' or '.join(close or self.places)}")
        return self[name]()


AGENTS = Agents({
    "random": "cuasmrl.agents.random_play:RandomPlay",
    "greedy": "cuasmrl.agents.greedy:Greedy",
    "anneal": "cuasmrl.agents.anneal:Anneal",
    "evolve": "cuasmrl.agents.evolve:Evolve",
    "list": "cuasmrl.agents.list_scheduling:ListScheduling",
    "ppo": "cuasmrl.agents.ppo:PPO",
    "ppo-published": "cuasmrl.agents.ppo:PublishedPPO",
})  # fmt: skip
