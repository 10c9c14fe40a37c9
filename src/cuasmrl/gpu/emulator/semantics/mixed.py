"""Singles and halves in one operation, since sm_100."""

from cuasmrl.gpu.emulator.forms import Form, Step
from cuasmrl.gpu.emulator.semantics.formats import BF16, FP16, half_reader
from cuasmrl.gpu.emulator.semantics.registry import executes
from cuasmrl.gpu.emulator.semantics.single import fused_of, sum_of


@executes("FHADD")
def add_half_to_single(form: Form) -> Step:
    """add.f32.f16 of PTX: the first operand is a half, `.H1` the upper one of its register."""
    kind = BF16 if form.has("BF16") else FP16
    return form.compute(sum_of(form), half_reader(form, 0, kind), form.single(1))


@executes("FHFMA")
def fused_half_and_single(form: Form) -> Step:
    kind = BF16 if form.has("BF16") else FP16
    a, b = half_reader(form, 0, kind), half_reader(form, 1, kind)
    return form.compute(fused_of(form), a, b, form.single(2))
