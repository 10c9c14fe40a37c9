"""What the documentation site has beside the pages of docs/: the README in front, the API, a recorded game.

Links that leave docs/ lead to these, so that every link of a page works in the repository and on the site.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"
RECORDED = ROOT / "build" / "recorded-game.html"
"""Made by `make docs` before the site is built."""
MARK = "<!-- recorded game -->"
_GAME = """
## A game to look at

Press *Play*, or move the slider: what hill climbing has found in 2,000 evaluations, every improvement a step.

<iframe src="recorded-game.html" title="A recorded game"
style="width:100%;height:780px;border:1px solid #8884"></iframe>
"""
FROM_OUTSIDE = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "LICENSE": "license.md",
    "examples/triton/README.md": "examples/triton.md",
}
"""Of the repository → of the site."""
_NAMED = re.compile(r"^```(\w+) (\S+)$", re.MULTILINE)
"""Code that a reader saves under the name behind the language."""
_LINK = re.compile(r"\]\((?!https?:|#)([\w./-]+)(#[\w-]+)?\)")


def on_files(files: Files, config: Any) -> Files:
    for outside, inside in FROM_OUTSIDE.items():
        text = (ROOT / outside).read_text(encoding="utf-8")
        if outside == "LICENSE":
            text = "# License\n\n" + "".join(f"    {line}\n" for line in text.splitlines())
        files.append(File.generated(config, inside, content=text))
    for package, text in _packages():
        files.append(File.generated(config, _page_of(package), content=text))
    files.append(File.generated(config, "api/index.md", content=_contents()))
    if RECORDED.exists():
        files.append(File.generated(config, "explain/recorded-game.html", content=RECORDED.read_bytes()))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    inside = page.file.src_uri
    if inside.startswith("api/"):
        return markdown
    outside = next((o for o, i in FROM_OUTSIDE.items() if i == inside), f"docs/{inside}")

    def led(found: re.Match[str]) -> str:
        target = _on_site(posixpath.normpath(posixpath.join(posixpath.dirname(outside), found[1])))
        return f"]({posixpath.relpath(target, posixpath.dirname(inside) or '.')}{found[2] or ''})"

    titled = _NAMED.sub(r'```\1 title="\2"', markdown)
    return _LINK.sub(led, titled).replace(MARK, _GAME if RECORDED.exists() else "")


def _on_site(path: str) -> str:
    """Where something of the repository is on the site."""
    if path in FROM_OUTSIDE:
        return FROM_OUTSIDE[path]
    if path.startswith("src/"):
        place = Path(path).with_suffix("")
        parts = place.parts[1:]
        return _page_of(".".join(parts if (ROOT / path).is_dir() else parts[:-1]))
    return path.removeprefix("docs/")


def _page_of(package: str) -> str:
    return f"api/{package.removeprefix('cuasmrl').removeprefix('.').replace('.', '/') or 'cuasmrl'}.md"


def _packages() -> Iterator[tuple[str, str]]:
    """Every package with a page that has all of its modules."""
    for folder in sorted(path.parent for path in SOURCE.rglob("__init__.py")):
        package = ".".join(folder.relative_to(SOURCE).parts)
        modules = [
            path.stem for path in sorted(folder.glob("*.py")) if path.stem not in ("__init__", "__main__")
        ]
        text = f"# {package}\n\n::: {package}\n    options: {{show_root_heading: false, members: false}}\n\n"
        for module in modules:
            text += f"::: {package}.{module}\n\n"
        yield package, text


def _contents() -> str:
    lines = [f"* [{package}]({_page_of(package).removeprefix('api/')})" for package, _ in _packages()]
    return "# API\n\nFrom the docstrings, package by package.\n\n" + "\n".join(lines) + "\n"
