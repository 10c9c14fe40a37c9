"""Text files that are written whole or not at all."""

import os
from pathlib import Path

from cuasmrl.errors import CuasmrlError


def write_text(path: str | Path, text: str) -> None:
    """A reader sees the old file or the new one, and a failure leaves nothing behind."""
    target = Path(path)
    # The process number keeps two writers of one file apart; the last one to finish wins.
    scratch = target.parent / f"{target.name}.{os.getpid()}.partial"
    try:
        try:
            scratch.write_text(text, encoding="utf-8")
            scratch.replace(target)
        except BaseException:
            scratch.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise CuasmrlError(f"cannot write {path}: {error.strerror}; choose a writable place") from error
