"""Mechanisms of the SM on streams whose cycles can be counted by hand."""

from itertools import pairwise

import numpy as np
import pytest

from cuasmrl.bench.streams import WARM, Memory, issues, listing, round_cycles, run
from cuasmrl.gpu.chips import chip
from cuasmrl.gpu.emulator import Header
from cuasmrl.gpu.timing import L2, load_parameters
from cuasmrl.gpu.timing.machine import Machine, machine_of
from cuasmrl.gpu.timing.memory import accept, copy_turns, fill, tag_turns, take_port
from cuasmrl.gpu.timing.memory_system import share_of
from cuasmrl.gpu.timing.records import FAR, PORT_RING, PORT_SPAN, SIXTEENTH, Access, Choice, Core, Sm

CHAIN = "B0-----:R-:W0:-:S02 {} R2, [R2.64]"
LOADS = [f"B{'-' * k}{k}{'-' * (5 - k)}:R-:W{k}:-:S01 LDG.E R{32 + 8 * k}, [R2.64]" for k in range(6)]
POLICIES = [float(choice) for choice in Choice if choice is not Choice.NEXT]


def gaps(cycles: list[int]) -> list[int]:
    return [b - a for a, b in pairwise(cycles)]


@pytest.mark.parametrize(
    ("chip", "arch", "memory", "cycles"),
    [
        # The SM takes over one in two cycles, or in each.
        ("a6000", 86, Memory(sectors=4), 2),
        ("a100", 80, Memory(sectors=4), 1),
        # Banks: as many turns as lanes meet in one.
        ("a6000", 86, Memory(passes=4, sectors=4), 4),
        ("a100", 80, Memory(passes=16, sectors=16), 16),
        # Tags: one turn for four lines side by side, or a quarter of the lines and 1.1.
        ("a100", 80, Memory(sectors=32, apart=4), 8),
        ("a100", 80, Memory(sectors=12, apart=512), 12 / 4 + 1.1),
        # The largest of the three.
        ("a100", 80, Memory(passes=6, sectors=12, apart=512), 6),
    ],
)
def test_a_load_takes_the_largest_of_floor_banks_and_tags(
    chip: str, arch: int, memory: Memory, cycles: float
) -> None:
    assert round_cycles(LOADS, chip, arch, 32, memory) / (6 * 32) == pytest.approx(cycles, rel=0.03)


@pytest.mark.parametrize(
    ("opcode", "expected"),
    [
        ("LDG.E", [205, 32, 32]),
        ("LDG.E.CONSTANT", [205, 32, 32]),
        ("LDG.E.STRONG.SM", [205, 32, 32]),
        ("LDG.E.STRONG.GPU", [205, 205, 205]),
        ("LDG.E.STRONG.SYS", [205, 205, 205]),
    ],
)
def test_what_others_have_to_see_goes_past_l1(opcode: str, expected: list[int]) -> None:
    cycles = issues(run(listing([CHAIN.format(opcode)], 80), "a100", rounds=4, memory=Memory(sectors=1)))
    assert gaps(cycles[:4]) == expected


def test_atomics_go_past_l1_and_leave_nothing_there() -> None:
    atomic = "B0-----:R-:W0:-:S02 ATOMG.E.ADD.STRONG.GPU PT, R2, [R2.64], R4"
    load = "B0-----:R-:W0:-:S02 LDG.E R2, [R2.64]"
    code = listing([atomic, load, "B0-----:R-:W-:-:S01 NOP"], 80)
    assert gaps(issues(run(code, "a100", memory=Memory(sectors=1)))[:3]) == [205, 205]


def test_local_memory_stays_in_l1() -> None:
    wait = "B------:R-:W-:-:S15 NOP"
    load = ["B------:R-:W0:-:S02 {} R6, [R2]", "B0-----:R-:W-:-:S01 NOP"]
    for store, opcode, expected in (("STL", "LDL", 32), ("STG.E", "LDG.E", 205)):
        place = "[R2]" if store == "STL" else "[R2.64]"
        lines = [f"{store} {place}, R4", *[wait] * 4, *(line.format(opcode) for line in load)]
        lines = [line.replace("[R2]", place) for line in lines]
        cycles = issues(run(listing(lines, 80), "a100", memory=Memory(sectors=4)))
        assert cycles[6] - cycles[5] == expected


