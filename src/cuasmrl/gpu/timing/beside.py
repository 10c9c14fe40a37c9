"""What orders to engines and words to mbarriers cost, from the numbers of a chip."""

from __future__ import annotations

from cuasmrl.binary.sass import Instruction
from cuasmrl.gpu.emulator.events import copies_in, copies_out, is_eventful
from cuasmrl.gpu.timing.parameters import Parameters
from cuasmrl.gpu.timing.records import SIXTEENTH, Kind, Row, Unit, Way

BESIDE = frozenset(
    ("SYNCS", "ARRIVES", "UTMALDG", "UTMASTG", "UTMAREDG", "UTMACMDFLUSH", "UTMACCTL", "UTMAPF", "UBLKCP",
     "UBLKPF", "UTCHMMA", "UTCIMMA", "UTCQMMA", "UTCBAR", "UTCATOMSWS", "LDTM", "STTM")
)  # fmt: skip
_KILOBYTE = 1024
_REGISTER_BYTES = 128
_TENSOR = frozenset(("UTCHMMA", "UTCIMMA", "UTCQMMA", "UTCBAR", "UTCATOMSWS", "LDTM", "STTM"))


def _tensor_core(i: Instruction, parameters: Parameters) -> dict[Row, int]:
    """Orders to the tensor core beside the warps, and traffic with its memory."""
    row = {Row.UNIT: Unit.NONE, Row.WAY: Way.OTHER, Row.WAR: parameters.cycles("tcgen_operands")}
    if i.opcode in ("LDTM", "STTM"):
        # Every sub-core has a quarter of tensor memory, and moves a register of a warp a cycle.
        moved = next((int(m[1:]) for m in i.modifiers if m[:1] == "x" and m[1:].isdigit()), 1)
        latency = parameters.cycles("tcgen_load") + round(moved * _REGISTER_BYTES / parameters["tcgen_bytes"])
        if i.opcode == "STTM":
            return row | {Row.KIND: Kind.QUEUED, Row.RAW: latency, Row.WAR: row[Row.WAR] + moved}
        return row | {Row.KIND: Kind.QUEUED, Row.RAW: latency}
    if i.opcode == "UTCATOMSWS":
        return row | {Row.KIND: Kind.QUEUED, Row.RAW: parameters.cycles("special_latency")}
    if i.opcode == "UTCBAR":
        return row | {Row.KIND: Kind.COMMIT, Row.RAW: parameters.cycles("mbarrier_arrive")}
    in_cells = any(o.space == "tmem" for o in i.operands[:1])
    forms = ("tcgen_latency_cells",) * 2 if in_cells else ("tcgen_latency", "tcgen_latency_64")
    return row | {
        Row.KIND: Kind.MULTIPLY,
        Row.RAW: parameters.cycles(forms[0]),
        Row.AHEAD: parameters.cycles(forms[1]),
        Row.INTERVAL: round(SIXTEENTH / parameters["tcgen_columns"]),
    }


def needs_sides(i: Instruction) -> bool:
    """Does it need what the state has only for kernels with something beside their warps?"""
    return is_eventful(i) or i.opcode in BESIDE


def beside(i: Instruction, parameters: Parameters) -> dict[Row, int]:
    """Fields of such an instruction; all of them go through the memory queue."""
    if i.opcode in _TENSOR:
        return _tensor_core(i, parameters)
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
