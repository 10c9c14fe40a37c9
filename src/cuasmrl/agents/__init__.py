"""Players of the assembly game: one file each, one interface, equal budgets."""

from cuasmrl.agents.agent import Agent, match
from cuasmrl.agents.random_play import RandomPlay

__all__ = ["Agent", "RandomPlay", "match"]
