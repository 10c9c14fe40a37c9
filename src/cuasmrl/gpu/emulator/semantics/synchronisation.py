"""What remains of synchronisation when instructions are executed one at a time."""

from cuasmrl.gpu.emulator.faults import LaneFault
from cuasmrl.gpu.emulator.forms import Form, Step
from cuasmrl.gpu.emulator.semantics.registry import executes
from cuasmrl.gpu.emulator.values import TRUE
from cuasmrl.gpu.emulator.warps import Warps


@executes("FENCE")
def fence(form: Form) -> Step:
    """Between proxies, which are one here; .VIEW.ASYNC.T waits for the warp's stores to tensor memory."""
    form.ignore(*form.modifiers)
    if form.modifiers != ("VIEW", "ASYNC", "T"):
        return lambda w: None

    def wait_for_stores(w: Warps) -> None:
        if w.machine.tensor_memory is not None:
            w.machine.tensor_memory.fence(w)

    return wait_for_stores


@executes("MEMBAR", "ERRBAR", "CGAERRBAR", "CCTL", "NANOSLEEP", "PREEXIT", "ACQBULK")
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
    """The kernel gives up, mostly in a function whose name says why."""
    form.choose("TRAP")
    for k in range(len(form.sources)):
        form.operand(k)
    before = [(offset, name) for name, offset in form.labels.items() if offset <= form.instruction.address]
    where = f" in {max(before)[1]}" if before else ""

    def step(w: Warps) -> None:
        raise LaneFault(f"the kernel executes a trap{where}", int(w.machine.slab.active(w.active).argmax()))

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
