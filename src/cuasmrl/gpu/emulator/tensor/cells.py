"""Which cell of tensor memory each register of each lane of a warp is moved to or from.

Shapes are those of tcgen05.ld and tcgen05.st (PTX ISA, "Data Movement Shape"); SASS says how many lanes of
tensor memory take part, and leaves the one out in which every lane has its own.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.int64]

_LANE = np.arange(32)
_FIRST, _SECOND = "16dp32bit_t0_t15", "16dp32bit_t16_t31"
SHAPES = (_FIRST, _SECOND, "16dp64bit", "16dp128bit", "16dp256bit")
_PER_REPEAT = {"16dp128bit": 2, "16dp256bit": 4}


@dataclass(frozen=True, eq=False)
class CellLayout:
    """Lane and column of the cell, counted from the address, by register and lane of the warp."""

    rows: int
    """Lanes of tensor memory: 16 or 32."""
    lanes: Numbers
    columns: Numbers
    active: npt.NDArray[np.bool_]
    """Lanes of the warp that take part."""
    halves: bool
    """A register holds the lower halves of two neighbouring columns, of which `columns` is the first."""

    @property
    def registers(self) -> int:
        return len(self.columns)

    @property
    def width(self) -> int:
        """Columns that are touched."""
        return int(self.columns.max()) + (2 if self.halves else 1)


def cell_layout(shape: str, repeats: int, halves: bool) -> CellLayout:
    """`shape` is one of `SHAPES` or empty; ValueError if there is no model of it."""
    register = np.arange(repeats * _PER_REPEAT.get(shape, 1))[:, None]
    active = np.ones(32, np.bool_)
    if halves and shape not in ("", _FIRST, _SECOND):
        raise ValueError(f"moves halves in the shape {shape}, which has no model")
    match shape:
        case "":
            lanes, columns = _LANE + 0 * register, register + 0 * _LANE
        case "16dp32bit_t0_t15" | "16dp32bit_t16_t31":
            active = _LANE < 16 if shape == _FIRST else _LANE >= 16
            lanes, columns = _LANE % 16 + 0 * register, register + 0 * _LANE
        case "16dp64bit":
            lanes, columns = 8 * (_LANE % 2) + _LANE // 4, _LANE // 2 % 2 + 2 * register
        case "16dp128bit":
            lanes, columns = _LANE // 4 + 8 * (register % 2), _LANE % 4 + 4 * (register // 2)
        case "16dp256bit":
            lanes = _LANE // 4 + 8 * (register // 2 % 2)
            columns = 2 * (_LANE % 4) + register % 2 + 8 * (register // 4)
        case _:
            raise ValueError(f"moves tensor memory in the shape {shape}, which has no model")
    lanes, columns = np.broadcast_arrays(lanes, columns)
    return CellLayout(
        rows=16 if shape else 32,
        lanes=lanes.astype(np.int64),
        columns=columns.astype(np.int64) * (2 if halves else 1),
        active=active,
        halves=halves,
    )
