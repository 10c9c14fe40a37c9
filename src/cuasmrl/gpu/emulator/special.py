"""Values of the special registers for the blocks of a slab."""

import numpy as np

from cuasmrl.gpu.emulator.values import LANES, ZERO, Value, constant
from cuasmrl.gpu.launches.launch import Launch


def special_registers(launch: Launch, blocks: np.ndarray, warps: int, sms: int) -> dict[str, Value]:
    """By the name nvdisasm prints; `blocks` are linear block indices, dealt out to the SMs one by one."""
    lane = np.arange(LANES, dtype=np.uint32).reshape(1, 1, LANES)
    one = np.uint32(1)
    below: Value = ((one << lane) - one).astype(np.uint32)
    equal: Value = (one << lane).astype(np.uint32)
    values = {
        "SR_LANEID": lane,
        "SR_WARPID": np.arange(warps, dtype=np.uint32).reshape(1, warps, 1),
        "SR_EQMASK": equal,
        "SR_LTMASK": below,
        "SR_LEMASK": below | equal,
        "SR_GTMASK": ~(below | equal),
        "SR_GEMASK": ~below,
        # Clusters are refused, so every block is alone in its own.
        "SR_CgaCtaId": ZERO,
        "SR_CgaSize": constant(1),
    }
    place: Value = (np.asarray(blocks) % sms).astype(np.uint32).reshape(-1, 1, 1)
    values |= {"SR_VIRTUALSMID": place, "SR_SMID": place}
    thread = np.arange(warps * LANES, dtype=np.uint32).reshape(1, warps, LANES)
    block = np.asarray(blocks, np.uint32).reshape(-1, 1, 1)
    for index, size, letter in zip(_axes(thread, launch.block), launch.block, "XYZ", strict=True):
        values[f"SR_TID.{letter}"] = ZERO if size == 1 else index
        values[f"SR_NTID.{letter}"] = constant(size)
    for index, size, letter in zip(_axes(block, launch.grid), launch.grid, "XYZ", strict=True):
        values[f"SR_CTAID.{letter}"] = ZERO if size == 1 else index
        values[f"SR_NCTAID.{letter}"] = constant(size)
    return values


def _axes(linear: Value, shape: tuple[int, int, int]) -> tuple[Value, Value, Value]:
    x, y = np.uint32(shape[0]), np.uint32(shape[1])
    return linear % x, linear // x % y, linear // x // y
