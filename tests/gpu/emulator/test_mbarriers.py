"""Barriers in shared memory: arrivals, bytes, phases, tokens, waiting, and what goes wrong with them."""

import re

import numpy as np
import pytest

from cuasmrl.gpu.emulator import Fault
from cuasmrl.gpu.emulator.machine import Machine
from cuasmrl.gpu.emulator.mbarriers import initial_count
from tests.gpu.emulator.by_hand import general, machine, set_pair

BARRIER = "[UR4+0x100]"
INIT = f"SYNCS.EXCH.64 URZ, {BARRIER}, UR6"
ARRIVE = f"SYNCS.ARRIVE.TRANS64.A1T0 RZ, {BARRIER}, RZ"
EXPECT = f"SYNCS.ARRIVE.TRANS64 RZ, {BARRIER}, R8"
WAIT = f"SYNCS.PHASECHK.TRANS64.TRYWAIT P0, {BARRIER}, R9"
TEST = f"SYNCS.PHASECHK.TRANS64 P0, {BARRIER}, R9"
LANE, WARP = "S2R R0, SR_LANEID", "S2R R1, SR_WARPID"
FIRST_WARP = "ISETP.NE.AND P1, PT, R1, RZ, PT"
ODD = 1 << 31


def word(arrivals: int) -> int:
    """What mbarrier.init stores."""
    lacking = (1 << 20) - arrivals
    return lacking << 1 | lacking << 11 + 32


def run(*lines: str, arrivals: int = 32, warps: int = 1, blocks: int = 1, **registers: int) -> Machine:
    """Registers R8 and R9 are given by name."""
    made = machine(*lines, warps=warps, blocks=blocks)
    set_pair(made, 6, word(arrivals))
    for name, value in registers.items():
        made.registers.general[int(name[1:])] = np.full((1, 1, 1), value, np.uint32)
    made.run()
    return made


@pytest.mark.parametrize("arrivals", [1, 2, 128, 1 << 19, (1 << 20) - 1])
def test_the_word_that_initialises_one(arrivals: int) -> None:
    assert initial_count(word(arrivals)) == arrivals


@pytest.mark.parametrize("bits", [0, 2, word(1) + 1, word(4) ^ 1 << 43, word(4) | 1 << 63, word(4) | 1 << 21])
def test_words_that_are_no_initial_state(bits: int) -> None:
    assert initial_count(bits) is None
    made = machine(INIT, warps=1)
    set_pair(made, 6, bits)
    with pytest.raises(Fault, match=f"initialises an mbarrier with {bits:#x}, which is no count"):
        made.run()


def test_all_lanes_arrive_and_all_go_on() -> None:
    made = run(INIT, ARRIVE, WAIT, "SEL R2, RZ, 0x1, !P0", blocks=3)
    assert (general(made, 2, 1) == 1).all()


def test_a_fresh_barrier_lets_pass_who_waits_for_the_phase_before() -> None:
    """Producers do so in their first round."""
    run(INIT, WAIT, R9=ODD)


def test_whether_a_phase_has_ended() -> None:
    made = run(INIT, TEST, "SEL R2, RZ, 0x1, !P0", ARRIVE, TEST, "SEL R3, RZ, 0x1, !P0")
    assert (general(made, 2, 2)[:, 0, 0] == [0, 1]).all()


def test_warps_wait_for_each_other_whatever_their_order() -> None:
    """Warp 0 waits first, for the one behind it; and the other way round."""
    for waits_for in ("0x0", "0x1"):
        made = run(
            WARP,
            FIRST_WARP,
            f"@!P1 {INIT}",
            "BAR.SYNC 0x0",
            f"ISETP.NE.AND P2, PT, R1, {waits_for}, PT",
            "@P2 BRA `(.L_waits)",
            ARRIVE,
            "MOV R2, 0x5",
            "BRA `(.L_end)",
            ".L_waits:",
            WAIT,
            "MOV R2, 0x7",
            ".L_end:",
            "BAR.SYNC 0x0",
            warps=2,
        )
        found = general(made, 2, 1)[0, :, 0]
        assert sorted(found) == [5, 7]


def test_a_wait_is_one_try() -> None:
    """The loop around it is never taken: so many instructions whoever comes first."""
    lines = (WARP, FIRST_WARP, f"@!P1 {INIT}", "BAR.SYNC 0x0", "@P1 BRA `(.L_arrives)", ".L_again:", WAIT,
             "@!P0 BRA `(.L_again)", "EXIT", ".L_arrives:", *["NOP"] * 40, ARRIVE)  # fmt: skip
    made = run(*lines, warps=2)
    first, second = 4 + 1 + 2 + 1, 4 + 1 + 40 + 2
    assert made.warp_instructions == first + second


def test_phases_follow_each_other() -> None:
    made = run(INIT, ARRIVE, WAIT, ARRIVE, "MOV R9, R10", WAIT, "SEL R2, RZ, 0x1, !P0", R10=ODD)
    assert (general(made, 2, 1) == 1).all()


def test_a_phase_needs_its_bytes_as_well() -> None:
    complete = f"SYNCS.ARRIVE.TRANS64.RED.A0TX RZ, {BARRIER}, R8"
    lines = (INIT, EXPECT, TEST, "SEL R2, RZ, 0x1, !P0", complete, TEST, "SEL R3, RZ, 0x1, !P0")
    made = run(*lines, R8=128)
    assert (general(made, 2, 2)[:, 0, 0] == [0, 1]).all()
    # Bytes may come before they are expected.
    made = run(INIT, complete, TEST, "SEL R2, RZ, 0x1, !P0", EXPECT, TEST, "SEL R3, RZ, 0x1, !P0", R8=128)
    assert (general(made, 2, 2)[:, 0, 0] == [0, 1]).all()


