"""Asynchronous copies: what was copied may be read once it has been waited for."""

from dataclasses import replace

import numpy as np
import pytest

from cuasmrl.binary.cubin import Cubin, Kernel
from cuasmrl.gpu.emulator import Emulator, Fault
from tests.gpu.emulator.kernels import Kernels, Load, launch, numbers

CHIPS = ("sm_80", "sm_90", "sm_120")
TOO_EARLY = "the target of an asynchronous copy that nobody has waited for"


@pytest.fixture(scope="module", params=CHIPS)
def copies(request: pytest.FixtureRequest, load: Load) -> Kernels:
    return load("copies", request.param)


def test_four_eight_and_sixteen_bytes(copies: Kernels) -> None:
    x, out = numbers(128), np.zeros(224, np.int32)
    copies.run("sizes", x, out)
    assert (out[:32] == x[31::-1]).all()
    assert (out[32:96] == x[63::-1]).all()
    assert (out[96:] == x[::-1]).all()
    opcodes = {i.opcode for i in copies.emulator("sizes").listing.instructions}
    assert {"LDGSTS", "LDGDEPBAR", "DEPBAR"} <= opcodes


def test_wait_all(copies: Kernels) -> None:
    x, out = numbers(32), np.zeros(32, np.int32)
    copies.run("wait_all", x, out)
    assert (out == x[::-1]).all()


def test_stages(copies: Kernels) -> None:
    x, out = numbers(192).reshape(3, 64), np.zeros((3, 64), np.int32)
    copies.run("stages", x, out, block=64)
    assert (out == x[:, ::-1]).all()


@pytest.mark.parametrize("kernel", ["without_wait", "stage_too_early", "other_warp_does_not_wait"])
def test_reading_too_early(copies: Kernels, kernel: str) -> None:
    with pytest.raises(Fault, match=TOO_EARLY) as caught:
        copies.run(kernel, numbers(192), np.zeros(192, np.int32), block=64)
    assert caught.value.instruction is not None
    assert caught.value.instruction.opcode == "LDS"


def test_zeros_instead_of_what_is_out_of_bounds(copies: Kernels) -> None:
    """Lanes that copy nothing do not even look at their source: only n numbers were passed."""
    n = 20
    x, out = numbers(n, 1, 100), np.full(64, -1, np.int32)
    copies.run("zeros", x, out, np.int32(n), np.int32(2))
    assert (out == np.concatenate([x, np.zeros(64 - n, np.int32)])).all()


def test_zeros_for_all_of_sixteen_bytes(copies: Kernels) -> None:
    x, out = numbers(128, 1, 100), np.full(128, -1, np.int32)
    copies.run("zeros16", x, out, np.int32(16))
    assert (out == x).all()
    copies.run("zeros16", x, out, np.int32(0))
    assert not out.any()


def test_a_source_out_of_bounds(copies: Kernels) -> None:
    with pytest.raises(Fault, match=r"LDGSTS.* thread \(20, 0, 0\): .* 4 bytes past the end of argument 0"):
        copies.run("wait_all", numbers(20), np.zeros(32, np.int32))


def test_a_jump_may_wait_too(copies: Kernels) -> None:
    """The wait is taken from DEPBAR and put into the wait mask of BAR, which parts two segments."""
    cubin = copies.cubin
    kernel = cubin.kernel("wait_all")
    code = copies.listings["wait_all"].instructions
    depbar = next(i for i in code if i.opcode == "DEPBAR")
    bar = next(i for i in code if i.opcode == "BAR")
    nop = next(i for i in code if i.opcode == "NOP")
    scoreboard = next(i.control.write_barrier for i in code if i.opcode == "LDGDEPBAR")
    assert scoreboard is not None
    words = list(kernel.words)
    words[depbar.index] = nop.word
    assert "waited" in _message(cubin, kernel, words)
    waiting = replace(bar.control, wait_mask=bar.control.wait_mask | 1 << scoreboard)
    words[bar.index] = waiting.encode(bar.word)
    assert _message(cubin, kernel, words) == ""


def _message(cubin: Cubin, kernel: Kernel, words: list[bytes]) -> str:
    changed = Cubin.parse(cubin.with_words(kernel, tuple(words), {}).data)
    x, out = numbers(32), np.zeros(32, np.int32)
    try:
        Emulator(changed, kernel.name).run(launch((x, out)))
    except Fault as fault:
        return str(fault)
    assert (out == x[::-1]).all()
    return ""
