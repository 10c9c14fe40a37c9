"""`cuasmrl play` and `optimize --watch` as a user meets them."""

import json
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from cuasmrl.agents.policy.ranker import Policy
from cuasmrl.cli.play import _ranker
from cuasmrl.errors import CuasmrlError
from cuasmrl.explain.play.serving import needed
from tests.command import run, sentence

SMALL = (
    "gemm_leaky_relu",
    "--config",
    "m32n32k32_w2_s2",
    "--set",
    "M=128",
    "--set",
    "N=128",
    "--set",
    "K=256",
)


def test_the_page_is_where_it_says_until_it_is_stopped() -> None:
    command = [sys.executable, "-m", "cuasmrl.cli", "play", *SMALL, "--no-open", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline(), process.stdout.readline()]
        address = lines[1].split()[1]
        assert lines[0].startswith("gemm_leaky_relu m32n32k32_w2_s2, on virtual:a100")
        with urllib.request.urlopen(address) as answer:
            assert b"<title>gemm_leaky_relu m32n32k32_w2_s2: play</title>" in answer.read()
        process.send_signal(signal.SIGINT)
        try:
            _, errors = process.communicate(timeout=60)
        finally:
            process.kill()
    assert errors.endswith("stopped\n")
    assert process.returncode == 0


def test_a_game_is_recorded(tmp_path: Path) -> None:
    target = tmp_path / "game.html"
    found = json.loads(run("play", *SMALL, "--record", target, "--json"))
    assert found["recorded"] == str(target)
    assert found["improvements"] > 3
    assert target.read_text().startswith("<!doctype html>")


def test_bad_input(tmp_path: Path) -> None:
    assert "name a workload or a cubin to play on, or a run with --from" in sentence("play")
    assert f"{tmp_path} holds no run" in sentence("play", "--from", tmp_path)
    assert "a source cannot be given as well" in sentence("play", "softmax", "--from", tmp_path)
    assert "there is no directory" in sentence("play", *SMALL, "--record", tmp_path / "no" / "game.html")
    assert "nonsense" in sentence("optimize", "nonsense", "--watch")
    assert "--watch" in sentence("optimize", "--recorded", "--watch")


def test_without_the_packages_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with pytest.raises(
        CuasmrlError, match=r"the page needs uvicorn; install it with pip install .*cuasmrl\[pages\]"
    ):
        needed()


def test_hints_come_from_the_policy_that_is_shipped() -> None:
    pytest.importorskip("safetensors")
    assert isinstance(_ranker(), Policy)
