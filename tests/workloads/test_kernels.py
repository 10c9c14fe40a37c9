"""The Triton sources compute what the references say, run in Triton's interpreter instead of on a GPU."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from cuasmrl.workloads import all

TRITON = [workload.name for workload in all() if workload.language == "triton"]


@pytest.mark.parametrize("part", [0, 1])
def test_sources_meet_their_references(part: int, child_environment: dict[str, str]) -> None:
    pytest.importorskip("torch", reason="Triton's interpreter takes its tensors from torch")
    pytest.importorskip("triton")
    script = str(Path(__file__).parent / "interpret.py")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", script, *TRITON[part::2]],
        env={**child_environment, "TRITON_INTERPRET": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    report = json.loads(done.stdout)
    assert len(report) > len(TRITON[part::2])
    assert {case: failures for case, failures in report.items() if failures} == {}
