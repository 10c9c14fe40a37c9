"""printf and assert in kernels, and the data of a module."""

import pickle

import numpy as np
import pytest

from cuasmrl.gpu.emulator import Fault
from cuasmrl.gpu.emulator.faults import DeviceAssert
from tests.gpu.emulator.kernels import Kernels, Load, numbers

CHIPS = ("sm_75", "sm_80", "sm_90", "sm_120")


@pytest.fixture(scope="module", params=CHIPS)
def calls(request: pytest.FixtureRequest, load: Load) -> Kernels:
    return load("calls", request.param)


def test_printf_writes_the_text_of_each_thread(calls: Kernels, capsys: pytest.CaptureFixture[str]) -> None:
    x = numbers(100, 0, 1000)
    calls.run("prints", x, None, np.int32(70), grid=2, block=50)
    expected = [
        f"{i}: {'odd' if i % 2 else 'even'}|{x[i] / 4:5.2f}|{x[i]:<4x}|{1 << (int(x[i]) & 40)}"
        for i in range(0, 70, 3)
    ]
    assert capsys.readouterr().out.splitlines() == expected


def test_a_warp_prints_call_by_call(calls: Kernels, capsys: pytest.CaptureFixture[str]) -> None:
    """The lanes of a warp in order, then its next call; one warp after the other."""
    calls.run("prints_twice", grid=1, block=34)
    first, second = range(32), range(32, 34)
    words = [f"{letter}{i}" for lanes in (first, second) for letter in "ab" for i in lanes]
    assert capsys.readouterr().out.split() == words


def test_printf_returns_the_number_of_arguments(calls: Kernels) -> None:
    out = np.zeros(32, np.int32)
    calls.run("counts", out)
    assert (out == 2).all()


def test_a_failed_assertion(calls: Kernels, capsys: pytest.CaptureFixture[str]) -> None:
    x, out = np.arange(20, 84, dtype=np.int32), np.zeros(64, np.int32)
    calls.run("checks", x - 40, out, block=64)
    assert (out == x - 40).all()
    with pytest.raises(
        RuntimeError, match="device-side assert triggered: .* Assertion `.*50.*` failed"
    ) as caught:
        calls.run("checks", x, out, block=64)
    error = caught.value
    assert isinstance(error, DeviceAssert)
    assert (error.block, error.thread) == ((0, 0, 0), (30, 0, 0))
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 34
    assert "block: [0,0,0], thread: [63,0,0] Assertion `" in lines[-1]


def test_a_fault_can_be_sent_to_another_process(calls: Kernels) -> None:
    with pytest.raises(DeviceAssert) as caught:
        calls.run("checks", np.full(32, 99, np.int32), np.zeros(32, np.int32))
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value)
    assert again.thread == (0, 0, 0)


def test_a_function_that_nobody_has(calls: Kernels) -> None:
    with pytest.raises(Fault, match="CALL.*: calls malloc, which neither the cubin nor the emulator has"):
        calls.run("allocates", np.zeros(1, np.uint64), block=1)


def test_device_variables_keep_their_values_between_launches(load: Load) -> None:
    kernels = Kernels(load("calls", "sm_80").cubin)
    out = np.zeros(32, np.int32)
    i = np.arange(32) & 3
    for launch in range(3):
        kernels.run("variable", out)
        assert (out == (i + 1) * 100 + launch * 10 + 3).all()


def test_device_variables(calls: Kernels) -> None:
    out = np.zeros(32, np.int32)
    calls.run("constants", out)
    assert (out == 5 + (np.arange(32) & 3)).all()


def test_tables_of_range_reduction(calls: Kernels) -> None:
    x = np.random.default_rng(0).normal(size=32) * 10.0 ** np.arange(32)
    out = np.zeros(32)
    calls.run("range_reduction", x, out)
    np.testing.assert_allclose(out, np.sin(x), rtol=1e-14)


def test_generic_accesses_to_the_stack(calls: Kernels) -> None:
    x, out = numbers(32, 0, 1000), np.zeros(288, np.int32)
    calls.run("stack", x, out)
    mine = x[:, None] + np.arange(8)
    expected = np.zeros((32, 8), np.int64)
    odd = x % 2 == 1
    mine[odd, x[odd] & 7] = -1
    expected[~odd, x[~odd] & 7] = -1
    assert (out[:256].reshape(32, 8) == expected).all()
    assert (out[256:] == mine[:, 1] + mine[:, 7]).all()


def test_traps(calls: Kernels) -> None:
    out = np.zeros(1, np.int32)
    calls.run("traps", out, block=1)
    assert out[0] == 1
    with pytest.raises(Fault, match=r"BPT\.TRAP.*: the kernel executes a trap"):
        calls.run("traps", out, block=1)


def test_time_never_runs_backwards(calls: Kernels) -> None:
    before = 0
    for _ in range(2):
        out = np.zeros((600, 4), np.int64)
        calls.run("times", out, grid=600, block=32)
        assert (out[:, 0] < out[:, 1]).all()
        assert (out[:, 2] < out[:, 3]).all()
        assert out.min() >= before
        before = int(out.max())


def test_blocks_are_dealt_out_to_the_sms(load: Load) -> None:
    out = np.zeros(300, np.int32)
    load("calls", "sm_80").run("places", out, grid=300, block=32)
    assert (out == np.arange(300) % 108).all()
