"""Tests that were written for a GPU, run by pytest on the virtual one."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cuasmrl.gpu.virtual.pytest_plugin import Outcome, summary

SUITE = """
import subprocess, sys, time
import pytest, torch, triton, triton.language as tl

assert torch.cuda.is_available() and torch.cuda.get_device_capability() == (8, 0)

@triton.jit
def double(x, z, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(z + i, 2 * tl.load(x + i))

@pytest.mark.parametrize("seed", range(6))
def test_double(seed):
    generator = torch.Generator(device="cuda")
    host = torch.rand(64)
    x, z = host.to("cuda"), torch.zeros(64, device="cuda")
    double[(1,)](x, z, 64)
    assert double.device_caches[torch.cuda.current_device()][0]
    assert x.is_cuda and torch.equal(z.cpu(), 2 * host)

def test_copies_are_copies():
    host = torch.zeros(64)
    device = host.cuda()
    double[(1,)](torch.ones(64, device="cuda:0"), device, 64)
    back = device.cpu()
    device.fill_(7)
    assert (host == 0).all() and (back == 2).all()

def test_halves_are_added_up_in_float32():
    x = torch.full((1, 4096), 1.0, dtype=torch.float16, device="cuda")
    x[0, 0] = 2048
    assert (x @ torch.ones(4096, 1, dtype=torch.float16, device="cuda")).item() == 6144

def test_properties():
    properties = torch.cuda.get_device_properties(0)
    assert properties.multi_processor_count == 108 and torch.cuda.get_device_name() == properties.name

def test_children():
    code = "import torch; print(torch.ones(3, device='cuda').sum().item(), torch.cuda.device_count())"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "3.0 1\\n"

@pytest.mark.skipif(torch.cuda.get_device_capability()[0] < 9, reason="Hopper only")
def test_skipped(): pass

def test_wrong():
    assert 1 == 2, "one is not two"

def test_slow():
    time.sleep(60)
"""


def run(folder: Path, *options: str) -> str:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "cuasmrl.gpu.virtual.pytest_plugin",
               "-p", "no:cacheprovider", *options]  # fmt: skip
    environment = os.environ | {"TRITON_DEFAULT_FP_FUSION": "1"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    return done.stdout


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    (tmp_path / "test_suite.py").write_text(SUITE)
    return tmp_path


def test_a_suite(suite: Path) -> None:
    options = ("--virtual-gpu", "a100", "--virtual-gpu-record=seen.jsonl", ".")
    output = run(suite, *options, "-k", "not slow")
    assert "10 of 11 passed (90.9 %); 1 skipped by the tests themselves" in output, output
    assert "1 AssertionError: one is not two" in output
    # What is in the record is not run again, and counts.
    output = run(suite, *options, "--virtual-gpu-timeout", "1")
    assert "10 of 12 passed (83.3 %); 1 skipped by the tests themselves" in output, output
    assert "1 cuasmrl.gpu.virtual.pytest_plugin.Overdue: still running after N seconds" in output
    rows = [json.loads(line) for line in (suite / "seen.jsonl").read_text().splitlines()]
    assert len({row["test"] for row in rows}) == len(rows) == 13


def test_samples_and_scripts(suite: Path) -> None:
    sampled = [
        run(suite, "--virtual-gpu", "a100", "--virtual-gpu-sample", "3", "--virtual-gpu-seed", "4",
            "--collect-only", ".")
        for _ in range(2)
    ]  # fmt: skip
    assert sampled[0].count("test_suite.py::") == 3, sampled[0]
    assert sampled[0].split(" in ")[0] == sampled[1].split(" in ")[0]
    (suite / "01-tutorial.py").write_text(
        "import torch, triton\n"
        "plot = triton.testing.Benchmark(['n'], [1], 'p', ['a'], ['a'], [('red', '-')], 'y', 't', {})\n"
        "@triton.testing.perf_report(plot)\n"
        "def timed(n, p): raise SystemExit\n"
        "assert torch.zeros(3, device='cuda').is_cuda\n"
        "timed.run(print_data=True)\n"
    )
    (suite / "02-broken.py").write_text("raise ValueError('no')\n")
    output = run(suite, "--virtual-gpu", "a100", "--virtual-gpu-scripts", "01-tutorial.py", "02-broken.py")
    assert "1 of 2 passed (50.0 %)" in output, output
    assert "1 ValueError: no" in output


def test_without_its_option_it_does_nothing(tmp_path: Path) -> None:
    (tmp_path / "test_plain.py").write_text(
        "import torch\n\ndef test(): assert not torch.cuda.is_available()\n"
    )
    assert "1 passed" in run(tmp_path, ".")


def test_the_summary_counts_the_last_outcome_of_a_test() -> None:
    outcomes = [
        Outcome("a", "failed", 1.0, "at 0x10: 3 bytes"),
        Outcome("b", "failed", 1.0, "at 0x20: 4 bytes"),
        Outcome("c", "skipped", 0.0),
        Outcome("a", "passed", 1.0),
        Outcome("d", "failed", 1.0, "at 0x30: 4 bytes"),
    ]
    assert summary(outcomes) == [
        "1 of 3 passed (33.3 %); 1 skipped by the tests themselves",
        "     2 at N: N bytes",
    ]