@pytest.mark.parametrize(
    ("chip", "arch", "cycles"), [("a100", 80, 4), ("rtx4090", 89, 64), ("a6000", 86, 64)]
)
def test_one_fp64_pipe_for_all_sub_cores(chip: str, arch: int, cycles: int) -> None:
    """Four warps, one on each sub-core: side by side, or 16 cycles one after the other."""
    lines = [f"DFMA R{20 + 2 * k}, R4, R6, R8" for k in range(4)]
    assert round_cycles(lines, chip, arch, 4) / len(lines) == pytest.approx(cycles, rel=0.01)


@pytest.mark.parametrize(
    ("chip", "arch", "product", "interval"),
    [
        ("a100", 80, "HMMA.SP.16816.F32 R{0}, R8, R16, R{0}, R24, 0x0", 6.15),
        ("a100", 80, "HMMA.SP.16832.F32 R{0}, R8, R16, R{0}, R24, 0x0", 8.15),
        ("a6000", 86, "HMMA.16816.F32 R{0}, R8, R16, R{0}", 16),
        ("rtx3090", 86, "HMMA.16816.F32 R{0}, R8, R16, R{0}", 32),
        ("a6000", 86, "HMMA.1688.F32.TF32 R{0}, R8, R16, R{0}", 16),
        ("rtx3090", 86, "HMMA.1688.F32.TF32 R{0}, R8, R16, R{0}", 32),
        ("a6000", 86, "HMMA.16816.F16 R{0}, R8, R16, R{0}", 16),
        ("rtx3090", 86, "HMMA.16816.F16 R{0}, R8, R16, R{0}", 16),
    ],
)
def test_intervals_of_products(chip: str, arch: int, product: str, interval: float) -> None:
    lines = [product.format(32 + 8 * k) for k in range(4)]
    assert round_cycles(lines, chip, arch, 16) / 16 == pytest.approx(interval, rel=0.01)


@pytest.mark.parametrize(
    ("choice", "greedy", "stalling"),
    [
        (Choice.YOUNGEST, [8, 8, 8, 8, 8, 4], [8, 4, 8, 4, 8, 4]),
        (Choice.OLDEST, [0, 0, 0, 0, 0, 4], [0, 4, 0, 4, 0, 4]),
        (Choice.LEAST_RECENT, [8, 8, 8, 8, 8, 4], [8, 4, 0, 8, 4, 0]),
    ],
)
def test_which_warp_issues(choice: Choice, greedy: list[int], stalling: list[int]) -> None:
    """Warps 0, 4 and 8 share a sub-core: who issues its first six instructions.

    One that is ready goes on to its end behind four instructions; with a stall of two others come in between.
    """
    for stall, expected in ((1, greedy), (2, stalling)):
        code = listing([f"B------:R-:W-:-:S{stall:02} NOP"] * 4, 80)
        result = run(code, "a100", warps=12, changes={"warp_choice": choice})
        turns = sorted((cycle, warp) for warp in (0, 4, 8) for cycle in issues(result, warp))
        assert turns[:6] == list(enumerate(expected))


def test_the_oldest_or_youngest_can_leave_others_behind() -> None:
    """Eight warps a sub-core follow loads from shared memory, one in two cycles of the SM."""
    chain = listing(["B0-----:R-:W0:-:S02 LDS R2, [R2]"], 89)
    ends = {}
    for choice in (Choice.YOUNGEST, Choice.OLDEST, Choice.LEAST_RECENT):
        result = run(chain, "rtx4090", warps=32, rounds=64, changes={"warp_choice": choice})
        ends[choice] = [issues(result, warp)[63] for warp in range(32)]
    assert max(ends[Choice.LEAST_RECENT]) - min(ends[Choice.LEAST_RECENT]) <= 64
    assert max(ends[Choice.YOUNGEST]) > 1.15 * max(ends[Choice.LEAST_RECENT])
    assert max(ends[Choice.OLDEST]) > 1.15 * max(ends[Choice.LEAST_RECENT])


