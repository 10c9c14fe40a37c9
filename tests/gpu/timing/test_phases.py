"""Mbarriers and bulk copies in the model: who is held until when, what it is called, what bounds know."""

from __future__ import annotations

import numpy as np
import pytest

from cuasmrl.binary.cubin import Cubin
from cuasmrl.binary.sass import Listing
from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.chips import chip
from cuasmrl.gpu.emulator import Header, Trace
from cuasmrl.gpu.emulator.events import COLUMNS, Event
from cuasmrl.gpu.emulator.trace import code_digest
from cuasmrl.gpu.launches.launch import Launch
from cuasmrl.gpu.timing import L2, Model, Reason, bounds_of, sanitize
from cuasmrl.gpu.timing.excerpt import excerpt
from cuasmrl.gpu.timing.model import Result
from cuasmrl.gpu.timing.parameters import load_parameters
from cuasmrl.gpu.traced import TracedKernel, trace_launch
from cuasmrl.schedule import Schedule
from tests.conftest import CompileCuda
from tests.gpu.emulator.conftest import SOURCES
from tests.gpu.timing.programs import issues, stream
from tests.gpu.timing.rescheduled import schedules_on_chips

ARRIVE = "SYNCS.ARRIVE.TRANS64.A1T0 RZ, [UR4], RZ"
COPY = "B------:R1:W-:-:S01  UTMALDG.2D [UR8], [UR12]"
WAIT = "B------:R-:W0:-:S02  SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR4], R9"
USE = "B0-----:R-:W-:-:S01  @P0 IADD3 R1, R2, R3, RZ"
NUMBERS = load_parameters("h100")
ENTRY = int(NUMBERS["accept_delay"])

Row = tuple[int, int, Event, int, int, int]
"""Warp, instruction, kind, phase, count, bytes."""


