"""The blocks of README.md, run one after the other as a reader would."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from cuasmrl.workloads.cuda_compiler import find_nvcc

ROOT = Path(__file__).parents[1]
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINES = 112
"""Two screens, and the picture."""


def blocks(language: str) -> list[str]:
    text = (ROOT / "README.md").read_text()
    found = _BLOCK.findall(text)
    assert {kind for kind, _ in found} == {"sh", "python"}, "a block of another kind is run by nobody"
    return [code for kind, code in found if kind == language]


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """A folder with the examples, a store and caches of its own, and the command on the path."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    command = tmp_path / "bin" / "cuasmrl"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m cuasmrl.cli "$@"\n')
    command.chmod(0o755)
    tools = (command.parent, Path(sys.executable).parent, find_nvcc().parent, os.environ["PATH"])
    return {
        **os.environ,
        "PATH": os.pathsep.join(map(str, tools)),
        "CUASMRL_STORE": str(tmp_path / "store"),
        "TRITON_CACHE_DIR": str(tmp_path / "triton"),
    }


def test_every_block_does_what_it_says(tmp_path: Path, environment: dict[str, str]) -> None:
    def run(command: list[str]) -> str:
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=1800
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
        return done.stdout + done.stderr

    triton, nvcc, cubin = (run(["sh", "-eux", "-c", code]) for code in blocks("sh"))
    assert "newly recorded: 1 kernel, 1 launch" in triton
    assert "1 from the store (1 modelled)" in triton
    assert "1 cubin compiled by ptxas in this run" in nvcc
    assert "certified: faster.cubin is as safe as matmul.cubin" in cubin
    assert "the moves that matter most" in cubin
    (code,) = blocks("python")
    said = run([sys.executable, "-c", code])
    assert re.search(r"at 0x\w+ goes from position (\d+) to (?!\1\b)\d+", said)
    assert "'instructions'" in said
    before, after = ((tmp_path / f"{name}.cubin").read_bytes() for name in ("matmul", "rescheduled"))
    assert before != after


def test_it_fits_two_screens() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= _LINES
