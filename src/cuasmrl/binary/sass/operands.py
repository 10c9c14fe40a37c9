"""Operands as nvdisasm prints them: registers, constants, addresses, immediates, labels."""

import re
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache

from cuasmrl.binary.sass.registers import File, resource


class Kind(StrEnum):
    REGISTER = "register"
    CONSTANT = "constant"
    ADDRESS = "address"
    IMMEDIATE = "immediate"
    SPECIAL = "special register"
    SCOREBOARD = "scoreboard"
    BARRIER_SET = "scoreboard set"
    ALL_PREDICATES = "all predicates"
    LABEL = "label"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Register:
    """A register as written; `index` is None for RZ, URZ, PT and UPT."""

    file: File
    index: int | None
    suffixes: tuple[str, ...] = ()

    def resources(self, width: int = 1) -> tuple[int, ...]:
        if self.index is None:
            return ()
        return tuple(resource(self.file, self.index + k) for k in range(width))


@dataclass(frozen=True, slots=True)
class Operand:
    text: str
    kind: Kind
    register: Register | None = None
    """The register itself, or the base register of an address or constant."""
    uniform: Register | None = None
    """The uniform register added to an address."""
    descriptor: Register | None = None
    """The uniform register in `desc[..]`, or in `cx[..]`."""
    space: str = ""
    """What stands before the brackets: `desc`, `gdesc`, `tmem`, `idesc`, `c`, `cx`."""
    bank: int | None = None
    offset: int = 0
    value: int | float | None = None
    label: str | None = None
    negated: bool = False
    absolute: bool = False
    inverted: bool = False
    suffixes: tuple[str, ...] = field(default=())

    @property
    def reused(self) -> bool:
        return "reuse" in self.suffixes

    @property
    def is_predicate(self) -> bool:
        register = self.register if self.kind is Kind.REGISTER else None
        return register is not None and register.file in (File.P, File.UP)

    def has(self, suffix: str) -> bool:
        return suffix in self.suffixes


_REGISTER = re.compile(r"(UR|UP|R|P|B)(\d+|Z|T)")
_PREFIXED = re.compile(
    r"(?P<sign>[-+~!]*)(?P<abs>\|?)(?P<body>[A-Z]+\d*)(?P<inner>(?:\.\w+)*)\|?(?P<outer>(?:\.\w+)*)$"
)
_BRACKETS = re.compile(
    r"(?P<sign>[-~]?\|?)(?P<space>[a-z]*)(?P<groups>\[[^\]]*\](?: ?\[[^\]]*\])*)\|?(?P<suffix>(?:\.\w+)*)$"
)
_GROUP = re.compile(r"\[([^\]]*)\]")
_INTEGER = re.compile(r"-?(0x[0-9a-f]+|\d+)$")
_FLOAT = re.compile(r"[-+]?(\d+\.?\d*(e[-+]?\d+)?|INF|QNAN|SNAN)( \.?\w*)?$")
_LABEL = re.compile(r"`\((.*)\)$")


def _register(text: str, suffixes: tuple[str, ...] = ()) -> Register | None:
    match = _REGISTER.fullmatch(text)
    if match is None:
        return None
    file = File(match[1])
    if match[2] == ("T" if file in (File.P, File.UP) else "Z"):
        return Register(file, None, suffixes)
    return Register(file, int(match[2]), suffixes) if match[2].isdigit() else None


def _suffixes(text: str) -> tuple[str, ...]:
    return tuple(text.split(".")[1:])


@lru_cache(maxsize=1 << 14)
def parse_operand(text: str) -> Operand:
    if match := _LABEL.match(text):
        return Operand(text, Kind.LABEL, label=match[1])
    if text.startswith("SR"):
        return Operand(text, Kind.SPECIAL)
    if text in ("PR", "UPR"):
        return Operand(text, Kind.ALL_PREDICATES)
    if match := re.fullmatch(r"SB(\d)", text):
        return Operand(text, Kind.SCOREBOARD, value=int(match[1]))
    if text.startswith("{"):
        return Operand(text, Kind.BARRIER_SET)
    if "[" in text:
        match = _BRACKETS.match(text)
        return _bracketed(text, match) if match else Operand(text, Kind.OTHER)
    if match := _PREFIXED.match(text):
        suffixes = _suffixes(match["inner"]) + _suffixes(match["outer"])
        register = _register(match["body"], suffixes)
        if register is not None:
            return Operand(
                text,
                Kind.REGISTER,
                register,
                negated="-" in match["sign"],
                absolute=bool(match["abs"]),
                inverted="~" in match["sign"] or "!" in match["sign"],
                suffixes=suffixes,
            )
    if _INTEGER.match(text):
        return Operand(text, Kind.IMMEDIATE, value=int(text, 0))
    if _FLOAT.match(text):
        return Operand(text, Kind.IMMEDIATE, value=_float(text))
    return Operand(text, Kind.OTHER)


def _float(text: str) -> float:
    number = (
        text.split(" ", maxsplit=1)[0].replace("QNAN", "nan").replace("SNAN", "nan").replace("INF", "inf")
    )
    return float(number)


def _bracketed(text: str, match: re.Match[str]) -> Operand:
    groups = _GROUP.findall(match["groups"])
    space = match["space"]
    address = _address(groups[-1])
    if address is None or len(groups) > 2:
        return Operand(text, Kind.OTHER)
    descriptor, bank = None, None
    if len(groups) == 2:
        if _INTEGER.match(groups[0]):
            bank = int(groups[0], 0)
        elif (descriptor := _register(groups[0])) is None:
            return Operand(text, Kind.OTHER)
    base, uniform, offset = address
    return Operand(
        text,
        Kind.CONSTANT if space in ("c", "cx") else Kind.ADDRESS,
        register=base,
        uniform=uniform,
        descriptor=descriptor,
        space=space,
        bank=bank,
        offset=offset,
        negated="-" in match["sign"],
        absolute="|" in match["sign"],
        inverted="~" in match["sign"],
        suffixes=_suffixes(match["suffix"]),
    )


def _address(text: str) -> tuple[Register | None, Register | None, int] | None:
    """A register, a uniform register and a number, each at most once; None for anything else."""
    base, uniform, offset = None, None, None
    for term in re.findall(r"[-+]?[^-+]+", text):
        sign, body = (-1 if term[0] == "-" else 1), term.strip("+- ")
        head, *suffixes = body.split(".")
        register = _register(head, tuple(suffixes))
        if register is None and offset is None and _INTEGER.match(body):
            offset = sign * int(body, 0)
        elif register is not None and register.file is File.UR and uniform is None:
            uniform = register
        elif register is not None and register.file is File.R and base is None:
            base = register
        else:
            return None
    return base, uniform, offset or 0


def split_operands(text: str) -> list[str]:
    """Split at commas that stand outside brackets and braces."""
    parts, depth, start = [], 0, 0
    for i, char in enumerate(text):
        if char in "[{(":
            depth += 1
        elif char in "]})":
            depth -= 1
        elif char == "," and depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
    last = text[start:].strip()
    return [*parts, last] if last else parts
