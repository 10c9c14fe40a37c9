"""What orders to engines and words to mbarriers cost, from the numbers of a chip."""

from __future__ import annotations

from cuasmrl.binary.sass import Instruction
from cuasmrl.gpu.emulator.events import copies_in, copies_out, is_eventful
from cuasmrl.gpu.timing.parameters import Parameters
from cuasmrl.gpu.timing.records import SIXTEENTH, Kind, Row, Unit, Way

BESIDE = frozenset(
    ("SYNCS", "ARRIVES", "UTMALDG", "UTMASTG", "UTMAREDG", "UTMACMDFLUSH", "UTMACCTL", "UTMAPF", "UBLKCP",
     "UBLKPF")
)  # fmt: skip
_KILOBYTE = 1024


def needs_sides(i: Instruction) -> bool:
    """Does it need what the state has only for kernels with something beside their warps?"""
    return is_eventful(i) or i.opcode in BESIDE


def beside(i: Instruction, parameters: Parameters) -> dict[Row, int]:
    """Fields of such an instruction; all of them go through the memory queue."""
    row = {Row.UNIT: Unit.NONE, Row.WAY: Way.OTHER, Row.WAR: parameters.cycles("tma_operands")}
    if i.opcode in ("SYNCS", "ARRIVES"):
        row[Row.WAR] = parameters.cycles("mbarrier_operands")
        if "PHASECHK" in i.modifiers:
            # As a result from beyond the SM: the scoreboard stands for what the wait is for.
            return row | {
                Row.KIND: Kind.PHASE_WAIT,
                Row.WAY: Way.GLOBAL,
                Row.RAW: parameters.cycles("mbarrier_check"),
                Row.INTERVAL: parameters.cycles("mbarrier_wake"),
            }
        arrives = "ARRIVE" in i.modifiers or i.opcode == "ARRIVES"
        kind = Kind.ARRIVE if arrives else Kind.QUEUED
        return row | {Row.KIND: kind, Row.RAW: parameters.cycles("mbarrier_arrive")}
    if copies_in(i) or copies_out(i):
        return row | {
            Row.KIND: Kind.COPY_IN if copies_in(i) else Kind.COPY_OUT,
            Row.RAW: parameters.cycles("tma_start"),
            Row.INTERVAL: round(SIXTEENTH * _KILOBYTE / parameters["tma_bytes"]),
            Row.TURNS: round(SIXTEENTH * parameters["tma_line"]),
        }
    kind = Kind.FLUSH if i.opcode == "UTMACMDFLUSH" else Kind.QUEUED
    return row | {Row.KIND: kind, Row.RAW: row[Row.WAR]}
