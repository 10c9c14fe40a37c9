"""`cuasmrl optimize` as a user meets it, killed in the middle too."""

import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cuasmrl.binary.cubin import Cubin
from cuasmrl.cli import main
from cuasmrl.gpu.launches import load, save
from tests.climbing import CONFIG, NAME
from tests.command import run, run_alone, sentence
from tests.gpu.test_traced import record_of
from tests.traced_kernels import traced

SMALL = (NAME, "--config", CONFIG, "--set", "M=128", "--set", "N=128", "--set", "K=256")


def contents(directory: Path) -> dict[str, bytes]:
    """But for the page, which says where the run is."""
    return {path.name: path.read_bytes() for path in directory.iterdir() if path.name != "report.html"}


def killed(directory: Path, lines: int, seconds: float = 0.0, *command: str) -> None:
    """Start or continue a run, and kill it when its log has so many lines, and some time later."""
    start = command or ("optimize", *SMALL, "--budget", "300", "--run", str(directory))
    process = subprocess.Popen(
        [sys.executable, "-m", "cuasmrl.cli", *start], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    log = directory / "log.jsonl"
    while process.poll() is None and (not log.exists() or log.read_bytes().count(b"\n") < lines):
        time.sleep(0.002)
    time.sleep(seconds)
    process.send_signal(signal.SIGKILL)
    process.wait()


def test_a_run_and_its_continuation_after_a_kill(tmp_path: Path) -> None:
    whole = ("--budget", "300", "--run", tmp_path / "whole", "-o", tmp_path / "new.cubin")
    # What a run says of versions depends on what its process has loaded.
    text = run_alone("optimize", *SMALL, *whole)
    assert "modelled cycles before" in text
    assert "  certificate  passed: " in text
    killed(tmp_path / "run", 100)
    assert not (tmp_path / "run" / "verdict.json").exists()
    found = json.loads(run("optimize", "--resume", tmp_path / "run", "--json"))
    assert found["evaluations"] == 300
    assert contents(tmp_path / "run") == contents(tmp_path / "whole")
    accepted = found["verdict"]["accepted"]
    assert (tmp_path / "new.cubin").exists() == accepted
    assert f"new cubin: {tmp_path / 'new.cubin'}" in text or not accepted


@pytest.mark.slow
def test_kills_at_random_moments(tmp_path: Path) -> None:
    """Again and again, in the search and in the gate, until one comes through."""
    run_alone("optimize", *SMALL, "--budget", "300", "--run", tmp_path / "whole")
    expected = contents(tmp_path / "whole")
    rng = random.Random(0)
    for number in range(6):
        directory = tmp_path / str(number)
        killed(directory, rng.randrange(1, 300))
        for _ in range(2):
            lines = rng.choice([rng.randrange(1, 301), 301])
            killed(directory, lines, rng.uniform(0, 2), "optimize", "--resume", str(directory))
        run("optimize", "--resume", directory)
        assert contents(directory) == expected


def test_a_cubin_with_a_launch_file(tmp_path: Path) -> None:
    kernel = traced("softmax")
    kernel.cubin.save(tmp_path / "k.cubin")
    save(tmp_path / "k.json", record_of("softmax"))
    launch = (tmp_path / "k.cubin", "--launch", tmp_path / "k.json", "--agent", "random", "--budget", "5")
    found = json.loads(run("optimize", *launch, "--run", tmp_path / "run", "--json"))
    assert found["config"]["device"] == "virtual:a100"
    assert found["config"]["kernel"] == "softmax"
    assert Cubin.load(tmp_path / "run" / "original.cubin").data == kernel.cubin.data
    assert load(tmp_path / "run" / "launch.json").launch(kernel.listing.kernel).grid == (648, 1, 1)
    assert "is not empty" in sentence("optimize", *launch, "--run", tmp_path / "run")
    (tmp_path / "k.json").write_text((tmp_path / "k.json").read_text() + "\n")
    assert "was started with problem launch file" in sentence("optimize", "--resume", tmp_path / "run")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--run", "run"), "name a workload or a cubin"),
        ((*SMALL, "--budget", "0", "--run", "run"), "a budget of 0"),
        ((NAME, "--set", "K=x", "--run", "run"), "--set K=x is not understood"),
        (("k.cubin", "--set", "K=1", "--run", "run"), "none is named"),
        (("--run", "run", "--resume", "run"), "give one of them"),
        (("--resume", "run"), "run holds no run"),
        ((*SMALL, "--run", "/dev/null"), "cannot use /dev/null for a run"),
        ((*SMALL, "--device", "tpu", "--run", "run"), "there is no device 'tpu'"),
        ((*SMALL, "--scoreboards", "new", "--run", "run"), "--scoreboards is kept or reassigned, not 'new'"),
        ((*SMALL, "--agent", "nobody", "--run", "run"), "there is no agent 'nobody'"),
        ((*SMALL, "-o", "no/k.cubin", "--run", "run"), "there is no directory no"),
    ],
)
def test_bad_input_gives_one_sentence(
    arguments: tuple[str, ...],
    expected: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["cuasmrl", "optimize", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert error.count("\n") == 1
    assert expected in error
    assert not list(tmp_path.iterdir())
