"""Pages that are followed to the letter: docs/tutorial.md, and the recipes of CONTRIBUTING.md.

A block with a file name is written there, a diff is applied, and what stands behind a `$` is run. The
commands have to print the lines that the page shows, up to the numbers in them. `pytest --renew-golden` on
this file (with `-m slow` for the recipes) writes the present numbers into the pages.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TUTORIAL = ROOT / "docs" / "tutorial.md"
RECIPES = ROOT / "CONTRIBUTING.md"
COPIED = ("src", "tests", "docs", "examples", "pyproject.toml", "README.md")

ADDED = ("Add an opcode",)
"""Recipes whose example is part of cuasmrl."""

_BLOCK = re.compile(r"^```(\w+)(?: ([\w./-]+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_NUMBER = re.compile(r"(?<![A-Za-z_])[0-9a-f]*[0-9][0-9a-fx,.]*")
_ENDED = "-- ended with status"


@dataclass(frozen=True)
class Block:
    language: str
    name: str
    text: str

    @property
    def commands(self) -> list["Command"]:
        """Of a block marked `console`: what follows a prompt, and below it what is printed."""
        parts = re.split(r"^\$ ", self.text, flags=re.MULTILINE)[1:] if self.language == "console" else []
        return [Command(text, tuple(shown)) for text, *shown in (part.splitlines() for part in parts)]


@dataclass(frozen=True)
class Command:
    text: str
    shown: tuple[str, ...]
    """The lines of output that the page has; `...` stands for others."""


@dataclass(frozen=True)
class Outcome:
    command: Command
    status: int
    lines: tuple[str, ...]

    def __str__(self) -> str:
        return f"$ {self.command.text}\n" + "\n".join(self.lines)


def blocks(text: str) -> list[Block]:
    return [Block(*found) for found in _BLOCK.findall(text)]


def recipes() -> dict[str, str]:
    """The sections that say how to add something, by their headings."""
    _, *sections = re.split(r"^## ", RECIPES.read_text(), flags=re.MULTILINE)
    named = {section.partition("\n")[0]: section for section in sections}
    return {name: text for name, text in named.items() if name.startswith("Add ")}


def edited(text: str, diff: str) -> str:
    """Lines with - give way to those with +; they and the others have to stand in the text once."""
    lines = diff.splitlines()
    old = "".join(f"{line[1:]}\n" for line in lines if not line.startswith("+"))
    new = "".join(f"{line[1:]}\n" for line in lines if not line.startswith("-"))
    assert text.count(old) == 1, f"stands there {text.count(old)} times:\n{old}"
    return text.replace(old, new)


def undone(diff: str) -> str:
    return "".join(
        {"+": "-", "-": "+"}.get(line[:1], line[:1]) + line[1:] + "\n" for line in diff.splitlines()
    )


def take_out(page: list[Block], root: Path) -> None:
    """An example that is part of cuasmrl goes, so that it can be added."""
    for block in reversed(page):
        if block.language == "diff":
            path = root / block.name
            path.write_text(edited(path.read_text(), undone(block.text)))


def copy_of_the_tree(name: str, folder: Path) -> Path:
    """As it was before the example of a recipe."""
    for part in COPIED:
        if (ROOT / part).is_dir():
            shutil.copytree(ROOT / part, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            folder.mkdir(exist_ok=True)
            shutil.copy(ROOT / part, folder / part)
    if name in ADDED:
        take_out(blocks(recipes()[name]), folder)
    return folder


def versions(page: list[Block], root: Path) -> Iterator[tuple[Block, str]]:
    """The blocks in order, each with what its file holds from then on."""
    texts: dict[str, str] = {}
    for block in page:
        if block.language == "diff":
            before = texts.get(block.name) or (root / block.name).read_text()
            texts[block.name] = edited(before, block.text)
        elif block.name:
            texts[block.name] = block.text
        yield block, texts.get(block.name, "")


def follow(page: list[Block], root: Path, scratch: Path, variables: dict[str, str]) -> list[Outcome]:
    """All of a page in one shell, as a reader types it."""
    script = []
    for number, (block, text) in enumerate(versions(page, root)):
        if block.name:
            (scratch / f"{number}").write_text(text)
            there = root / block.name
            script += [f"mkdir -p '{there.parent}'", f"cp '{scratch / str(number)}' '{there}'"]
        for command in block.commands:
            script += [command.text, "status=$?", "echo", f"echo '{_ENDED}' $status"]
    (scratch / "typed.sh").write_text("\n".join(script) + "\n")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("CUASMRL_")}
    environment["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        ["bash", scratch / "typed.sh"], cwd=root, env=environment | variables, text=True, check=False,
        timeout=900, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    *parts, rest = re.split(rf"^{_ENDED} (\d+)\n", done.stdout, flags=re.MULTILINE)
    assert not rest, rest
    commands = [command for block in page for command in block.commands]
    return [
        Outcome(command, int(status), tuple(text.replace(str(root), "~/dense").splitlines()))
        for command, text, status in zip(commands, parts[::2], parts[1::2], strict=True)
    ]


def mask(line: str) -> str:
    """A line without its numbers, and without the widths of columns that follow from them."""
    return " ".join(_NUMBER.sub("#", line).split())


def compare(outcomes: list[Outcome], page: Path, renew: bool) -> None:
    """Every command ended well, and printed the lines that are shown, in this order."""
    text = page.read_text()
    for outcome in outcomes:
        assert outcome.status == 0, outcome
        lines = iter(outcome.lines)
        for shown in outcome.command.shown:
            if shown != "...":
                found = next((line for line in lines if mask(line) == mask(shown)), None)
                assert found is not None, f"{outcome}\n\nis without, or not there:\n{shown}"
                text = text.replace(f"\n{shown}\n", f"\n{found}\n")
    if renew:
        page.write_text(text)


@pytest.fixture(scope="module", autouse=True)
def _tools() -> None:
    pytest.importorskip("triton", reason="nvdisasm comes with it")
    if shutil.which("g++") is None:
        pytest.skip("nvcc needs a host compiler")


def test_the_tutorial(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    folder, scratch = tmp_path / "dense", tmp_path / "scratch"
    folder.mkdir()
    scratch.mkdir()
    page = blocks(TUTORIAL.read_text())
    outcomes = follow(page, folder, scratch, {"XDG_CACHE_HOME": str(tmp_path / "cache")})
    compare(outcomes, TUTORIAL, request.config.getoption("--renew-golden"))
    said = "\n".join(map(str, outcomes))
    for sentence in (
        "gain         passed",
        "certified: run/result.cubin is as safe as dense.cubin",
        "0 from the store; 1 modelled result not used",
        "1 from the store (1 modelled)",
        "faster in 3 of 3 seeds",
    ):
        assert sentence in said


@pytest.mark.parametrize("name", recipes())
def test_the_places_that_a_recipe_changes_are_there(name: str, tmp_path: Path) -> None:
    copy = copy_of_the_tree(name, tmp_path / "copy")
    assert [block.name for block, text in versions(blocks(recipes()[name]), copy) if text]


@pytest.mark.slow
@pytest.mark.parametrize("name", recipes())
def test_a_recipe(name: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    copy, scratch = copy_of_the_tree(name, tmp_path / "copy"), tmp_path / "scratch"
    scratch.mkdir()
    outcomes = follow(blocks(recipes()[name]), copy, scratch, {"PYTHONPATH": str(copy / "src")})
    compare(outcomes, RECIPES, request.config.getoption("--renew-golden"))
