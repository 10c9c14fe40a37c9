"""Bulk copies in compiled code: rings of buffers, warps with parts of their own, waits that are left out."""

import numpy as np
import pytest

from cuasmrl.gpu.emulator import Fault
from tests.gpu.emulator.kernels import Kernels, Load, numbers


@pytest.fixture(scope="module", params=["sm_90", "sm_100", "sm_120"])
def bulk(request: pytest.FixtureRequest, load: Load) -> Kernels:
    return load("bulk", request.param)


def test_one_thread_copies_and_all_wait(bulk: Kernels) -> None:
    x, out = numbers(512), np.zeros(512, np.int32)
    bulk.run("copies", x, out, np.int32(1), grid=4, block=128)
    assert np.array_equal(out, x.reshape(-1, 2)[:, ::-1].reshape(-1))
    with pytest.raises(Fault, match="target of a bulk copy whose mbarrier nobody has waited for"):
        bulk.run("copies", x, out, np.int32(0), grid=4, block=128)


def test_a_ring_of_buffers(bulk: Kernels) -> None:
    rounds = 11
    x, out = numbers(96 * rounds, 0, 3).reshape(rounds, 96), np.zeros(96, np.int32)
    bulk.run("ring", x, out, np.int32(rounds), np.int32(rounds), block=128)
    wanted = np.zeros(96, np.int32)
    for k in range(rounds):
        wanted = 3 * wanted + x[k, ::-1]
    assert np.array_equal(out, wanted)


def test_a_buffer_that_is_never_released(bulk: Kernels) -> None:
    """The producer waits for the consumers, who have stopped to arrive: both sides are named."""
    x, out = numbers(96 * 11), np.zeros(96, np.int32)
    with pytest.raises(Fault) as caught:
        bulk.run("ring", x, out, np.int32(11), np.int32(4), block=128)
    text = str(caught.value)
    assert "waits for ever at phase" in text
    assert "96 of 96 arrivals are missing" in text
    assert "came in earlier phases and not in this one" in text


def test_out_of_shared_memory(bulk: Kernels) -> None:
    out = np.zeros(64, np.int32)
    bulk.run("back", out, np.int32(1))
    assert np.array_equal(out[:32], np.arange(32))
    assert (out[32:] == -1).all()
    with pytest.raises(Fault, match=r"which .*UBLKCP\.G\.S .* still reads, since nobody has waited for it"):
        bulk.run("back", out, np.int32(0))


def test_copies_of_threads_that_a_barrier_is_told_of(bulk: Kernels) -> None:
    x, out = numbers(64), np.zeros(64, np.int32)
    bulk.run("told", x, out, np.int32(1), block=64)
    assert np.array_equal(out, x[::-1])
    out[:] = 0
    bulk.run("told_more", x, out, block=64)
    assert np.array_equal(out, x[::-1])
    with pytest.raises(Fault, match="target of an asynchronous copy that nobody has waited for"):
        bulk.run("told", x, out, np.int32(0), block=64)
