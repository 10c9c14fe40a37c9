"""Every Triton that is served, each in an environment of its own."""

import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
VERSIONS = ("3.6.0", "3.7.0", "3.8.0", "3.9.0")
NEEDED = (
    "torch==2.13.0", "numpy", "numba", "llvmlite", "gymnasium", "rich", "typer", "ml_dtypes", "pytest",
    "pytest-xdist", "hypothesis",
)  # fmt: skip


def environment(place: Path, version: str) -> dict[str, str]:
    """An environment with that Triton, in which this very source tree is what `import cuasmrl` gives."""
    venv.create(place, with_pip=True)
    pip = [str(place / "bin" / "python"), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    subprocess.run([*pip, f"triton=={version}", *NEEDED], check=True)
    command = place / "bin" / "cuasmrl"
    command.write_text(f'#!/bin/sh\nexec "{place}/bin/python" -m cuasmrl.cli "$@"\n')
    command.chmod(0o755)
    path = os.pathsep.join([str(place / "bin"), os.environ["PATH"]])
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("CUASMRL", "TRITON"))}
    return {**kept, "PATH": path, "PYTHONPATH": str(ROOT / "src")}


@pytest.mark.slow
@pytest.mark.parametrize("version", VERSIONS)
def test_a_version(version: str, tmp_path: Path) -> None:
    """All tests of this integration and of the virtual GPU, then the example from end to end."""
    variables = environment(tmp_path / "env", version)
    python = tmp_path / "env" / "bin" / "python"
    told = subprocess.run(
        [python, "-c", "import triton; print(triton.__version__)"],
        env=variables,
        capture_output=True,
        text=True,
        check=True,
    )
    assert told.stdout.strip() == version
    # nvdisasm of Triton 3.6 is older than what sm_120 needs; that is said, and no matter of the hook.
    chosen = (
        "tests/deploy/triton",
        "tests/gpu/virtual",
        "tests/test_examples.py",
        "-k",
        "not rtx5090 and not data",
    )
    options = ("-q", "-n", "2", "-o", f"cache_dir={tmp_path / 'cache'}")
    done = subprocess.run(
        [python, "-m", "pytest", *options, *chosen],
        cwd=ROOT,
        env=variables,
        capture_output=True,
        text=True,
        check=False,
    )
    sys.stdout.write(done.stdout[-4000:])
    assert done.returncode == 0
