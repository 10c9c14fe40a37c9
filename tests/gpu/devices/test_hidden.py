"""Hidden devices: drawn by a secret, strange where they are told to be, and like nobody's chip file."""

import random

import numpy as np
import pytest

from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.devices.hidden import STRANGE, HiddenTimer, Secret
from cuasmrl.gpu.timing.records import Kind, Row, Unit
from cuasmrl.schedule import Board, Schedule
from tests.climbing import kernel


def schedules(count: int) -> list[Schedule]:
    board, rng = Board(kernel().listing), random.Random(0)
    found: list[Schedule] = []
    while len(found) < count:
        board.reset()
        for i in rng.sample(range(len(board.code)), 60):
            others = board.others(i)
            if len(others):
                board.move(i, int(rng.choice(others)))
        found.append(board.schedule())
    return found


def test_the_secret_decides_what_the_device_is() -> None:
    first, again, other = (HiddenTimer(kernel(), Secret(seed)) for seed in (1, 1, 2))
    times = [timer.time(kernel().original) for timer in (first, again, other)]
    assert times[0] == times[1] != times[2]
    assert first.device == "hidden:1"
    numbers = first.whole.parameters
    assert all(number.low <= number.value <= number.high for number in numbers.numbers.values())
    assert sum(numbers[name] != kernel().model.parameters[name] for name in numbers) > 50


def test_a_gain_is_confirmed_on_the_device_itself_first() -> None:
    timer, faster = HiddenTimer(kernel(), Secret(3)), schedules(1)[0]
    gain = timer.confirm(kernel().original, faster)
    assert gain.nominal == gain.members[0]
    whole, seeds = timer.kernel.model, range(501, 509)
    before, after = whole.table(kernel().original), whole.table(faster)
    ratios = [whole.cycles(before, s) / whole.cycles(after, s) for s in seeds]
    assert gain.nominal == pytest.approx(np.mean(ratios) - 1)


@pytest.mark.parametrize("kind", STRANGE)
def test_every_strange_mechanism_changes_what_is_replayed(kind: str) -> None:
    plain, strange = (HiddenTimer(kernel(), Secret(1, kinds)).part for kinds in ((), (kind,)))
    one = schedules(1)[0]
    assert plain.machine != strange.machine or not np.array_equal(plain.table(one), strange.table(one))


@pytest.mark.parametrize("kind", ["products", "reuse", "pipes"])
def test_what_is_strange_about_instructions_is_in_no_range_of_a_chip_file(kind: str) -> None:
    """Whatever the numbers, a model of the chip files makes other records."""
    parameters = HiddenTimer(kernel(), Secret(1)).whole.parameters
    strange = HiddenTimer(kernel(), Secret(1, (kind,))).whole.with_parameters(parameters)
    rows = strange.table(kernel().original).reshape(-1, Row.WIDTH)
    known = kernel().model.with_parameters(parameters).table(kernel().original).reshape(-1, Row.WIDTH)
    match kind:
        case "products":
            assert rows[known[:, Row.KIND] == Kind.TENSOR, Row.HOLD].min() > 1
            assert known[known[:, Row.KIND] == Kind.TENSOR, Row.HOLD].max() == 1
        case "reuse":
            assert known[:, Row.REUSE].any()
            assert not rows[:, Row.REUSE].any()
        case _:
            assert (known[:, Row.UNIT] == Unit.INT).any()
            assert not (rows[:, Row.UNIT] == Unit.INT).any()


def test_chips_around_a_strange_one_are_as_strange() -> None:
    timer = HiddenTimer(kernel(), Secret(1, ("copies", "warps")))
    around = timer.whole.with_parameters(kernel().model.parameters)
    assert around.machine.warp_choice not in kernel().model.parameters.numbers["warp_choice"].choices
    assert around.machine.copy_bytes == kernel().model.machine.copy_bytes // 3


@pytest.mark.parametrize(
    ("device", "said"),
    [
        ("hidden:", "write hidden:7"),
        ("hidden:x", "write hidden:7"),
        ("virtual:a100", "write hidden:7"),
        ("hidden:1+l2+l2", "write hidden:7"),
        ("hidden:1+magic", "choose among warps"),
    ],
)
def test_a_device_that_is_not_understood_is_refused(device: str, said: str) -> None:
    with pytest.raises(CuasmrlError, match=said):
        Secret.parse(device)


def test_a_name_says_what_the_device_is() -> None:
    assert Secret.parse("hidden:12+reuse+l2") == Secret(12, ("reuse", "l2"))
    assert Secret.parse("hidden:12+reuse+l2").device == "hidden:12+reuse+l2"