def test_several_arrivals_of_a_lane() -> None:
    run(INIT, f"SYNCS.ARRIVE.TRANS64.ART0 RZ, {BARRIER}, R8", WAIT, arrivals=96, R8=3)


def test_leaving_for_good() -> None:
    """Each phase after an OPTOUT waits for 32 arrivals less."""
    drop = f"SYNCS.ARRIVE.TRANS64.OPTOUT.A1T0 RZ, {BARRIER}, RZ"
    run(INIT, drop, ARRIVE, WAIT, ARRIVE, "MOV R9, R10", WAIT, arrivals=64, R10=ODD)


def test_tokens() -> None:
    """The state before the arrival: parity in the top bit, 2^20 less what is pending below it."""
    first, second = (f"SYNCS.ARRIVE.TRANS64.A1T0 {r}, {BARRIER}, RZ" for r in ("R2", "R4"))
    made = run(INIT, first, ARRIVE, second, "MOV R9, R3", WAIT, arrivals=64)
    (low, high), (_, later) = (general(made, r, 2)[:, 0, 0].tolist() for r in (2, 4))
    assert low | high << 32 == word(64)
    assert later >> 31 == 1
    assert (1 << 20) - (later >> 11 & 0xFFFFF) == 64


def test_one_address_for_each_lane() -> None:
    """A vector register in the address: here the same, or one of two barriers."""
    second = INIT.replace("0x100", "0x108")
    arrive = "SYNCS.ARRIVE.TRANS64.A1T0 RZ, [R2+UR4+0x100], RZ"
    wait = "SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [R2+UR4+0x100], R9"
    run(INIT, second, LANE, "LOP3.LUT R2, R0, 0x8, RZ, 0xc0, !PT", arrive, wait, arrivals=16)


def test_invalidated_and_initialised_anew() -> None:
    gone = f"SYNCS.CCTL.IV {BARRIER}"
    one = ("ISETP.NE.AND P1, PT, R0, RZ, PT",)
    run(LANE, *one, INIT, ARRIVE, WAIT, f"@!P1 {gone}", INIT, ARRIVE, WAIT)
    with pytest.raises(Fault, match="there is no mbarrier at 0x100: nobody has initialised one"):
        run(LANE, *one, INIT, f"@!P1 {gone}", ARRIVE)
    with pytest.raises(Fault, match="initialises the mbarrier at 0x100, which is one already"):
        run(INIT, INIT)


def test_no_barrier() -> None:
    for line in (ARRIVE, WAIT, TEST, f"SYNCS.CCTL.IV {BARRIER}"):
        with pytest.raises(Fault, match="there is no mbarrier at 0x100"):
            run(line)
    with pytest.raises(Fault, match="an mbarrier at 0x104 is not aligned to 8"):
        run(INIT.replace("0x100", "0x104"))
    with pytest.raises(Fault, match="an mbarrier at 0x1000 is out of bounds; 4096 bytes"):
        run(INIT.replace("0x100", "0x1000"))


def test_more_arrivals_than_there_is_room_for() -> None:
    with pytest.raises(Fault, match="beyond the 1 arrivals it waits for, while 4096 bytes of its phase"):
        run(INIT, EXPECT, arrivals=1, R8=128)


def test_a_wait_without_end_says_who_is_missing() -> None:
    with pytest.raises(Fault) as caught:
        run(INIT, WAIT, arrivals=1)
    assert re.search(
        r"waits for ever at phase 0 of the mbarrier at 0x100, made by SYNCS\.EXCH\S+ .* at 0x0000: 1 of 1 "
        r"arrivals are missing; nobody has ever come to it: 32 of 32 living threads",
        str(caught.value),
    )


def test_a_wait_without_end_in_a_later_phase() -> None:
    """Of two who come in the first phase, one comes in the second; bytes are missing too."""
    half = "ISETP.GE.AND P2, PT, R0, 0x10, PT"
    again = f"@!P2 SYNCS.ARRIVE.TRANS64 RZ, {BARRIER}, R8"
    with pytest.raises(Fault) as caught:
        run(LANE, half, INIT, ARRIVE, WAIT, again, "MOV R9, R10", WAIT, R8=64, R10=ODD)
    text = str(caught.value)
    assert "phase 1 of the mbarrier at 0x100" in text
    assert "16 of 32 arrivals and 1024 bytes are missing" in text
    assert "@!P2 SYNCS.ARRIVE.TRANS64 RZ, [UR4+0x100], R8 at 0x0050 came in this phase" in text
    assert "SYNCS.ARRIVE.TRANS64.A1T0 RZ, [UR4+0x100], RZ at 0x0030 came in earlier phases" in text


def test_blocks_have_barriers_of_their_own() -> None:
    """In one of two blocks nobody arrives."""
    with pytest.raises(Fault, match=r"block \(1, 0, 0\).*1 of 1 arrivals are missing"):
        run("S2R R0, SR_CTAID.X", "ISETP.NE.AND P2, PT, R0, RZ, PT", LANE, "ISETP.NE.OR P2, PT, R0, RZ, P2",
            INIT, f"@!P2 {ARRIVE}", WAIT, arrivals=1, blocks=2)  # fmt: skip


def test_registers_given_back_and_taken() -> None:
    made = run(
        "USETMAXREG.DEALLOC.CTAPOOL 0x28",
        "USETMAXREG.TRY_ALLOC.CTAPOOL UP0, 0xe8",
        "USEL UR9, URZ, 0x1, !UP0",
        "MOV R2, UR9",
    )
    assert (general(made, 2, 1) == 1).all()
