"""Launch files on disk: JSON."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from cuasmrl.errors import CuasmrlError
from cuasmrl.files import write_text
from cuasmrl.gpu.launches.fields import parse
from cuasmrl.gpu.launches.fills import Number
from cuasmrl.gpu.launches.record import FORMAT, Buffer, Bytes, Entry, LaunchRecord, SameAs, Scalar


def load(path: str | Path) -> LaunchRecord:
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        reason = (isinstance(error, OSError) and error.strerror) or "it is not text"
        raise CuasmrlError(f"cannot read {path}: {reason}; name a launch file") from error
    try:
        data = json.loads(text)
    except ValueError as error:
        raise CuasmrlError(f"{path} is not JSON: {error}") from error
    return parse(data, str(path))


def save(path: str | Path, record: LaunchRecord) -> None:
    """An argument a line, so that people can read and edit it."""
    head = as_json(record)
    entries = head.pop("arguments")
    lines = [f' "{name}": {json.dumps(value)},' for name, value in head.items()]
    arguments = ",\n".join(f"  {json.dumps(entry)}" for entry in entries)
    write_text(path, "\n".join(["{", *lines, ' "arguments": [', arguments, " ]", "}\n"]))


def as_json(record: LaunchRecord) -> dict[str, Any]:
    """What a launch file holds, as `parse` reads it."""
    head = {"format": FORMAT, "kernel": record.kernel, "grid": list(record.grid), "block": list(record.block),
            "shared_bytes": record.shared_bytes, "cooperative": record.cooperative or None,
            "cluster": None if record.cluster is None else list(record.cluster),
            "seed": record.seed}  # fmt: skip
    known = {name: value for name, value in head.items() if value is not None}
    return {**known, "arguments": [_fields(entry) for entry in record.arguments]}


def _fields(entry: Entry) -> dict[str, Any] | None:
    if entry is None:
        return None
    name = {"name": entry.name} if entry.name else {}
    match entry:
        case Buffer():
            settings = {key: _shown(value) for key, value in entry.settings.items()}
            values = {"values": [_shown(v) for v in entry.values]} if entry.fill == "values" else {}
            what = {
                "dtype": entry.dtype,
                "shape": list(entry.shape),
                "fill": entry.fill,
                **settings,
                **values,
            }
            return {**name, **what}
        case Scalar():
            return {**name, "dtype": entry.dtype, "value": _shown(entry.value)}
        case Bytes():
            return {**name, "bytes": entry.bytes.hex()}
        case SameAs():
            return {**name, "same_as": entry.argument}


def _shown(value: Number) -> Number | str:
    """JSON has no infinities and no NaN."""
    return value if math.isfinite(value) else str(value)
