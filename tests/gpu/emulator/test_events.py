"""Events in traces: waits, arrivals, copies by engines, barriers by number."""

from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

from cuasmrl.gpu.emulator import Trace
from cuasmrl.gpu.emulator.boxes import sectors_of
from cuasmrl.gpu.emulator.events import Event, is_eventful, is_plain_barrier
from cuasmrl.gpu.emulator.tensor_maps import Element, TensorMap
from tests.assembly import listing
from tests.gpu.emulator.kernels import Kernels, Load, numbers

ROUNDS, STAGES, CONSUMERS = 11, 3, 3


@pytest.fixture(scope="module")
def bulk(load: Load) -> Kernels:
    return load("bulk", "sm_90")


@pytest.fixture(scope="module")
def ring(bulk: Kernels) -> Trace:
    x, out = numbers(96 * ROUNDS), np.zeros(96, np.int32)
    return bulk.trace("ring", x, out, np.int32(ROUNDS), np.int32(ROUNDS), block=128)


def of_kind(trace: Trace, kind: Event) -> list[int]:
    return np.flatnonzero(trace.event_kind == kind).tolist()


def test_a_wait_is_one_event(ring: Trace) -> None:
    """A phase for each round of each warp, whoever was there first."""
    waits = of_kind(ring, Event.WAIT)
    assert len(waits) == ROUNDS * (1 + CONSUMERS)
    by_producer = [int(ring.event_phase[e]) for e in waits if ring.event_warp[e] == 0]
    # In the first rounds buffers are free: the phase before never began.
    assert sorted(by_producer) == sorted([-1] * STAGES + [k // STAGES for k in range(ROUNDS - STAGES)])
    assert len({len(ring.path(warp)) for warp in range(1, 4)}) == 1


def test_every_phase_has_its_copy_and_its_arrivals(ring: Trace) -> None:
    copies = of_kind(ring, Event.COPY_IN)
    assert ring.event_bytes[copies].tolist() == [384] * ROUNDS
    assert (ring.event_warp[copies] == 0).all()
    announced = [e for e in of_kind(ring, Event.ARRIVE) if ring.event_bytes[e]]
    full = {(int(ring.event_barrier[e]), int(ring.event_phase[e])) for e in copies}
    assert full == {(int(ring.event_barrier[e]), int(ring.event_phase[e])) for e in announced}
    assert len(full) == ROUNDS
    released = [e for e in of_kind(ring, Event.ARRIVE) if not ring.event_bytes[e]]
    assert len(released) == ROUNDS * CONSUMERS
    assert (ring.event_count[released] == 32).all()


def test_what_a_copy_touches_is_an_access(ring: Trace) -> None:
    copies = set(ring.event_instruction[of_kind(ring, Event.COPY_IN)].tolist())
    accesses = np.flatnonzero(np.isin(ring.access_instruction, sorted(copies)))
    assert len(accesses) == ROUNDS
    assert (ring.access_lanes[accesses] == 0).all()
    touched = np.concatenate([ring.sectors(int(k)) for k in accesses])
    assert len(touched) == len(np.unique(touched)) == 96 * 4 * ROUNDS // 32
    assert touched.min() == ring.sectors(int(accesses[0]))[0]


def test_stores_have_bytes_and_sectors(bulk: Kernels) -> None:
    trace = bulk.trace("back", np.zeros(64, np.int32), np.int32(1))
    (store,) = of_kind(trace, Event.COPY_OUT)
    assert (trace.event_bytes[store], trace.event_barrier[store]) == (128, -1)
    (access,) = np.flatnonzero(trace.access_instruction == trace.event_instruction[store])
    assert len(trace.sectors(int(access))) == 4


def test_copies_of_lanes_arrive_when_they_have_landed(bulk: Kernels) -> None:
    trace = bulk.trace("told", numbers(64), np.zeros(64, np.int32), np.int32(1), block=64)
    told = of_kind(trace, Event.ARRIVE_WITH_COPIES)
    assert trace.event_count[told].tolist() == [32, 32]


def test_events_go_to_files_and_come_back(ring: Trace, tmp_path: Path) -> None:
    ring.save(tmp_path / "ring.trace")
    again = Trace.load(tmp_path / "ring.trace")
    for field in fields(ring):
        if field.name.startswith(("event_", "access_", "pattern_")):
            assert getattr(again, field.name).tolist() == getattr(ring, field.name).tolist()


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("BAR.SYNC.DEFER_BLOCKING 0x0", True),
        ("BAR.SYNC.DEFER_BLOCKING 0x0, 0x80", False),
        ("BAR.SYNC.DEFER_BLOCKING 0x1", False),
        ("BAR.ARV 0x0, 0x40", False),
        ("BAR.SYNC.DEFER_BLOCKING R4, R4", False),
        ("BAR.RED.POPC.DEFER_BLOCKING 0x0, P0", True),
    ],
)
def test_which_barriers_have_events(text: str, plain: bool) -> None:
    code = listing(f"B------:R-:W-:-:S01  {text}", 90, 64).instructions[0]
    assert is_plain_barrier(code) is plain
    assert is_eventful(code) is not plain


def test_sectors_of_a_box_over_the_edge() -> None:
    """Rows of 96 bytes, 160 apart; one row and half of another column lie outside."""
    map_ = TensorMap(0x1000, Element.F16, (64, 5), (160,), (48, 4))
    found = sectors_of(map_, (32, 2))
    wanted = {
        (0x1000 + row * 160 + byte) // 32 for row in range(2, 5) for byte in range(2 * 32, 2 * 64)
    }  # fmt: skip
    assert found.tolist() == sorted(wanted)
    assert not sectors_of(map_, (64, 0)).size
