"""The pages: every link leads somewhere."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")]
_LINK = re.compile(r"\]\((?!https?:|\.\.\.)([\w./-]*)(?:#([\w-]+))?\)")


def anchors(page: Path) -> set[str]:
    """As GitHub makes them of headings."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", [pytest.param(p, id=str(p.relative_to(ROOT))) for p in PAGES])
def test_links(page: Path) -> None:
    for target, anchor in _LINK.findall(page.read_text()):
        there = (page.parent / target).resolve() if target else page
        assert there.exists(), f"{page} links to {target}"
        if anchor:
            assert anchor in anchors(there), f"{page} links to {target}#{anchor}"


def test_every_page_is_on_the_site() -> None:
    nav = (ROOT / "mkdocs.yml").read_text().partition("\nnav:\n")[2]
    listed = set(re.findall(r"([\w/-]+\.md)$", nav, re.MULTILINE))
    pages = {str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md")}
    assert listed - pages == {"index.md", "contributing.md", "changelog.md", "api/index.md"}, (
        "made by hooks.py"
    )
    assert pages <= listed, "name them in mkdocs.yml"
