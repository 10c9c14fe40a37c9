"""Plans get longer while they pay; what the twin promises is compared with what the device says."""

import pytest

from cuasmrl.agents.twin.planning import Plan
from cuasmrl.agents.twin.trust import Trust
from tests.climbing import kernel


def trust() -> Trust:
    return Trust(length=16, longest=64, replays=100, most_replays=800, remembered=4, enough=0.25)


def plan(ran_out: bool | None) -> Plan:
    return Plan(kernel().original, kernel().original, ran_out)


def test_plans_grow_while_they_pay_and_shrink_otherwise() -> None:
    one = trust()
    lengths = []
    for gained in (True, True, True, False, False, False, False, False, False, False):
        one.adapt(gained, [plan(False)])
        lengths.append(one.length)
    assert lengths == [32, 64, 64, 32, 16, 8, 4, 2, 1, 1]
    one.begin_again()
    assert one.length == 16


def test_plans_that_run_out_of_replays_get_more() -> None:
    one = trust()
    replays = []
    for batch in ([True, True], [True, True, False], [True, False], [False, False], [None, None]):
        one.adapt(True, [plan(ran_out) for ran_out in batch])
        replays.append(one.replays)
    assert replays == [200, 400, 400, 200, 200]


@pytest.mark.parametrize(("realised", "is_low"), [(0.01, False), (0.002, True), (-0.05, True)])
def test_trust_is_what_came_of_promises(realised: float, is_low: bool) -> None:
    one = trust()
    one.judge(0.02, realised)
    assert one.value is None
    one.judge(0.02, realised)
    assert one.value == pytest.approx(max(0.0, realised) / 0.02)
    assert one.is_low == is_low


def test_promises_are_forgotten() -> None:
    one = trust()
    for realised in (-1.0, -1.0, 0.01, 0.01, 0.01, 0.01):
        one.judge(0.01, realised)
    assert one.value == pytest.approx(1)
