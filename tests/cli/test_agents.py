"""The agents on the command line: listed in the help and when one is not known, completed by the shell."""

import os
import subprocess
import sys

import pytest

from cuasmrl.agents import AGENTS
from tests.command import run, sentence


@pytest.mark.parametrize("command", [("optimize",), ("bench", "agents"), ("bench", "results")])
def test_the_help_says_what_each_agent_is(command: tuple[str, ...]) -> None:
    lines = run(*command, "-h").partition("\nAgents:\n")[2].splitlines()
    assert [tuple(line.split(maxsplit=1)) for line in lines] == list(AGENTS.purposes.items())


@pytest.mark.parametrize(
    "command", [("optimize", "softmax", "--set", "M=4"), ("bench", "agents", "--workload", "softmax")]
)
def test_an_unknown_agent_is_answered_with_those_there_are(command: tuple[str, ...]) -> None:
    said = sentence(*command, "--agent", "best")
    assert said.startswith("error: there is no agent 'best'; choose random (random legal moves")
    for name, purpose in AGENTS.purposes.items():
        assert f"{name} ({purpose})" in said


def test_every_agent_says_what_it_is() -> None:
    assert list(AGENTS.purposes) == list(AGENTS)
    assert all(0 < len(purpose) <= 64 for purpose in AGENTS.purposes.values())


def test_names_are_completed() -> None:
    words = {
        "_CUASMRL_COMPLETE": "complete_bash",
        "COMP_WORDS": "cuasmrl optimize --agent ppo",
        "COMP_CWORD": "3",
    }
    command = [sys.executable, "-m", "cuasmrl.cli"]
    done = subprocess.run(command, env={**os.environ, **words}, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["ppo", "ppo-published"]


def test_the_help_loads_no_learner() -> None:
    code = (
        "import sys; from cuasmrl.cli import main; sys.argv = ['cuasmrl', 'optimize', '-h']\n"
        "try:\n    main()\nexcept SystemExit:\n    print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "False"
