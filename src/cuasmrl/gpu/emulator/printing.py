"""What `printf` in a kernel makes of its format and of the bytes of its arguments.

CUDA C++ Programming Guide, "Formatted Output": the text is made on the host, by the host's rules for
`%[flags][width][.precision][size]type`. Arguments lie behind one another, each aligned to its size.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable

from cuasmrl.gpu.emulator.faults import UnsupportedError

_SPECIFIER = re.compile(
    r"%(?P<flags>[-+ #0]*)(?P<width>\*|\d*)(?:\.(?P<precision>\*|\d*))?(?P<size>hh|h|ll|l|z|j|t)?(?P<type>.)",
    re.DOTALL,
)
_LONG = ("l", "ll", "z", "j", "t")
_NARROW = {"hh": 8, "h": 16}
_SIGNED, _UNSIGNED, _FLOATS = "di", "ouxX", "eEfFgGaA"

ReadBytes = Callable[[int, int], bytes]
"""So many bytes of the arguments from an offset on."""
ReadText = Callable[[int], str]
"""The text at an address."""


class _Arguments:
    def __init__(self, read: ReadBytes) -> None:
        self._read = read
        self._offset = 0
        self.count = 0

    def take(self, code: str) -> int | float:
        size = struct.calcsize(code)
        self._offset = -(-self._offset // size) * size
        value: int | float = struct.unpack("<" + code, self._read(self._offset, size))[0]
        self._offset += size
        self.count += 1
        return value


def formatted(template: str, arguments: ReadBytes, text_at: ReadText) -> tuple[str, int]:
    """The text, and how many arguments it took."""
    given = _Arguments(arguments)
    return _SPECIFIER.sub(lambda match: _one(match, given, text_at), template), given.count


def _one(match: re.Match[str], given: _Arguments, text_at: ReadText) -> str:
    kind, flags = match["type"], match["flags"]
    if kind == "%":
        return "%"
    width = given.take("i") if match["width"] == "*" else match["width"]
    precision = given.take("i") if match["precision"] == "*" else match["precision"]
    if isinstance(width, int) and width < 0:
        flags, width = flags + "-", -width
    layout = f"{flags}{width}"
    if kind in _FLOATS:
        return _float(kind, layout, precision, float(given.take("d")))
    if kind in _SIGNED or kind in _UNSIGNED:
        return _integer(kind, flags, layout, precision, _whole(match, given))
    if kind == "c":
        return f"%{_plain(layout)}s" % chr(int(given.take("i")) & 0xFF)
    if kind == "s":
        cut = "" if precision is None else f".{precision or 0}"
        return f"%{_plain(layout)}{cut}s" % text_at(int(given.take("Q")))
    if kind == "p":
        address = int(given.take("Q"))
        return f"%{_plain(layout)}s" % (f"{address:#x}" if address else "(nil)")
    raise UnsupportedError(f"printf with {match[0]}")


def _whole(match: re.Match[str], given: _Arguments) -> int:
    signed, size = match["type"] in _SIGNED, match["size"]
    if size in _LONG:
        return int(given.take("q" if signed else "Q"))
    value = int(given.take("i" if signed else "I"))
    if size in _NARROW:
        bits = _NARROW[size]
        value &= (1 << bits) - 1
        if signed and value >> bits - 1:
            value -= 1 << bits
    return value


def _integer(kind: str, flags: str, layout: str, precision: str | int | float | None, value: int) -> str:
    digits = "" if precision is None else f".{precision or 0}"
    if digits:
        layout = _plain(layout, "0")
        if digits == ".0" and value == 0:
            return f"%{_plain(layout)}s" % ("+" if "+" in flags and kind in _SIGNED else "")
    if "#" in flags and kind in _UNSIGNED:
        # Python writes 0o17 and 0x0 where C writes 017 and 0.
        prefix = {"o": "0", "x": "0x", "X": "0X"}.get(kind, "") if value else ""
        body = prefix + f"%{digits}{kind}" % value
        return f"%{_plain(layout)}s" % body if "0" not in flags else _zeros(layout, prefix, body)
    return f"%{_plain(layout, '+ ') if kind in _UNSIGNED else layout}{digits}{kind}" % value


def _zeros(layout: str, prefix: str, body: str) -> str:
    width = int(re.sub(r"^[-+ #0]*", "", layout) or 0)
    return prefix + body[len(prefix) :].rjust(width - len(prefix), "0")


def _float(kind: str, layout: str, precision: str | int | float | None, value: float) -> str:
    digits = "" if precision is None else f".{precision or 0}"
    if math.isnan(value) or math.isinf(value):
        word = "nan" if math.isnan(value) else "inf"
        sign = "-" if math.copysign(1, value) < 0 else "+" if "+" in layout else " " if " " in layout else ""
        text = sign + word
        return f"%{_plain(layout)}s" % (text.upper() if kind.isupper() else text)
    if kind in "aA":
        text = _hexadecimal(value, None if precision is None else int(precision or 0))
        return f"%{_plain(layout)}s" % (text.upper() if kind == "A" else text)
    return f"%{layout}{digits}{kind}" % value


def _hexadecimal(value: float, precision: int | None) -> str:
    """As glibc writes %a: no trailing zeros, and the exponent with its sign."""
    if precision is not None:
        raise UnsupportedError("printf of %a with a precision")
    mantissa, _, exponent = value.hex().partition("p")
    if "." in mantissa:
        mantissa = mantissa.rstrip("0").rstrip(".")
    return f"{mantissa}p{int(exponent):+d}"


def _plain(layout: str, unwanted: str = "+ #0") -> str:
    """A layout without flags that do not apply."""
    flags = re.match(r"[-+ #0]*", layout)
    assert flags is not None
    kept = "".join(flag for flag in flags[0] if flag not in unwanted)
    return kept + layout[flags.end() :]
