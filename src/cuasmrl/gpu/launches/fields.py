"""Strict reading of a launch file: an unknown field, type or number is an error that names it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.launches.fills import FILLS, FLOATS, FLOATS_ONLY, INTEGERS, Number, holds
from cuasmrl.gpu.launches.record import FORMAT, Buffer, Bytes, Entry, LaunchRecord, SameAs, Scalar

_SPECIAL = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
_TOP = ("format", "kernel", "grid", "block", "shared_bytes", "cooperative", "cluster", "seed", "arguments")
_FORMS = "dtype and value, dtype and shape and fill, bytes, or same_as"


def parse(data: Any, source: str = "the launch file") -> LaunchRecord:
    """The record of a launch file's content."""
    fields = _object(data, source)
    if fields.get("format") != FORMAT:
        raise CuasmrlError(f"{source}: format is {fields.get('format')!r}, but this version reads {FORMAT}")
    _only(fields, _TOP, source)
    for name in ("grid", "block", "arguments"):
        if name not in fields:
            raise CuasmrlError(f"{source}: the field {name} is missing")
    kernel = fields.get("kernel")
    if not (kernel is None or isinstance(kernel, str)):
        raise CuasmrlError(f"{source}: kernel must be a name, not {kernel!r}")
    cooperative = fields.get("cooperative", False)
    if not isinstance(cooperative, bool):
        raise CuasmrlError(f"{source}: cooperative must be true or false, not {cooperative!r}")
    if not isinstance(fields["arguments"], list):
        raise CuasmrlError(f"{source}: arguments must be a list")
    entries: list[Entry] = []
    for number, entry in enumerate(fields["arguments"]):
        entries.append(_entry(entry, f"{source}, argument {number}", entries))
    return LaunchRecord(
        grid=_dimensions(fields["grid"], f"{source}: grid"),
        block=_dimensions(fields["block"], f"{source}: block"),
        shared_bytes=_count(fields.get("shared_bytes", 0), f"{source}: shared_bytes", 0),
        arguments=tuple(entries),
        kernel=kernel,
        seed=_count(fields.get("seed", 0), f"{source}: seed", 0),
        cooperative=cooperative,
        cluster=_dimensions(fields["cluster"], f"{source}: cluster") if "cluster" in fields else None,
        source=source,
    )


def _entry(data: Any, where: str, before: list[Entry]) -> Entry:
    if data is None:
        return None
    fields = _object(data, where)
    name = fields.get("name", "")
    if not isinstance(name, str):
        raise CuasmrlError(f"{where}: name must be a string, not {name!r}")
    where += f" ({name})" if name else ""
    if "same_as" in fields:
        _only(fields, ("name", "same_as"), where)
        earlier = _count(fields["same_as"], f"{where}: same_as", 0)
        if earlier >= len(before) or not isinstance(before[earlier], Buffer):
            raise CuasmrlError(f"{where}: same_as must name an earlier buffer, which {earlier} is not")
        return SameAs(earlier, name)
    if "bytes" in fields:
        _only(fields, ("name", "bytes"), where)
        return Bytes(_hex(fields["bytes"], where), name)
    if "dtype" not in fields:
        raise CuasmrlError(f"{where}: an argument has {_FORMS}")
    dtype = fields["dtype"]
    if dtype not in INTEGERS + FLOATS:
        known = ", ".join(INTEGERS + FLOATS)
        raise CuasmrlError(f"{where}: dtype {dtype!r} is not known; use one of {known}")
    if "shape" in fields or "fill" in fields:
        return _buffer(fields, dtype, name, where)
    _only(fields, ("name", "dtype", "value"), where)
    if "value" not in fields:
        raise CuasmrlError(f"{where}: an argument has {_FORMS}")
    return Scalar(dtype, _element(fields["value"], dtype, f"{where}: value"), name)


