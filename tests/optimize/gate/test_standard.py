"""What a modelled gain has to reach."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.timing.uncertainty import Gain
from cuasmrl.optimize.gate import Standard


def gain(faster: int, slower: int, median: float = 0.02, nominal: float = 0.02) -> Gain:
    members = (0.01,) * faster + (-0.01,) * slower
    return Gain(nominal, median, -0.01, 0.03, faster / len(members), members)


@pytest.mark.parametrize(
    ("found", "missed"),
    [
        (gain(16, 0), []),
        (gain(14, 2), []),
        (gain(14, 2, median=0.005), []),
        (gain(13, 3), ["faster on 13 of 16 chips, at least 14 are needed"]),
        (gain(16, 0, median=0.0049), ["the median is +0.49 %, at least 0.50 % is needed"]),
        (gain(15, 1, nominal=-0.01), ["it is not faster on the nominal chip"]),
        (gain(42, 6), []),
        (gain(41, 7), ["faster on 41 of 48 chips, at least 42 are needed"]),
    ],
)
def test_a_gain_says_what_it_misses(found: Gain, missed: list[str]) -> None:
    assert Standard().missed(found) == missed


def test_any_gain_above_zero_is_enough_for_whoever_asks_for_no_more() -> None:
    lenient = Standard(min_faster=0, min_gain=0)
    assert lenient.missed(gain(1, 15, median=0.001)) == []
    assert lenient.missed(gain(1, 15, median=0.0)) == ["the median is +0.00 %, more than 0 % is needed"]


@given(st.integers(1, 64), st.data())
def test_a_stricter_standard_never_accepts_more(count: int, data: st.DataObject) -> None:
    found = gain(data.draw(st.integers(0, count)), count - data.draw(st.integers(0, count)) or 1)
    low, high = sorted(data.draw(st.lists(st.floats(0, 1), min_size=2, max_size=2)))
    if not Standard(min_faster=high).missed(found):
        assert not Standard(min_faster=low).missed(found)


@pytest.mark.parametrize(
    ("given_", "said"), [({"min_faster": 1.2}, "--min-faster"), ({"min_gain": -0.1}, "--min-gain")]
)
def test_bad_standards_are_refused(given_: dict[str, float], said: str) -> None:
    with pytest.raises(CuasmrlError, match=said):
        Standard(**given_)
