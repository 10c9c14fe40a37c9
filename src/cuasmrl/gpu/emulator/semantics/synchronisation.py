"""What remains of synchronisation when instructions are executed one at a time."""

from cuasmrl.gpu.emulator.faults import LaneFault
from cuasmrl.gpu.emulator.forms import Form, Step
from cuasmrl.gpu.emulator.semantics.registry import executes
from cuasmrl.gpu.emulator.values import TRUE
from cuasmrl.gpu.emulator.warps import Warps


@executes("MEMBAR", "FENCE", "ERRBAR", "CGAERRBAR", "CCTL", "NANOSLEEP", "PREEXIT", "ACQBULK")
def nothing(form: Form) -> Step:
    """Memory order, cache control and time: every access is complete before the next instruction."""
    form.ignore(*form.modifiers)
    for k in range(len(form.sources)):
        form.operand(k)
    return lambda w: None


@executes("USETMAXREG")
def share_registers(form: Form) -> Step:
    """Registers given back to the block, or taken from it: here every warp has them all."""
    form.ignore("CTAPOOL")
    form.immediate(0)
    if form.choose("DEALLOC", "TRY_ALLOC") == "DEALLOC":
        return lambda w: None
    write = form.result_predicate(0)
    return lambda w: write(w, TRUE) if write is not None else None


@executes("BPT")
def trap(form: Form) -> Step:
    """The kernel gives up."""
    form.choose("TRAP")
    for k in range(len(form.sources)):
        form.operand(k)

    def step(w: Warps) -> None:
        raise LaneFault("the kernel executes a trap", int(w.machine.slab.active(w.active).argmax()))

    return step


@executes("B2R")
def barrier_result(form: Form) -> Step:
    """What the last BAR.RED of the warp gave: a count, or a truth value."""
    if not form.has("RESULT"):
        form.choose("RESULT")
    write, predicate = form.result(), form.result_predicate(0)

    def step(w: Warps) -> None:
        result = w.machine.barriers.result
        write(w, result)
        if predicate is not None:
            predicate(w, result != 0)

    return step