def model_of(code: Listing, rows: list[Row], warps: int = 1, boxes: int = 0, **changes: float) -> Model:
    """Warps that run straight through; copies touch so many sectors, which L2 holds."""
    digest = code_digest(code.kernel.words)
    header = Header("by_hand", code.kernel.arch, digest, (1, 1, 1), (32 * warps, 1, 1), 32, 0, warps)
    table = np.array([(w, 0, i, kind, 1, phase, n, size) for w, i, kind, phase, n, size in sorted(rows)])
    table = table.reshape(-1, len(COLUMNS)).astype(np.int32)
    copies = [row for row in sorted(rows) if row[2] in (Event.COPY_IN, Event.COPY_OUT)]
    n = len(copies)
    trace = Trace(
        header, np.zeros(1, np.int64), np.zeros(warps, np.int32), np.array([0, 1]), np.zeros(1, np.int32),
        np.array([row[0] for row in copies], np.int32), np.zeros(n, np.int32),
        np.array([row[1] for row in copies], np.int32), np.zeros(n, np.uint8),
        np.full(n, boxes // 4, np.uint16), np.zeros(n, np.uint16), np.zeros(n, np.int64),
        np.zeros(n, np.int32), np.array([0, boxes]), np.arange(boxes, dtype=np.int64),
        **{f"event_{name}": table[:, k] for k, name in enumerate(COLUMNS)},
    )  # fmt: skip
    warm = {"fetch_latency": 0.0, "fetch_gap": 0.0, "constant_miss": 0.0, "warp_start": 0.0, "l2_jitter": 0.0}
    name = "b200" if code.kernel.arch == 100 else "h100"
    return Model(Schedule.original(code), trace, name, load_parameters(name).with_values(warm | changes))


def run(code: Listing, rows: list[Row], warps: int = 1, boxes: int = 0, **changes: float) -> Result:
    model = model_of(code, rows, warps, boxes, **changes)
    schedule = Schedule.original(code)
    result = model.simulate(schedule, logged=warps * len(code.instructions))
    assert model.cycles(model.table(schedule)) == result.cycles
    assert (result.core_reasons.sum(axis=1) == result.cycles).all()
    assert (result.row_reasons.sum(axis=0) == result.warp_reasons).all()
    assert all(bound.cycles <= result.cycles for bound in bounds_of(model))
    return result


def test_a_wait_goes_on_after_the_last_arrival() -> None:
    """Warp 1 waits first; its scoreboard is pending until warp 0 has arrived."""
    code = stream(WAIT, USE, *["NOP"] * 6, ARRIVE, arch=90)
    rows: list[Row] = [(1, 0, Event.WAIT, 0, 0, 0), (0, 8, Event.ARRIVE, 0, 32, 0)]
    result = run(code, rows, warps=2, mbarrier_wake=200)
    arrived = issues(result, 0)[8] + ENTRY + int(NUMBERS["mbarrier_arrive"])
    assert issues(result, 1)[1] == arrived + 200
    assert result.warp_reasons[Reason.MBARRIER] > 150
    # Its result is there when the log says so, though that was not known when it was issued.
    assert sanitize(Schedule.original(code), result) == ()


def test_a_phase_that_has_ended_is_only_looked_at() -> None:
    code = stream(ARRIVE, *["B------:R-:W-:Y:S12  NOP"] * 8, WAIT, USE, arch=90)
    rows: list[Row] = [(0, 0, Event.ARRIVE, 0, 32, 0), (0, 9, Event.WAIT, 0, 0, 0)]
    found = issues(run(code, rows))
    assert found[10] - found[9] == ENTRY + int(NUMBERS["mbarrier_check"])


def test_nobody_waits_for_a_phase_that_never_began() -> None:
    code = stream(WAIT, USE, arch=90)
    found = issues(run(code, [(0, 0, Event.WAIT, -1, 0, 0)]))
    assert found[1] == ENTRY + int(NUMBERS["mbarrier_check"])


def test_only_who_needs_the_answer_is_held() -> None:
    code = stream(WAIT, "IADD3 R4, R5, R6, RZ", USE, ARRIVE, arch=90)
    rows: list[Row] = [(1, 0, Event.WAIT, 0, 0, 0), (0, 3, Event.ARRIVE, 0, 32, 0)]
    found = issues(run(code, rows, warps=2, mbarrier_wake=100), 1)
    assert found[1] <= 4
    assert found[2] > 100


def test_waiting_for_each_other_stands_still() -> None:
    """Each of two warps arrives behind its own wait for the other."""
    code = stream(WAIT, USE, ARRIVE, arch=90)
    both = (0, 1)
    rows: list[Row] = [(w, 0, Event.WAIT, 0, 0, 0) for w in both] + [
        (w, 2, Event.ARRIVE, 0, 32, 0) for w in both
    ]
    with pytest.raises(CuasmrlError, match="stands still.* or a phase of an mbarrier"):
        run(code, rows, warps=2)


def copied(size: int, count: int = 1, **changes: float) -> Result:
    """So many boxes, one behind the other, and a wait for all."""
    code = stream(*[COPY] * count, WAIT, USE, arch=90)
    rows: list[Row] = [(0, k, Event.COPY_IN, 0, 0, size) for k in range(count)]
    return run(code, [*rows, (0, count, Event.WAIT, 0, 0, 0)], 1, size // 32, **changes)


def test_a_copy_takes_as_long_as_published() -> None:
    """A bulk copy of a kilobyte that L2 holds: 369 cycles, 105 more than a load (H100, one thread)."""
    assert issues(copied(1024, l2_latency=253))[2] == pytest.approx(369, rel=0.05)


def test_copies_share_the_engine() -> None:
    one, four = (issues(copied(8192, count))[count + 1] for count in (1, 4))
    line = NUMBERS["tma_line"] * 8192 / 128
    assert four - one == pytest.approx(3 * max(line, 8192 / NUMBERS["tma_bytes"]), rel=0.1)
    assert copied(8192).warp_reasons[Reason.TMA] > 200


def test_small_lines_cost_as_much_as_large_ones() -> None:
    slow = issues(copied(16384, tma_line=4))[2]
    assert slow > issues(copied(16384, tma_line=1))[2] + 128


def test_stores_are_waited_for() -> None:
    store = "B------:R1:W-:-:S01  UTMASTG.2D [UR8], [UR12]"
    flush = "B------:R0:W-:-:S02  UTMACMDFLUSH"
    lines = [store, flush, "B------:R-:W-:Y:S04  DEPBAR.LE SB0, 0x0", "CCTL.IVALL", "IADD3 R1, R2, R3, RZ"]
    rows: list[Row] = [(0, 0, Event.COPY_OUT, 0, 0, 4096)]
    arrived = run(stream(*lines, arch=90), rows, boxes=128)
    read = run(stream(*lines[:3], lines[4], arch=90), rows, boxes=128)
    assert 100 < issues(read)[3] < issues(arrived)[3] - 100
    assert arrived.warp_reasons[Reason.TMA] > 100
    # One group may be on its way: nobody waits.
    free = stream(store, flush, "B------:R-:W-:Y:S04  DEPBAR.LE SB0, 0x1", lines[4], arch=90)
    assert issues(run(free, rows, boxes=128))[3] < 20


@pytest.mark.parametrize("warps", [2, 4])
def test_barriers_by_number_let_pairs_go(warps: int) -> None:
    """Barrier 1 is for warps 0 and 1 only; the others do not come."""
    code = stream("B------:R-:W-:-:S06  BAR.SYNC.DEFER_BLOCKING 0x1, 0x40", "IADD3 R1, R2, R3, RZ", arch=90)
    rows: list[Row] = [(w, 0, Event.MEET, 0, 64, 0) for w in (0, 1)]
    model = model_of(code, rows, warps)
    assert model.simulate(Schedule.original(code)).warp_reasons[Reason.BARRIER] > 0
    with pytest.raises(CuasmrlError, match="stands still"):
        run(code, [(0, 0, Event.MEET, 0, 64, 0)], warps)


@pytest.fixture(scope="module")
def ring(compile_cuda: CompileCuda) -> TracedKernel:
    cubin = Cubin.parse(compile_cuda((SOURCES / "bulk.cu").read_text(), "sm_90"), "bulk.cubin")
    arguments = np.zeros(96 * 40, np.int32), np.zeros(96, np.int32), np.int32(40), np.int32(40)
    launch = Launch((1, 1, 1), (128, 1, 1), 0, arguments)
    return trace_launch("ring", "ring", {}, cubin, "ring", launch, chip("h100"), L2.COLD)


def test_a_ring_under_random_schedules(ring: TracedKernel) -> None:
    """Cycles have names, both replays agree, no bound is above them, nothing is read too early."""
    assert any(bound.resource == "TMA engine" for bound in bounds_of(ring.model))
    for model, schedule in schedules_on_chips(ring, seed=3, count=3):
        table = model.table(schedule)
        result = model.replay(table, 1, logged=100_000)
        assert (result.core_reasons.sum(axis=1) == result.cycles).all()
        assert (result.row_reasons.sum(axis=0) == result.warp_reasons).all()
        assert model.cycles(table, 1) == result.cycles
        assert all(bound.cycles <= result.cycles for bound in bounds_of(model))
        assert sanitize(schedule, result) == ()


def test_iterations_of_warps_with_other_loops_stay(ring: TracedKernel) -> None:
    assert excerpt(ring.trace, 4).event_kind.tolist() == ring.trace.event_kind.tolist()


def test_phases_are_joined_over_a_gap(compile_cuda: CompileCuda) -> None:
    """All warps go the same way, and copies run two rounds ahead."""
    source = (SOURCES / "bulk.cu").read_text() + AHEAD
    cubin = Cubin.parse(compile_cuda(source, "sm_90"), "ahead.cubin")
    rounds = 40
    arguments = np.zeros(128 * rounds, np.int32), np.zeros(128, np.int32), np.int32(rounds)
    launch = Launch((1, 1, 1), (128, 1, 1), 0, arguments)
    kernel = trace_launch("ahead", "ahead", {}, cubin, "ahead", launch, chip("h100"), L2.COLD)
    whole = kernel.model.simulate(kernel.original)
    for iterations in (6, 7, 9):
        short = kernel.part(iterations).simulate(kernel.original)
        assert short.instructions < 0.6 * whole.instructions
        share = (whole.cycles - short.cycles) / (whole.instructions - short.instructions)
        assert share == pytest.approx(whole.cycles / whole.instructions, rel=0.25)
    # Events that are gone leave no phase that anybody waits for.
    events = excerpt(kernel.trace, 6)
    assert len(events.event_kind) < 0.4 * len(kernel.trace.event_kind)


AHEAD = """
extern "C" __global__ void ahead(const int *in, int *out, int rounds) {
    __shared__ __align__(16) int s[3][128];
    __shared__ long long full[3];
    bool first = threadIdx.x == 0;
    if (first) for (int i = 0; i < 3; i++) init(shared_address(full + i), 1);
    __syncthreads();
    for (int k = 0; k < 2; k++)
        if (first) {
            expect(shared_address(full + k), 512);
            copy(shared_address(s[k]), in + 128 * k, 512, shared_address(full + k));
        }
    int sum = 0, stage = 0, ahead = 2, parity = 0;
    #pragma unroll 1
    for (int k = 0; k < rounds; k++) {
        wait(shared_address(full + stage), parity);
        sum = 3 * sum + s[stage][threadIdx.x ^ 1];
        __syncthreads();
        if (first && k + 2 < rounds) {
            expect(shared_address(full + ahead), 512);
            copy(shared_address(s[ahead]), in + 128 * (k + 2), 512, shared_address(full + ahead));
        }
        ahead = ahead == 2 ? 0 : ahead + 1;
        parity ^= stage == 2;
        stage = stage == 2 ? 0 : stage + 1;
    }
    out[threadIdx.x] = sum;
}
"""


def test_chips_without_the_engine_say_so() -> None:
    given = model_of(stream(COPY, arch=90), [])
    with pytest.raises(CuasmrlError, match="tma_operands"):
        given.with_parameters(load_parameters("a100"))


@pytest.mark.parametrize(
    ("rows", "columns", "in_cells", "latency"),
    [
        (128, 128, False, 200),
        (128, 256, False, 264),
        (64, 64, False, 152),
        (64, 256, False, 248),
        (128, 128, True, 168),
    ],
)
def test_a_product_of_tensor_memory_takes_as_long_as_published(
    rows: int, columns: int, in_cells: bool, latency: int
) -> None:
    """SemiAnalysis, B200: from a product to who waits for its mbarrier."""
    first = "tmem[UR4]" if in_cells else "gdesc[UR4]"
    product = f"UTCHMMA {first}, gdesc[UR6], tmem[UR8], tmem[UR10], idesc[UR11], !UPT"
    code = stream(product, "UTCBAR [UR12], URZ", WAIT, USE, arch=100)
    size = 32 * (columns + (0 if in_cells else rows))
    events: list[Row] = [
        (0, 0, Event.PRODUCT, rows, columns, size), (0, 1, Event.COMMIT, 0, 1, 0), (0, 2, Event.WAIT, 0, 0, 0)
    ]  # fmt: skip
    assert issues(run(code, events))[3] == pytest.approx(latency, abs=6)
    many: list[Row] = [(0, k, Event.PRODUCT, rows, columns, size) for k in range(9)]
    code = stream(*[product] * 9, "UTCBAR [UR12], URZ", WAIT, USE, arch=100)
    result = run(code, [*many, (0, 9, Event.COMMIT, 0, 1, 0), (0, 10, Event.WAIT, 0, 0, 0)])
    interval = max(columns / 2, size / 128)
    assert issues(result)[11] - latency == pytest.approx(8 * interval, abs=8)
    assert result.warp_reasons[Reason.TENSOR_ENGINE] > 0
