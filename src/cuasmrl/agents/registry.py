"""Agents by name, imported when asked for: some need packages that others do without."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module

from cuasmrl.agents.agent import Agent
from cuasmrl.errors import CuasmrlError


class Agents(Mapping[str, type[Agent]]):
    """The classes. What is known without importing them: where each is, and in a few words what it does."""

    def __init__(self, agents: Mapping[str, tuple[str, str]]) -> None:
        self.modules = {name: module for name, (module, _) in agents.items()}
        """Written `module:Class`."""
        self.purposes = {name: purpose for name, (_, purpose) in agents.items()}

    def __getitem__(self, name: str) -> type[Agent]:
        module, _, kind = self.modules[name].partition(":")
        try:
            found: type[Agent] = getattr(import_module(module), kind)
        except ModuleNotFoundError as error:
            raise CuasmrlError(f"the agent {name} needs {error.name}; install it with pip") from error
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self.modules)

    def __len__(self) -> int:
        return len(self.modules)

    def named(self, name: str) -> Agent:
        """The agent of that name with its default settings."""
        if name not in self.modules:
            *others, last = (f"{known} ({purpose})" for known, purpose in self.purposes.items())
            raise CuasmrlError(f"there is no agent {name!r}; choose {', '.join(others)} or {last}")
        return self[name]()


AGENTS = Agents({
    "random": ("cuasmrl.agents.random_play:RandomPlay", "random legal moves, the baseline"),
    "greedy": ("cuasmrl.agents.greedy:Greedy", "hill climbing along plateaus, with steps aside"),
    "anneal": ("cuasmrl.agents.anneal:Anneal", "simulated annealing"),
    "evolve": ("cuasmrl.agents.evolve:Evolve", "a genetic algorithm"),
    "list": ("cuasmrl.agents.list_scheduling:ListScheduling", "list scheduling, then hill climbing"),
    "twin": ("cuasmrl.agents.twin:Twin", "plans in models of the device, fitted to its times"),
    "policy": ("cuasmrl.agents.policy.agent:PolicyClimb", "hill climbing where a trained policy chooses"),
    "ppo": ("cuasmrl.agents.ppo:PPO", "a policy trained on other kernels that learns on, needs torch"),
    "ppo-published": ("cuasmrl.agents.ppo:PublishedPPO", "the learner of CuAsmRL, from scratch, needs torch"),
})  # fmt: skip
