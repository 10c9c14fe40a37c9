"""`cuasmrl report`: pages and pictures of runs on disk."""

import json
import shutil
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.command import run, sentence


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of the command itself, and what it said."""
    made = tmp_path_factory.mktemp("runs")
    said = run(
        "optimize", "softmax", "--config", "w4", "--set", "M=648", "--set", "N=256", "--budget", "40",
        "--min-gain", "0", "--min-faster", "0", "--run", made / "softmax",
    )  # fmt: skip
    (made / "said").write_text(said)
    return made


def test_every_run_ends_with_a_report(folder: Path) -> None:
    path = folder / "softmax" / "report.html"
    assert (folder / "said").read_text().endswith(f"report: {path}\n")
    assert path.read_text().startswith("<!doctype html>")


def test_a_report_of_a_run(folder: Path, tmp_path: Path) -> None:
    target = tmp_path / "page.html"
    assert run("report", folder / "softmax", "-o", target) == f"report: {target}\n"
    assert "softmax w4" in target.read_text()


def test_a_report_as_data(folder: Path, tmp_path: Path) -> None:
    found = json.loads(run("report", folder / "softmax", "-o", tmp_path / "a.html", "--json", "--limit", "0"))
    assert found["report"] == str(tmp_path / "a.html")
    assert found["runs"][0]["config"] == json.loads((folder / "softmax" / "config.json").read_text())


def test_two_runs_are_compared(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder / "softmax", tmp_path / "other")
    target = tmp_path / "both.html"
    run("report", folder / "softmax", tmp_path / "other", "-o", target, "--limit", "0")
    assert "2 runs compared" in target.read_text()


@pytest.mark.parametrize("kind", ["curve", "cycles"])
def test_single_pictures(folder: Path, tmp_path: Path, kind: str) -> None:
    target = tmp_path / f"{kind}.svg"
    assert run("report", folder / "softmax", "--svg", kind, "-o", target) == f"picture: {target}\n"
    root = ElementTree.parse(target).getroot()
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert run("report", folder / "softmax", "--svg", kind, "-o", target)


def test_a_damaged_run_has_a_report_that_says_so(folder: Path, tmp_path: Path) -> None:
    path = Path(shutil.copytree(folder / "softmax", tmp_path / "damaged"))
    (path / "config.json").write_text("{")
    run("report", path)
    assert "This run cannot be read" in (path / "report.html").read_text()


def test_bad_input_is_one_sentence(folder: Path, tmp_path: Path) -> None:
    assert "is no directory" in sentence("report", tmp_path / "nothing")
    assert "--svg is loop, curve or cycles, not 'pie'" in sentence(
        "report", folder / "softmax", "--svg", "pie"
    )
    assert "draws one run" in sentence("report", folder / "softmax", folder / "softmax", "--svg", "loop")
    assert "cannot write" in sentence("report", folder / "softmax", "-o", tmp_path / "no" / "where.html")
