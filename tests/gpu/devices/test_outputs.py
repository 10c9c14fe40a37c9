"""Outputs of candidates against those of the original, which may differ from launch to launch itself."""

import numpy as np
import pytest

from cuasmrl.gpu.devices.driver import Bytes
from cuasmrl.gpu.devices.outputs import UNSTEADY_RUNS, Likeness, reference

RNG = np.random.default_rng(1)
EXACT = RNG.normal(0, 10, 4000)


def run(element: str = "float32", error: float = 1e-4, shift: float = 0.0) -> Bytes:
    """Sums in some order: each is off by a little."""
    values = (EXACT + error * RNG.standard_normal(EXACT.shape) + shift).astype(np.float32)
    if element == "bfloat16":
        return np.ascontiguousarray((values.view(np.uint32) >> 16).astype(np.uint16)).view(np.uint8)
    return values.astype(element).view(np.uint8)


def runs(count: int = UNSTEADY_RUNS, **how: float) -> list[Bytes]:
    return [run(**how) for _ in range(count)]  # type: ignore[arg-type]


def test_the_same_bits_each_time() -> None:
    one = run()
    held = reference([one, one.copy()], "float32")
    assert held.likeness is Likeness.BITS
    assert held.difference(one) is None
    assert "differs in" in (held.difference(run()) or "")


@pytest.mark.parametrize("element", ["float16", "float32", "float64", "bfloat16"])
def test_sums_in_any_order(element: str) -> None:
    error = 0.1 if element in ("float16", "bfloat16") else 1e-4
    held = reference([run(element, error) for _ in range(UNSTEADY_RUNS)], element)
    assert held.likeness is Likeness.BOUNDS
    assert all(held.difference(run(element, error)) is None for _ in range(20))


def test_one_element_that_is_far_off() -> None:
    held = reference(runs(), "float32")
    wrong = run()
    wrong.view(np.float32)[1234] += 0.01
    assert held.difference(wrong) == "differs in element 1234 by more than runs of the original do"
    wrong.view(np.float32)[1234] = np.nan
    assert "element 1234" in (held.difference(wrong) or "")


def test_many_elements_that_are_off_by_little() -> None:
    # Each of them is within the tolerance, but so many of them are beyond what the runs have shown.
    held = reference(runs(), "float32")
    assert "elements beyond the bounds of 12 runs" in (held.difference(run(shift=2e-4)) or "")


def test_elements_that_every_run_has_alike_must_stay_so() -> None:
    made = runs()
    for one in made:
        one.view(np.float32)[100:] = 7.0
    held = reference(made, "float32")
    good, wrong = (made[0].copy() for _ in range(2))
    wrong.view(np.float32)[2000] = 7.0001
    assert held.difference(good) is None
    assert held.difference(wrong) is not None


def test_not_a_number_everywhere_is_the_same() -> None:
    made = runs()
    for one in made:
        one.view(np.float32)[5] = np.nan
    held = reference(made, "float32")
    assert held.difference(made[3]) is None
    assert "element 5" in (held.difference(run()) or "")


def test_the_same_values_in_any_order() -> None:
    values = RNG.integers(0, 1000, 500, dtype=np.int32)
    held = reference([RNG.permutation(values).view(np.uint8) for _ in range(4)], "int32")
    assert held.likeness is Likeness.ORDER
    assert held.difference(RNG.permutation(values).view(np.uint8)) is None
    values[0] += 1
    assert held.difference(values.view(np.uint8)) == "holds other values, whatever their order"


@pytest.mark.parametrize("element", ["int32", "bytes"])
def test_what_has_nothing_in_common_is_not_compared(element: str) -> None:
    held = reference([RNG.integers(0, 256, 64, dtype=np.uint8) for _ in range(4)], element)
    assert held.likeness is Likeness.NONE
    assert held.difference(np.zeros(64, np.uint8)) is None
