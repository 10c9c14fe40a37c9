"""The commands that measure."""

from cuasmrl.cli.bench import code, model, players, services
from cuasmrl.cli.bench.shared import app

__all__ = ["app", "code", "model", "players", "services"]
