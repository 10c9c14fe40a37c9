"""Threads that wait for others by looking at memory again and again."""

import numpy as np
import pytest

from cuasmrl.gpu.emulator import Fault
from tests.gpu.emulator.kernels import Kernels, Load

CHIPS = ("sm_75", "sm_80", "sm_90", "sm_120")


@pytest.fixture(scope="module", params=CHIPS)
def locks(request: pytest.FixtureRequest, load: Load) -> Kernels:
    return load("locks", request.param)


def take_turns(locks: Kernels, name: str, grid: int, block: int) -> tuple[int, int]:
    lock, counter = np.zeros(1, np.int32), np.zeros(1, np.int32)
    locks.run(name, lock, counter, grid=grid, block=block)
    return int(lock[0]), int(counter[0])


def test_a_lock_between_warps_and_blocks(locks: Kernels) -> None:
    assert take_turns(locks, "warps_take_turns", grid=5, block=96) == (0, 15)


def test_a_lock_between_lanes(locks: Kernels) -> None:
    assert take_turns(locks, "lanes_take_turns", grid=2, block=40) == (0, 80)


def test_a_lock_between_lanes_that_spin_in_a_loop_of_its_own(locks: Kernels) -> None:
    """Needs lanes that go on independently, as they do since Volta."""
    assert take_turns(locks, "naive_lanes", grid=1, block=6) == (0, 6)


def test_waiting_for_a_later_block(locks: Kernels) -> None:
    flag, out = np.zeros(1, np.int32), np.zeros(32, np.int32)
    locks.run("wait_for_a_later_block", flag, out, grid=2)
    assert (out == 5).all()


def test_waiting_for_a_block_that_is_not_executed(load: Load) -> None:
    flag, out = np.zeros(1, np.int32), np.zeros(32, np.int32)
    with pytest.raises(Fault, match="does not end within 5,000 instructions; raise the budget"):
        load("locks", "sm_80").run("wait_for_a_later_block", flag, out, grid=2, blocks=[0], budget=5000)
