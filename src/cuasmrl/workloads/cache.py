"""Compiled kernels on disk, found by the content that determined them."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from cuasmrl.errors import CuasmrlError
from cuasmrl.workloads.model import BuiltKernel, Parameter

FORMAT = 1
"""Part of every key: a change of the stored fields makes old entries unreachable."""


def cache_directory() -> Path:
    """$CUASMRL_CACHE_DIR, else cuasmrl under the user's cache directory."""
    explicit = os.environ.get("CUASMRL_CACHE_DIR")
    if explicit:
        return Path(explicit)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "cuasmrl"


def digest(facts: Mapping[str, Any]) -> str:
    """Key of everything that determines a compilation."""
    text = json.dumps({"format": FORMAT, **facts}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def load(key: str) -> BuiltKernel | None:
    """The stored kernel; None when there is none or when its files are damaged."""
    entry = _entry(key)
    try:
        record = json.loads(entry.read_text())
        cubin = entry.with_suffix(".cubin").read_bytes()
        if hashlib.sha256(cubin).hexdigest() != record.pop("sha256"):
            return None
        record["parameters"] = tuple(Parameter(**parameter) for parameter in record["parameters"])
        record["block"] = tuple(record["block"])
        record["divisible"] = tuple(record["divisible"])
        return BuiltKernel(cubin=cubin, **record)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def save(key: str, built: BuiltKernel) -> None:
    """Store a kernel; readers see all of it or nothing, and the last of several writers wins."""
    record = asdict(built)
    cubin: bytes = record.pop("cubin")
    record["sha256"] = hashlib.sha256(cubin).hexdigest()
    entry = _entry(key)
    try:
        entry.parent.mkdir(parents=True, exist_ok=True)
        # The record names the cubin's digest, so writing it last is what publishes the entry.
        _write(entry.with_suffix(".cubin"), cubin)
        _write(entry, json.dumps(record, indent=1, sort_keys=True).encode())
    except OSError as error:
        raise CuasmrlError(
            f"The cache {cache_directory()} cannot be written ({error.strerror}); "
            "point CUASMRL_CACHE_DIR to a directory that can."
        ) from error


def _entry(key: str) -> Path:
    return cache_directory() / "kernels" / key[:2] / f"{key}.json"


def _write(path: Path, content: bytes) -> None:
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.stem[:8], suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
