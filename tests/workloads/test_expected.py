import numpy as np

from cuasmrl.workloads import Expected


def test_within_the_bound_is_no_failure() -> None:
    expected = Expected(np.array([1.0, 2.0]), np.array([0.1, 0.0]), "example")
    assert expected.failure(np.array([1.05, 2.0], dtype=np.float32)) is None


def test_worst_element_is_named_with_its_reason() -> None:
    expected = Expected(np.zeros((2, 2)), 0.5, "one rounding")
    failure = expected.failure(np.array([[0.0, 1.0], [3.0, 0.0]], dtype=np.float16))
    assert failure is not None
    assert "2 of 4 elements, worst at (1, 0): 3.0 instead of 0.0" in failure
    assert "one rounding" in failure


def test_nan_fails_unless_nothing_else_is_possible() -> None:
    expected = Expected(np.zeros(2), 1e9, "loose")
    assert "1 of 2" in (expected.failure(np.array([0.0, np.nan])) or "")


def test_equal_infinities_agree() -> None:
    assert Expected(np.array([np.inf]), 0.0, "overflow").failure(np.array([np.inf])) is None


def test_wide_integers_are_compared_exactly() -> None:
    value = np.array([2**63 + 1], dtype=np.uint64)
    expected = Expected(value, 0.0, "integers are exact")
    assert expected.failure(value.copy()) is None
    assert expected.failure(value - np.uint64(1)) is not None


def test_shape_is_part_of_the_result() -> None:
    assert "shape (3,) instead of (2,)" in (Expected(np.zeros(2), 0.0, "").failure(np.zeros(3)) or "")
