"""The examples do what their pages say."""

import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

import cuasmrl
import cuasmrl.gpu.virtual
from cuasmrl.deploy.recorded import optimize_recorded
from cuasmrl.deploy.store import Store

EXAMPLES = Path(__file__).parents[1] / "examples"
MATMUL = EXAMPLES / "triton" / "matmul.py"
SMALL = ("-m", "64", "-n", "64", "-k", "1024")


def lines(text: str, word: str) -> list[str]:
    return re.findall(rf"^{word} .*$", text, re.MULTILINE)


def times(text: str) -> list[float]:
    return [float(line.split()[1]) for line in lines(text, "time")]


def test_triton_recorded_optimised_and_from_the_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """All of it in this process; the script is the same, and is run as a script."""
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "triton"))
    monkeypatch.setenv("TRITON_DEFAULT_FP_FUSION", "1")
    monkeypatch.setattr(sys, "argv", [str(MATMUL), *SMALL])
    store = Store(tmp_path / "store")
    with cuasmrl.gpu.virtual.active("a100"):
        for mode in ("record", "deploy"):
            assert cuasmrl.install(mode, store=store)
            runpy.run_path(str(MATMUL), run_name="__main__")
            cuasmrl.uninstall()
            if mode == "record":
                (outcome,) = optimize_recorded(store, {"budget": 200}, tmp_path / "runs")
                assert outcome.entry is not None
    text = capsys.readouterr().out
    for word in ("config", "output"):
        before, after = lines(text, word)
        assert before == after
    plain, optimised = times(text)
    assert optimised < plain


@pytest.mark.slow
def test_the_tour_of_triton(tmp_path: Path) -> None:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    variables = {**os.environ, "TMPDIR": str(tmp_path), "PATH": path}
    command = ["sh", str(EXAMPLES / "triton" / "tour.sh")]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    assert not list(tmp_path.glob("cuasmrl-tour-*")), "it cleans up"
    assert len(set(lines(done.stdout, "output"))) == 1
    assert "1 recorded, 1 with a result in" in done.stdout
    assert "1 from the store" in done.stderr
    plain, optimised = times(done.stdout)
    assert optimised < 0.98 * plain
