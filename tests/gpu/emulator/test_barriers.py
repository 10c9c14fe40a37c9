"""Barriers of a block: everybody waits for everybody, or for a number of threads, or for ever."""

import numpy as np
import pytest

from cuasmrl.binary.cubin import Cubin
from cuasmrl.gpu.emulator import Fault
from cuasmrl.gpu.emulator.barriers import Barriers
from cuasmrl.gpu.emulator.values import Mask
from tests.conftest import AssemblePtx
from tests.gpu.emulator.kernels import Kernels, Load, numbers

CHIPS = ("sm_75", "sm_80", "sm_90", "sm_120")


@pytest.fixture(scope="module", params=CHIPS)
def barriers(request: pytest.FixtureRequest, load: Load) -> Kernels:
    return load("barriers", request.param)


@pytest.mark.parametrize("block", [32, 50, 256])
def test_syncthreads(barriers: Kernels, block: int) -> None:
    x = numbers(3 * block).reshape(3, block)
    out = np.zeros_like(x)
    barriers.run("reversed", x, out, grid=3, block=block)
    assert (out == x[:, ::-1] + 3).all()


def test_blocks_pass_different_numbers_of_barriers(barriers: Kernels) -> None:
    turns, out = numbers(20, 0, 12), np.full(20, -1, np.int32)
    barriers.run("rounds", turns, out, grid=20, block=64)
    assert out.tolist() == [sum(range(n)) for n in turns]


@pytest.mark.parametrize("block", [64, 40])
def test_votes_of_a_block(barriers: Kernels, block: int) -> None:
    x = numbers(4 * block, 4, 90).reshape(4, block)
    x[1, 0], x[2, 7], x[3, :3] = 2, 99, 3
    out = np.zeros((3, 4, block), np.int32)
    barriers.run("votes", x, out, grid=4, block=block)
    assert (out[0] == (x & 1).sum(axis=1, keepdims=True)).all()
    assert (out[1] == (x > 3).all(axis=1, keepdims=True)).all()
    assert (out[2] == (x == 99).any(axis=1, keepdims=True)).all()


def test_threads_that_have_left_are_not_waited_for(barriers: Kernels) -> None:
    x, out = numbers(128, -30, 70), np.full(128, -1, np.int32)
    x[64:96] = -1
    barriers.run("some_have_left", x, out, block=128)
    stayed = x >= 0
    assert (out == np.where(stayed, x[::-1] + 1000 * stayed.sum(), -1)).all()


def test_producers_arrive_and_consumers_wait(barriers: Kernels) -> None:
    x, out = numbers(10 * 64).reshape(10, 64), np.zeros((10, 32), np.int32)
    barriers.run("pipeline", x, out, np.int32(10), block=96)
    assert (out == x[:, :32] - x[:, 32:]).all()


def test_two_barriers_count_at_the_same_time(barriers: Kernels) -> None:
    x, out = numbers(128, 0, 2), np.zeros(128, np.int32)
    x[:64] = np.arange(64) < 5
    barriers.run("counts_of_pairs", x, out, block=128)
    assert (out == np.repeat([5, x[64:].sum()], 64)).all()


def test_a_warp_arrives_half_after_half(barriers: Kernels) -> None:
    out, flag = np.zeros(64, np.int32), np.zeros(1, np.int32)
    barriers.run("half_after_half", out, flag, block=64)
    i = np.arange(32)
    assert (out[32:] == np.where(i < 16, i + 1, 20 * i)).all()


REGISTERS = """
.version 8.8
.target sm_80
.address_size 64
.visible .entry named(.param .u64 out, .param .u32 name, .param .u32 count) {
    .reg .b32 %r<9>; .reg .b64 %d<4>;
    .shared .align 4 .b8 s[256];
    ld.param.u64 %d0, [out]; ld.param.u32 %r0, [name]; ld.param.u32 %r1, [count];
    mov.u32 %r2, %tid.x; shl.b32 %r3, %r2, 2; mov.u32 %r4, s; add.s32 %r5, %r4, %r3;
    st.shared.u32 [%r5], %r2;
    bar.sync %r0, %r1;
    xor.b32 %r6, %r3, 128; add.s32 %r6, %r4, %r6;
    ld.shared.u32 %r7, [%r6];
    bar.sync %r0, 64;
    st.shared.u32 [%r5], %r7;
    bar.sync %r0;
    ld.shared.u32 %r8, [%r6];
    bar.arrive 9, %r1;
    add.s32 %r8, %r8, %r7;
    cvt.u64.u32 %d1, %r3; cvta.to.global.u64 %d2, %d0; add.s64 %d3, %d2, %d1;
    st.global.u32 [%d3], %r8;
    ret;
}
"""


@pytest.mark.parametrize("chip", ["sm_75", "sm_80", "sm_90"])
def test_number_and_count_in_registers(assemble_ptx: AssemblePtx, chip: str) -> None:
    data = assemble_ptx(REGISTERS.replace("sm_80", chip), chip)
    kernels = Kernels(Cubin.parse(data))
    out = np.zeros(64, np.int32)
    kernels.run("named", out, np.int32(7), np.int32(64), block=64)
    assert (out == (np.arange(64) ^ 32) + np.arange(64)).all()
    with pytest.raises(Fault, match="waits for ever at barrier 7: 64 of 64"):
        kernels.run("named", out, np.int32(7), np.int32(96), block=64)


def test_deadlock_names_kernel_block_thread_and_barrier(barriers: Kernels) -> None:
    out = np.zeros(128, np.int32)
    with pytest.raises(Fault) as caught:
        barriers.run("half_of_the_block", out, grid=3, block=128)
    fault = caught.value
    assert (fault.kernel, fault.block, fault.thread) == ("half_of_the_block", (0, 0, 0), (0, 0, 0))
    assert "at barrier 3: 64 of 128 living threads of the block are there; others wait at barrier 4" in str(
        fault
    )
    assert not out.any()


def test_halves_of_a_warp_at_two_barriers(load: Load) -> None:
    """A barrier counts whole warps, so their lanes must come together before they arrive."""
    out, flag = np.zeros(64, np.int32), np.zeros(1, np.int32)
    with pytest.raises(Fault, match="waits for ever at the convergence before"):
        load("barriers", "sm_80").run("half_of_a_warp", out, flag, block=64)


def test_endless_kernel(barriers: Kernels) -> None:
    with pytest.raises(
        Fault, match=r"thread \(0, 0, 0\): does not end within 1,000 instructions; raise the b"
    ):
        barriers.run("endless", np.zeros(1, np.int32), budget=1000)


def test_nobody_is_sent_on_from_an_empty_room() -> None:
    """Blocks wait at two places; those of one place have gone on when the last of the other arrives."""
    shape = (2, 1, 32)
    sent: list[tuple[int, Mask]] = []
    barriers = Barriers(
        shape, lambda index, threads: sent.append((index, threads)), lambda: np.ones(shape, np.bool_)
    )
    half = (np.arange(32) < 16).reshape(1, 1, 32)
    first, second = (np.arange(2) == block for block in range(2))
    barriers.arrive(0, 10, first.reshape(2, 1, 1) & np.ones(shape, np.bool_), None)
    barriers.arrive(0, 20, second.reshape(2, 1, 1) & half, None)
    barriers.arrive(0, 20, second.reshape(2, 1, 1) & ~half, None)
    assert [index for index, _ in sent] == [10, 20]
    assert all(threads.any() for _, threads in sent)
