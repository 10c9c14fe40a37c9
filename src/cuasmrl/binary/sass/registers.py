"""Registers as small integers, so that every layer can index and compare them cheaply."""

from enum import StrEnum
from typing import Final


class File(StrEnum):
    R = "R"
    UR = "UR"
    P = "P"
    UP = "UP"
    B = "B"


_BASE: Final = {File.R: 0, File.UR: 256, File.P: 512, File.UP: 528, File.B: 544}
_SIZE: Final = {File.R: 256, File.UR: 256, File.P: 16, File.UP: 16, File.B: 32}
RESOURCES: Final = 576
PREDICATES: Final = 7
"""P0..P6 (and UP0..UP6); the eighth is the constant true."""
BARRIER_REGISTERS: Final = 16
"""B0..B15, which hold where diverged lanes meet."""


def resource(file: File, index: int) -> int:
    if not 0 <= index < _SIZE[file]:
        raise ValueError(f"{file}{index} is not a register")
    return _BASE[file] + index


def file_of(number: int) -> File:
    if number < 256:
        return File.R
    if number < 512:
        return File.UR
    if number < 528:
        return File.P
    return File.UP if number < 544 else File.B


def name_of(number: int) -> str:
    file = file_of(number)
    return f"{file}{number - _BASE[file]}"