@pytest.mark.parametrize(("rate", "cycle"), [(128, 27), (64, 31), (32, 39)])
def test_a_load_queues_behind_a_copy(rate: int, cycle: int) -> None:
    """Taken over from cycle 11 on: 512 bytes in 4, 8 or 16 turns; then the load, whose data comes 12 later.

    The sub-core itself sends its second instruction 4 cycles behind the first.
    """
    lines = [
        "B------:R-:W1:-:S01 LDGSTS.E.BYPASS.128 [R10], [R12.64]",
        "B------:R-:W0:-:S02 LDS R20, [R2]",
        "B0-----:R-:W-:-:S01 NOP",
    ]
    changes = {"copy_bytes": float(rate)}
    assert issues(run(listing(lines, 80), "a100", memory=Memory(sectors=16), changes=changes))[2] == cycle


def test_a_copy_without_bypass_may_find_its_data_in_l1() -> None:
    copy = "B0-----:R-:W0:-:S02 LDGSTS.E{}.128 [R10], [R12.64]"
    for bypass, expected in ((".BYPASS", [205, 205]), ("", [205, 39])):
        code = listing([copy.format(bypass)], 80)
        cycles = issues(run(code, "a100", rounds=3, memory=Memory(sectors=16)))
        assert gaps(cycles[:3]) == expected


@pytest.fixture
def state() -> np.ndarray:
    """An SM with one sub-core and nothing going on."""
    empty = np.zeros(Sm.WIDTH + Core.CONSTANTS, np.int64)
    empty[Sm.ACCEPTS : Sm.WIDTH] = -1
    empty[Sm.WIDTH + Core.ACCEPTED] = -FAR
    return empty


@pytest.fixture
def machine() -> Machine:
    header = Header("by_hand", 80, "", (1, 1, 1), (32, 1, 1), 32, 0, 1)
    parameters = load_parameters("a100")
    return machine_of(parameters, 0, share_of(header, chip("a100"), parameters, L2.WARM))


def access(lines: int = 0, passes: int = 0, sectors: int = 0, groups: int = 0) -> np.ndarray:
    found = np.zeros(Access.FIRST_SECTOR, np.int64)
    found[[Access.LINES, Access.PASSES, Access.SECTORS, Access.GROUPS]] = lines, passes, sectors, groups
    return found


def test_turns_of_the_port_come_in_between(state: np.ndarray) -> None:
    assert take_port(state, 10, 3) == 10
    assert take_port(state, 11, 2) == 13
    # 5 to 9, and 15 behind the five that are taken: as if it had begun in 10.
    assert take_port(state, 5, 6) == 10
    assert take_port(state, PORT_SPAN - 2, 4) == PORT_SPAN - 2
    assert take_port(state, PORT_SPAN, 1) == PORT_SPAN + 2
    # Far ahead nothing is in the way, and what is near stays taken.
    far = PORT_SPAN * (PORT_RING - 1)
    assert take_port(state, far, 1) == far
    assert take_port(state, 10, 1) == 16


@pytest.mark.parametrize(("rate", "turns"), [(128, 4), (64, 8), (32, 16)])
def test_what_a_copy_brings_takes_turns_when_it_arrives(
    state: np.ndarray, machine: Machine, rate: int, turns: int
) -> None:
    chip, copy = machine._replace(copy_bytes=rate), access(passes=4, sectors=16)
    assert copy_turns(copy, chip, 0) == turns
    assert fill(copy, chip, state, 0, 300) == 300
    assert fill(copy, chip, state, 0, 300) == 300 + turns
    assert take_port(state, 300 - turns, 1) == 300 + turns
    assert fill(copy, chip._replace(copy_fills_shared=0), state, 0, 300) == 300


