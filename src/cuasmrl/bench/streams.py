"""Instruction streams written as text, and what the SM model says of them.

A stream is a line per instruction, control bits in front as `cuasmrl disasm` prints them; without any, an
instruction stalls for one cycle and waits for nothing. Its trace is made by hand: some warps go round the
stream some times, and every access to memory touches what `Memory` says.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from cuasmrl.binary.cubin import Kernel, Section
from cuasmrl.binary.sass import Control, Listing
from cuasmrl.binary.sass.instruction import parse_instruction
from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.emulator import Header, Trace
from cuasmrl.gpu.emulator.trace import LINE_BYTES, SECTOR_BYTES, code_digest
from cuasmrl.gpu.timing.code import is_traced
from cuasmrl.gpu.timing.model import Model, Result
from cuasmrl.gpu.timing.parameters import load_parameters
from cuasmrl.schedule import Schedule, control_flow

_LINE = re.compile(r"(?:B([-0-5]{6}):R([-0-5]):W([-0-5]):([-Y]):S(\d\d)\s+)?(\S.*)")
_REGISTERS = 255
_FAR_APART = 4096
WARM = {
    "fetch_latency": 0.0,
    "fetch_gap": 0.0,
    "constant_miss": 0.0,
    "branch_taken": 0.0,
    "l2_jitter": 0.0,
    "warp_start": 0.0,
}
"""Instructions and constants are cached, rounds follow each other as if unrolled, nobody else uses L2, and
warps begin together, as behind a barrier."""


@dataclass(frozen=True)
class Memory:
    """What every access of a stream touches."""

    passes: int = 1
    """Turns of the banks of shared memory."""
    sectors: int = 0
    """Of global memory."""
    apart: int = 1
    """Sectors from one to the next; 4 puts each into a line of its own."""
    fresh: bool = False
    """Has nobody touched the line before?"""


SHARED = Memory()


def listing(lines: Sequence[str], arch: int) -> Listing:
    """The stream as a kernel: its lines are block 0, and EXIT is block 1, as a jump behind it leads there."""
    parsed = [parse_line(line) for line in (*lines, "EXIT", "BRA `(.L_1)")]
    words = [control.encode(k.to_bytes(4, "little") + bytes(12)) for k, (control, _) in enumerate(parsed)]
    labels = {".L_1": 16 * len(lines)}
    instructions = tuple(
        parse_instruction(k, word, text, arch, _REGISTERS, labels)
        for k, (word, (_, text)) in enumerate(zip(words, parsed, strict=True))
    )
    text = Section(1, ".text.stream", 0, 16 * len(words), 0)
    kernel = Kernel("stream", arch, text, tuple(words), _REGISTERS, 0, (), 0, (), ((0, "stream"),), False)
    return Listing(kernel, instructions)


def run(
    code: Listing,
    chip: str,
    warps: int = 1,
    rounds: int = 1,
    memory: Memory = SHARED,
    changes: Mapping[str, float] = WARM,
) -> Result:
    """Send `warps` warps of one block round the stream, and keep the time of every issue.

    `changes` are numbers of the chip that are different, beside those of `WARM`.
    """
    schedule = Schedule.original(code)
    parameters = load_parameters(chip).with_values({**WARM, **changes})
    model = Model(schedule, _trace(code, warps, rounds, memory), chip, parameters)
    return model.simulate(schedule, logged=warps * rounds * len(code.instructions))


def issues(result: Result, warp: int = 0) -> list[int]:
    """Cycles in which a warp issued its instructions."""
    return [int(cycle) for cycle in result.log[result.log[:, 2] == warp][:, 0]]


def round_cycles(
    lines: Sequence[str],
    chip: str,
    arch: int,
    warps: int,
    memory: Memory = SHARED,
    changes: Mapping[str, float] = WARM,
) -> float:
    """Cycles per round: the difference between two numbers of rounds, so that begin and end fall out."""
    code, few, many = listing(lines, arch), 24, 56
    times = [run(code, chip, warps, rounds, memory, changes).cycles for rounds in (few, many)]
    return (times[1] - times[0]) / (many - few)


def parse_line(line: str) -> tuple[Control, str]:
    """Control bits and text of a line."""
    match = _LINE.fullmatch(line.strip())
    if match is None:
        raise CuasmrlError(f"{line!r} is no instruction with control bits in front.")
    waits, read, write, yields, stall, text = match.groups()
    control = Control(
        stall=int(stall or 1),
        yield_=yields == "Y",
        write_barrier=int(write) if write and write != "-" else None,
        read_barrier=int(read) if read and read != "-" else None,
        wait_mask=sum(1 << int(k) for k in waits or "" if k != "-"),
        reuse=sum(1 << k for k, operand in enumerate(text.split(",")[1:]) if ".reuse" in operand),
    )
    return control, text


def _trace(code: Listing, warps: int, rounds: int, memory: Memory) -> Trace:
    body = control_flow(code)[0]
    traced = [k for k in range(body.start, body.end) if is_traced(code.instructions[k])]
    warp, position, instruction = (
        part.reshape(-1).astype(np.int32)
        for part in np.meshgrid(np.arange(warps), np.arange(rounds), np.array(traced, int), indexing="ij")
    )
    count = len(warp)
    sectors = memory.apart * np.arange(memory.sectors, dtype=np.int64)
    lines = len(np.unique(sectors // (LINE_BYTES // SECTOR_BYTES)))
    base = np.full(count, -1 if memory.sectors == 0 else 0, np.int64)
    if memory.fresh:
        base = np.arange(count, dtype=np.int64) * _FAR_APART
    digest = code_digest(code.kernel.words)
    header = Header("stream", code.kernel.arch, digest, (1, 1, 1), (32 * warps, 1, 1), 32, 0, warps)
    return Trace(
        header,
        blocks=np.zeros(1, np.int64),
        path_of_warp=np.zeros(warps, np.int32),
        path_start=np.array([0, rounds + 1]),
        path_blocks=np.array([0] * rounds + [1], np.int32),
        access_warp=warp,
        access_position=position,
        access_instruction=instruction,
        access_lanes=np.full(count, 32, np.uint8),
        access_lines=np.full(count, lines, np.uint8),
        access_passes=np.full(count, memory.passes, np.uint8),
        access_base=base,
        access_pattern=np.zeros(count, np.int32),
        pattern_start=np.array([0, memory.sectors]),
        pattern_sectors=sectors,
    )
