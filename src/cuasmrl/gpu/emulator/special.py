"""Values of the special registers for the blocks of a slab."""

from collections.abc import Callable

import numpy as np

from cuasmrl.gpu.emulator.values import LANES, ZERO, Value, constant
from cuasmrl.gpu.launches.launch import Launch

_LANE = np.arange(LANES, dtype=np.uint32).reshape(1, 1, LANES)
_EQUAL = np.left_shift(np.uint32(1), _LANE)
_BELOW = _EQUAL - np.uint32(1)
_OF_LANES: dict[str, Value] = {
    "SR_LANEID": _LANE,
    "SR_EQMASK": _EQUAL,
    "SR_LTMASK": _BELOW,
    "SR_LEMASK": _BELOW | _EQUAL,
    "SR_GTMASK": ~(_BELOW | _EQUAL),
    "SR_GEMASK": ~_BELOW,
    # Clusters are refused, so every block is alone in its own.
    "SR_CgaCtaId": ZERO,
    "SR_CgaSize": constant(1),
}
_AXES = "XYZ"


class SpecialRegisters:
    """By the name nvdisasm prints, each made when it is first read.

    `blocks` are linear block indices, dealt out to `sms` SMs one by one.
    """

    def __init__(self, launch: Launch, blocks: np.ndarray, warps: int, sms: int) -> None:
        self._launch = launch
        self._blocks = blocks
        self._warps = warps
        self._values: dict[str, Value] = {}
        self._makers: dict[str, Callable[[], Value]] = {
            "SR_WARPID": lambda: np.arange(warps, dtype=np.uint32).reshape(1, warps, 1),
            "SR_SMID": lambda: (np.asarray(blocks) % sms).astype(np.uint32).reshape(-1, 1, 1),
            "SR_VIRTUALSMID": lambda: self["SR_SMID"],
        }

    def __getitem__(self, name: str) -> Value:
        if name not in self._values:
            self._values[name] = self._made(name)
        return self._values[name]

    def _made(self, name: str) -> Value:
        if name in _OF_LANES:
            return _OF_LANES[name]
        if name in self._makers:
            return self._makers[name]()
        what, _, letter = name.partition(".")
        axis = _AXES.index(letter)
        sizes = self._launch.grid if "CTAID" in what else self._launch.block
        if what.startswith("SR_N"):
            return constant(sizes[axis])
        if sizes[axis] == 1:
            return ZERO
        if what == "SR_CTAID":
            return _along(np.asarray(self._blocks, np.uint32).reshape(-1, 1, 1), sizes, axis)
        threads = np.arange(self._warps * LANES, dtype=np.uint32).reshape(1, self._warps, LANES)
        return _along(threads, sizes, axis)


def _along(linear: Value, shape: tuple[int, int, int], axis: int) -> Value:
    x, y = np.uint32(shape[0]), np.uint32(shape[1])
    return (linear % x, linear // x % y, linear // x // y)[axis] if shape[1:] != (1, 1) else linear
