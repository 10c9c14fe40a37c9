"""Integer arithmetic: sums with carries, products, minima."""

import numpy as np

from cuasmrl.emulator.forms import Form, Step
from cuasmrl.emulator.semantics.registry import executes
from cuasmrl.emulator.values import Value


@executes("IABS")
def absolute(form: Form) -> Step:
    return form.compute(_absolute, form.integer(0))


def _absolute(a: Value) -> Value:
    """|a|; the most negative number stays as it is."""
    return np.abs(a.view(np.int32)).view(np.uint32)
