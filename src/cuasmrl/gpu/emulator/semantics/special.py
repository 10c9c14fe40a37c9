"""Special registers: who and where am I, what was launched, and what time is it."""

from collections.abc import Callable

from cuasmrl.binary.sass import Kind
from cuasmrl.gpu.emulator.faults import UnsupportedError
from cuasmrl.gpu.emulator.forms import Form, Step
from cuasmrl.gpu.emulator.semantics.registry import executes
from cuasmrl.gpu.emulator.values import ZERO, Value, constant
from cuasmrl.gpu.emulator.warps import Warps


@executes("S2R", "S2UR", "CS2R", "CS2UR")
def read_special(form: Form) -> Step:
    form.ignore("32")
    operand = form.operand(0)
    if operand.kind is not Kind.SPECIAL:
        raise UnsupportedError(f"expects a special register instead of {operand.text}")
    if operand.text in _COUNTERS:
        return _read_counter(form)
    read = _reader(operand.text)
    writes = form.result_words(2 if form.opcode.startswith("CS") and "32" not in form.modifiers else 1)
    uniform = form.opcode.endswith("UR")

    def step(w: Warps) -> None:
        value = read(w)
        if uniform and value.shape[2] != 1:
            # A warp reads one value; lanes of one warp differ only in registers that S2UR is not used for.
            value = value[:, :, :1]
        writes[0](w, value)
        for write in writes[1:]:
            write(w, ZERO)

    return step


def _read_counter(form: Form) -> Step:
    """Time: it passes by one with each instruction, and never runs backwards. A pair has both halves."""
    shift, index = _COUNTERS[form.operand(0).text], form.instruction.index
    wide = form.opcode.startswith("CS") and not form.has("32")
    writes = form.result_words(2 if wide else 1)

    def step(w: Warps) -> None:
        time = w.machine.time(index) >> shift
        for k, write in enumerate(writes):
            write(w, constant(time >> 32 * k))

    return step


def _reader(name: str) -> Callable[[Warps], Value]:
    if name == "SRZ":
        return lambda w: ZERO
    if name not in KNOWN:
        raise UnsupportedError(f"special register {name}")
    return lambda w: w.machine.special[name]


_COUNTERS = {"SR_CLOCKLO": 0, "SR_CLOCKHI": 32, "SR_GLOBALTIMERLO": 0, "SR_GLOBALTIMERHI": 32}
"""Bits below those that a register begins with."""
KNOWN = frozenset((
    "SR_TID.X", "SR_TID.Y", "SR_TID.Z", "SR_CTAID.X", "SR_CTAID.Y", "SR_CTAID.Z", "SR_LANEID", "SR_WARPID",
    "SR_NTID.X", "SR_NTID.Y", "SR_NTID.Z", "SR_NCTAID.X", "SR_NCTAID.Y", "SR_NCTAID.Z", "SR_EQMASK",
    "SR_LTMASK", "SR_LEMASK", "SR_GTMASK", "SR_GEMASK", "SR_CgaCtaId", "SR_CgaSize",
    "SR_VIRTUALSMID", "SR_SMID",
))  # fmt: skip
