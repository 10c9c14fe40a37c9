"""What all commands have in common: --json, -h, one sentence on whatever is typed wrong, completion."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from typer.main import get_command

from cuasmrl.cli import app, main
from tests.command import run_alone

Answer = tuple[int, str, str]
HEAVY = {"numpy", "numba", "torch", "gymnasium", "triton", "cuasmrl.agents", "cuasmrl.schedule"}
ORDER = [
    "demo", "optimize", "replay", "report", "play", "emulate", "simulate", "disasm", "check", "lint", "run",
    "store", "doctor", "fleet", "train", "bench", "mine", "workloads",
]  # fmt: skip


def commands(command: Any, *path: str) -> Iterator[tuple[tuple[str, ...], Any]]:
    """All that can be called, with what to type for it."""
    groups = getattr(command, "commands", None)
    if groups is None:
        yield path, command
    else:
        for name, inner in groups.items():
            yield from commands(inner, *path, name)


COMMANDS = [pytest.param(path, command, id=" ".join(path)) for path, command in commands(get_command(app))]
PATHS = [(), ("store",), ("bench",), *(path for path, _ in commands(get_command(app)))]


@pytest.fixture
def answer(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Answer]:
    """answer(words): exit status, standard output and standard error."""

    def typed(*words: str) -> Answer:
        monkeypatch.setattr(sys, "argv", ["cuasmrl", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr()
        return int(ended.value.code or 0), said.out, said.err

    return typed


@pytest.mark.parametrize(("path", "command"), COMMANDS)
def test_every_command_takes_json(path: tuple[str, ...], command: Any) -> None:
    assert any("--json" in parameter.opts for parameter in command.params), path


@pytest.mark.parametrize("path", PATHS, ids=" ".join)
def test_every_command_and_group_has_a_short_help(
    path: tuple[str, ...], answer: Callable[..., Answer]
) -> None:
    status, said, problems = answer(*path, "-h")
    assert (status, problems) == (0, "")
    assert said.startswith(f"Usage: {' '.join(('cuasmrl', *path))} ")
    assert "-h, --help" in said
    assert answer(*path, "--help") == (0, said, "")


@pytest.mark.parametrize("path", [(), ("store",), ("bench",)], ids=" ".join)
def test_a_group_alone_says_what_it_holds(path: tuple[str, ...], answer: Callable[..., Answer]) -> None:
    assert answer(*path) == answer(*path, "-h")


def test_the_order_of_the_help(answer: Callable[..., Answer]) -> None:
    listed = answer("-h")[1].partition("\nCommands:\n")[2].splitlines()
    assert [line.split()[0] for line in listed] == ORDER


@pytest.mark.parametrize(
    ("words", "said", "path"),
    [
        ("optimise", "no such command 'optimise'; did you mean 'optimize'", ""),
        ("bench all", "no such command 'all'", "bench"),
        ("--xyzzy", "no such option: --xyzzy", ""),
        ("optimize --xyzzy", "no such option: --xyzzy", "optimize"),
        ("optimize --budget", "option '--budget' requires an argument", "optimize"),
        ("optimize softmax --json=1", "option '--json' does not take a value", "optimize"),
        ("optimize softmax --budget abc", "invalid value for '--budget': ", "optimize"),
        ("demo --budget 0", "invalid value for '--budget': ", "demo"),
        ("simulate softmax --seeds 0", "invalid value for '--seeds': ", "simulate"),
        ("simulate softmax --compare a.cubin", "option '--compare' requires 2 arguments", "simulate"),
        ("bench agents --budget many", "invalid value for '--budget': ", "bench agents"),
        ("disasm", "missing argument 'cubin'", "disasm"),
        ("store show", "missing argument 'key'", "store show"),
        ("run --xyzzy -- true", "no such option: --xyzzy", "run"),
        ("lint a.cubin b.cubin", "got unexpected extra argument", "lint"),
    ],
)
def test_what_is_typed_wrong_is_one_sentence(
    words: str, said: str, path: str, answer: Callable[..., Answer]
) -> None:
    status, text, problem = answer(*words.split())
    assert (status, text) == (2, "")
    assert problem.startswith(f"error: {said}")
    assert problem.endswith(f"; run `{' '.join(['cuasmrl', *path.split()])} -h`\n")
    assert problem.count("\n") == 1


def test_an_interrupt_ends_with_130(answer: Callable[..., Answer], monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("cuasmrl.workloads.all", interrupted)
    assert answer("workloads") == (130, "", "")


def test_what_follows_a_program_is_its_own() -> None:
    echo = (sys.executable, "-c", "import sys; print(*sys.argv[1:])")
    assert run_alone("run", "--quiet", "--", *echo, "-h", "--json", "--xyzzy") == "-h --json --xyzzy\n"
    assert run_alone("run", "--quiet", *echo, "--help") == "--help\n"
    run_alone("run", "--quiet", "--", "sh", "-c", "exit 3", status=3)


def test_the_version(answer: Callable[..., Answer]) -> None:
    status, said, _ = answer("--version")
    assert status == 0
    assert said.startswith("cuasmrl ")


def completed(*words: str) -> list[str]:
    line = {"_CUASMRL_COMPLETE": "complete_bash", "COMP_WORDS": " ".join(words)}
    environment = {**os.environ, **line, "COMP_CWORD": str(len(words) - 1)}
    command = [sys.executable, "-m", "cuasmrl.cli"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_the_shell_completes_commands_and_options() -> None:
    assert completed("cuasmrl", "opt") == ["optimize"]
    assert completed("cuasmrl", "store", "ver") == ["verify"]
    assert completed("cuasmrl", "lint", "--js") == ["--json"]


def test_the_script_for_the_shell() -> None:
    environment = {**os.environ, "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    command = [sys.executable, "-m", "cuasmrl.cli", "--show-completion", "bash"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert "complete -o default -F _cuasmrl_completion cuasmrl" in done.stdout


def test_the_start_loads_nothing_heavy() -> None:
    code = "import sys, cuasmrl.cli; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert HEAVY.isdisjoint(done.stdout.split())