def _buffer(fields: Mapping[str, Any], dtype: str, name: str, where: str) -> Buffer:
    for needed in ("shape", "fill"):
        if needed not in fields:
            raise CuasmrlError(f"{where}: a buffer needs {needed}")
    fill, common = fields["fill"], ("name", "dtype", "shape", "fill")
    shape = fields["shape"]
    if not isinstance(shape, list):
        raise CuasmrlError(f"{where}: shape must be a list of sizes, not {shape!r}")
    sizes = tuple(_count(size, f"{where}: shape", 0) for size in shape)
    if fill == "values":
        _only(fields, (*common, "values"), where)
        return Buffer(dtype, sizes, fill, {}, _values(fields.get("values"), dtype, sizes, where), name)
    if not isinstance(fill, str) or fill not in FILLS:
        raise CuasmrlError(f"{where}: fill {fill!r} is not known; use one of {', '.join([*FILLS, 'values'])}")
    _only(fields, (*common, *FILLS[fill]), where)
    if fill in FLOATS_ONLY and dtype not in FLOATS:
        raise CuasmrlError(f"{where}: fill {fill} makes no {dtype}; use integers or range")
    settings = {}
    for setting, default in FILLS[fill].items():
        given = fields.get(setting, default)
        if given is None:
            raise CuasmrlError(f"{where}: fill {fill} needs {setting}")
        settings[setting] = _number(given, f"{where}: {setting}")
    _check_settings(settings, dtype, sizes, fill, where)
    return Buffer(dtype, sizes, fill, settings, (), name)


def _check_settings(
    settings: Mapping[str, Number], dtype: str, shape: tuple[int, ...], fill: str, where: str
) -> None:
    ends: list[Number] = []
    match fill:
        case "constant":
            ends = [settings["value"]]
        case "uniform" | "integers":
            low, high = settings["low"], settings["high"]
            if not low <= high:
                raise CuasmrlError(f"{where}: low {low} is above high {high}")
            ends = [low, high] if fill == "integers" else [low, high, high - low]
        case "range":
            last = settings["start"] + settings["step"] * max(0, math.prod(shape) - 1)
            ends = [settings["start"], last]
        case "normal":
            ends = [settings["mean"], settings["std"]]
            if not settings["std"] >= 0:
                raise CuasmrlError(f"{where}: std {settings['std']} is below zero")
    whole = fill == "integers" or (fill == "range" and dtype in INTEGERS)
    if whole and not all(isinstance(number, int) for number in settings.values()):
        raise CuasmrlError(f"{where}: fill {fill} of {dtype} needs whole numbers")
    for end in ends:
        if not holds(dtype, end) or (fill != "constant" and not math.isfinite(end)):
            raise CuasmrlError(f"{where}: fill {fill} reaches {end}, which {dtype} does not hold")


def _values(data: Any, dtype: str, shape: tuple[int, ...], where: str) -> tuple[Number, ...]:
    if not isinstance(data, list):
        raise CuasmrlError(f"{where}: fill values needs a list called values")
    if len(data) != math.prod(shape):
        raise CuasmrlError(f"{where}: values has {len(data)} elements, but the shape has {math.prod(shape)}")
    return tuple(_element(value, dtype, f"{where}: values") for value in data)


def _element(data: Any, dtype: str, where: str) -> Number:
    value = int(data) if isinstance(data, bool) and dtype == "bool" else _number(data, where)
    if not holds(dtype, value):
        raise CuasmrlError(f"{where}: {dtype} does not hold {data!r}")
    return value


def _number(data: Any, where: str) -> Number:
    if isinstance(data, str) and data in _SPECIAL:
        return _SPECIAL[data]
    if isinstance(data, bool) or not isinstance(data, int | float):
        raise CuasmrlError(f"{where} must be a number, not {data!r}")
    if isinstance(data, int) and data.bit_length() > 64:
        raise CuasmrlError(f"{where}: {data} has more than 64 bits")
    return data


def _count(data: Any, where: str, least: int) -> int:
    if isinstance(data, bool) or not isinstance(data, int) or data < least:
        raise CuasmrlError(f"{where} must be a whole number from {least} on, not {data!r}")
    return data


def _dimensions(data: Any, where: str) -> tuple[int, int, int]:
    if not isinstance(data, list) or not 1 <= len(data) <= 3:
        raise CuasmrlError(f"{where} must be a list of one to three sizes, not {data!r}")
    sizes = [_count(size, where, 1) for size in data]
    x, y, z = (*sizes, 1, 1)[:3]
    return x, y, z


def _hex(data: Any, where: str) -> bytes:
    try:
        found = bytes.fromhex(data)
    except (TypeError, ValueError):
        found = b""
    if not found:
        raise CuasmrlError(f"{where}: bytes must be hexadecimal digits, two for each byte")
    return found


def _object(data: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(data, dict):
        raise CuasmrlError(f"{where}: a JSON object is needed, not {type(data).__name__}")
    return data


def _only(fields: Mapping[str, Any], known: Iterable[str], where: str) -> None:
    unknown = [name for name in fields if name not in known]
    if unknown:
        raise CuasmrlError(f"{where}: the field {unknown[0]} is not known; there are {', '.join(known)}")
