"""The command line as a user meets it: in this process, which spares each call the start, or in its own."""

import io
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from unittest.mock import patch

from cuasmrl.cli import main


def run(*arguments: str | Path, status: int = 0) -> str:
    """Standard output, or standard error where a failure is expected."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    words = ["cuasmrl", *map(str, arguments)]
    with patch.object(sys, "argv", words), redirect_stdout(out), redirect_stderr(err):
        try:
            main()
            ended: int | str | None = 0
        except SystemExit as end:
            ended = end.code
    said, problems = (stream.buffer.getvalue().decode() for stream in (out, err))
    return _judged(ended or 0, said, problems, status)


def run_alone(*arguments: str | Path, status: int = 0) -> str:
    """The same in a process of its own, for commands that start others or are about the process."""
    command = [sys.executable, "-m", "cuasmrl.cli", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=1800)
    return _judged(done.returncode, done.stdout, done.stderr, status)


def sentence(*arguments: str | Path) -> str:
    """The one sentence that bad input gives."""
    error = run(*arguments, status=2)
    assert error.startswith("error: ")
    assert error.count("\n") == 1
    return error


def _judged(ended: int | str, said: str, problems: str, status: int) -> str:
    assert ended == status, said + problems
    assert "Traceback" not in problems
    return problems if status == 2 else said