def test_nothing_is_taken_over_while_the_port_is_far_behind(state: np.ndarray, machine: Machine) -> None:
    core = int(Sm.WIDTH)
    state[Sm.PORT_END] = 200
    assert accept(machine._replace(port_backlog=64), state, core, 0, 1) == 200 - 64
    state[Sm.PORT_END] = 64 + 11
    state[core + Core.ACCEPTED] = -FAR
    assert accept(machine._replace(port_backlog=64), state, core, 0, 1) == 11


def test_tag_turns(machine: Machine) -> None:
    assert tag_turns(access(lines=2, groups=1), machine, 0) == SIXTEENTH
    assert tag_turns(access(lines=2, groups=2), machine, 0) == 16 * 2 // 4 + round(16 * 1.1)
    assert tag_turns(access(lines=17, groups=5), machine, 0) == 5 * SIXTEENTH
    assert tag_turns(access(lines=32, groups=32), machine, 0) == 16 * 8 + round(16 * 1.1)


def test_stores_take_turns_of_the_port_if_they_do() -> None:
    """A store of 16 turns, then a load from shared memory that nobody else holds up."""
    lines = ["STG.E [R2.64], R4", "B------:R-:W0:-:S02 LDS R20, [R2]", "B0-----:R-:W-:-:S01 NOP"]
    memory = Memory(passes=16, sectors=16)
    found = [
        issues(run(listing(lines, 80), "a100", memory=memory, changes={"store_turns": turns}))[2]
        for turns in (0.0, 1.0)
    ]
    # Taken over in 11 and 15: the load's turns begin in 27 instead of 15.
    assert found[1] - found[0] == 12


def test_a_product_may_wait_at_the_tensor_core() -> None:
    """The second warp's product issues 8 cycles earlier, and nothing is faster in the long run."""
    lines = ["HMMA.16816.F16 R32, R8, R16, R32"]
    for ahead in (0.0, 8.0):
        changes = {**WARM, "tensor_ahead": ahead, "warp_choice": 2.0}
        result = run(listing(lines, 86), "a6000", warps=8, changes=changes)
        assert issues(result, 0)[0] - issues(result, 4)[0] == 16 - ahead
        assert round_cycles(lines, "a6000", 86, 16, changes=changes) == pytest.approx(64, rel=0.01)


@pytest.mark.parametrize("gap", [0, 2])
def test_warps_leave_a_barrier_one_after_the_other(gap: int) -> None:
    changes = {"bar_latency": 12.0, "bar_gap": float(gap)}
    result = run(listing(["BAR.SYNC 0x0", "NOP"], 80), "a100", warps=4, changes=changes)
    assert [issues(result, warp)[1] for warp in range(4)] == [12 + gap * warp for warp in range(4)]


@pytest.mark.parametrize("choice", POLICIES)
@pytest.mark.parametrize("rate", [32.0, 128.0])
def test_every_cycle_has_a_name(choice: float, rate: float) -> None:
    lines = [
        "B------:R-:W1:-:S01 LDGSTS.E.BYPASS.128 [R10], [R12.64]",
        "B------:R-:W2:-:S01 LDG.E.STRONG.GPU R24, [R12.64]",
        "B------:R-:W0:-:S02 LDS R20, [R2]",
        "B0-2---:R-:W3:-:S02 DFMA R30, R20, R24, R30",
        "B-1-3--:R-:W-:-:S01 HMMA.16816.F32 R32, R8, R16, R32",
        "BAR.SYNC 0x0",
    ]
    changes = {"warp_choice": choice, "copy_bytes": rate, "bar_gap": 1.0, "tensor_ahead": 4.0}
    memory = Memory(passes=4, sectors=16)
    first, second = (
        run(listing(lines, 89), "rtx4090", warps=12, rounds=6, memory=memory, changes=changes)
        for _ in range(2)
    )
    assert first.core_reasons.sum(axis=1).tolist() == [first.cycles] * 4
    assert first.row_reasons.sum() == first.warp_reasons.sum()
    assert (first.log == second.log).all()
