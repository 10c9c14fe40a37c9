"""The example with nvcc, from end to end as its README says."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[3] / "examples" / "nvcc"


@pytest.mark.slow
def test_nvcc_writes_the_faster_schedule(tmp_path: Path) -> None:
    command = tmp_path / "bin" / "cuasmrl"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m cuasmrl.cli "$@"\n')
    command.chmod(0o755)
    environment = {
        **os.environ,
        "PATH": f"{command.parent}{os.pathsep}{os.environ['PATH']}",
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
    }
    done = subprocess.run(
        [EXAMPLE / "tour.sh", tmp_path / "build"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    compiled = "1 cubin compiled by ptxas in this run"
    assert f"{compiled}, 0 from the store; newly recorded: 1 kernel, 0 launches\n" in done.stderr
    assert f"{compiled}, 1 from the store (1 modelled)\n" in done.stderr
    assert "certified: after.cubin is as safe as before.cubin" in done.stdout
    assert "faster in 3 of 3 seeds" in done.stdout
    before, after = ((tmp_path / "build" / f"{name}.cubin").read_bytes() for name in ("before", "after"))
    assert (tmp_path / "build" / "run" / "result.cubin").read_bytes() == after != before
