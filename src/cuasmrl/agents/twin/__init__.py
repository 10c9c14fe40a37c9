"""The agent that plans in a twin of the device."""

from cuasmrl.agents.twin.agent import Twin

__all__ = ["Twin"]
