"""Players of the assembly game: one file each, one interface, equal budgets."""

from cuasmrl.agents.agent import Agent, match
from cuasmrl.agents.random_play import RandomPlay
from cuasmrl.agents.registry import AGENTS

__all__ = ["AGENTS", "Agent", "RandomPlay", "match"]
