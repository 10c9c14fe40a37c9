"""Hand-written instruction streams and when the model issues them."""

import numpy as np

from cuasmrl.binary.sass import Listing
from cuasmrl.gpu.emulator import Header, Trace
from cuasmrl.gpu.emulator.trace import code_digest
from cuasmrl.gpu.timing.model import Model, Result
from cuasmrl.gpu.timing.parameters import load_parameters
from cuasmrl.schedule import Schedule
from tests.assembly import listing

PLAIN = "B------:R-:W-:-:S01"


def stream(*lines: str, arch: int = 86) -> Listing:
    """Instructions with control bits in front; without any, stall 1 and nothing else. Ends with EXIT."""
    full = [line if line.startswith("B") else f"{PLAIN}  {line}" for line in (*lines, "EXIT")]
    return listing("\n".join(full), arch=arch, registers=128)


def model_of(code: Listing, chip: str = "a6000", warps: int = 1, **changes: float) -> Model:
    """A stream that runs straight through, in `warps` warps of one block that begin together; caches hold
    everything.
    """
    header = Header(
        "by_hand",
        code.kernel.arch,
        code_digest(code.kernel.words),
        (1, 1, 1),
        (32 * warps, 1, 1),
        32,
        0,
        warps,
    )
    empty = np.zeros(0, np.int32)
    lanes, small = np.zeros(0, np.uint8), np.zeros(0, np.uint16)
    trace = Trace(
        header, np.zeros(1, np.int64), np.zeros(warps, np.int32), np.array([0, 1]), np.zeros(1, np.int32),
        empty, empty, empty, lanes, small, small, np.zeros(0, np.int64), empty, np.zeros(1, np.int64),
        np.zeros(0, np.int64),
    )  # fmt: skip
    warm = {"fetch_latency": 0.0, "fetch_gap": 0.0, "constant_miss": 0.0, "warp_start": 0.0}
    parameters = load_parameters(chip).with_values(warm | changes)
    return Model(Schedule.original(code), trace, chip, parameters)


def run(code: Listing, chip: str = "a6000", warps: int = 1, **changes: float) -> Result:
    """Replay such a stream once, with a log of every issue."""
    model = model_of(code, chip, warps, **changes)
    return model.simulate(Schedule.original(code), logged=warps * len(code.instructions))


def issues(result: Result, warp: int = 0) -> list[int]:
    """Cycles in which a warp issued its instructions, the first at 0."""
    mine = result.log[result.log[:, 2] == warp]
    return [int(cycle - mine[0, 0]) for cycle in mine[:, 0]]
