"""The command line as a user meets it."""

import subprocess
import sys
from pathlib import Path


def run(*arguments: str | Path, status: int = 0) -> str:
    """Standard output, or standard error where a failure is expected."""
    command = [sys.executable, "-m", "cuasmrl.cli", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == status, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr if status == 2 else done.stdout


def sentence(*arguments: str | Path) -> str:
    """The one sentence that bad input gives."""
    error = run(*arguments, status=2)
    assert error.startswith("error: ")
    assert error.count("\n") == 1
    return error
