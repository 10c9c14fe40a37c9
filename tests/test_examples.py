"""The examples do what their pages say."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
SMALL = ("-m", "64", "-n", "64", "-k", "512")


def tour(tmp_path: Path, *sizes: str, budget: int) -> tuple[str, str]:
    """Standard output and standard error of the script."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    variables = {**os.environ, "BUDGET": str(budget), "TMPDIR": str(tmp_path), "PATH": path}
    command = ["sh", EXAMPLES / "triton" / "tour.sh", *sizes]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    assert not list(tmp_path.glob("cuasmrl-tour-*")), "it cleans up"
    return done.stdout, done.stderr


def times(text: str) -> tuple[float, float]:
    before, after = map(float, re.findall(r"^time +([\d.]+) microseconds$", text, re.MULTILINE))
    return before, after


def test_triton_recorded_optimised_and_from_the_store(tmp_path: Path) -> None:
    text, said = tour(tmp_path, *SMALL, budget=200)
    configs = re.findall(r"^config .*$", text, re.MULTILINE)
    outputs = re.findall(r"^output  sha256 \w{64}$", text, re.MULTILINE)
    assert len(configs) == len(outputs) == 2
    assert len(set(configs)) == len(set(outputs)) == 1
    assert "confirmed gain in modelled cycles" in text
    assert "1 recorded, 1 with a result in" in text
    before, after = times(text)
    assert after < before
    assert "1 from the store" in said


@pytest.mark.slow
def test_the_example_at_its_own_size(tmp_path: Path) -> None:
    before, after = times(tour(tmp_path, budget=2000)[0])
    assert after < 0.98 * before
