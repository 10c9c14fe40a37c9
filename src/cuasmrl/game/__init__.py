"""The assembly game: one kernel, a clock, and two environments around them.

Importing this registers `AssemblyGame-v0` and `AssemblyGame-v1` with Gymnasium.
"""

import gymnasium as gym

from cuasmrl.game.clock import BudgetSpentError, Clock, Evaluation
from cuasmrl.game.free import FreeGame
from cuasmrl.game.game import Game
from cuasmrl.game.published import HORIZON, PublishedGame
from cuasmrl.game.scope import Scope

__all__ = ["BudgetSpentError", "Clock", "Evaluation", "FreeGame", "Game", "PublishedGame", "Scope"]

gym.register("AssemblyGame-v0", "cuasmrl.game.published:PublishedGame", max_episode_steps=HORIZON)
gym.register("AssemblyGame-v1", "cuasmrl.game.free:FreeGame")
