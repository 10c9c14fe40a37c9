"""The agents on the command line: completion of their names, and a list of them in the help."""

from typing import Any

from typer.core import TyperCommand


def complete(incomplete: str) -> list[tuple[str, str]]:
    """Names that begin like this, each with what the agent is."""
    return [(name, purpose) for name, purpose in _agents() if name.startswith(incomplete)]


class ListsAgents(TyperCommand):
    """A command whose help ends with the agents. They are imported when that help is asked for."""

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Agents"):
            formatter.write_dl(_agents())


def _agents() -> list[tuple[str, str]]:
    from cuasmrl.agents import AGENTS

    return list(AGENTS.purposes.items())
