"""A timeline is valid JSON, its slices do not overlap, and it shows every issue once."""

import json
from collections import Counter, defaultdict
from itertools import pairwise
from typing import Any

import pytest

from cuasmrl.explain.report.perfetto import Event, Timeline, timeline
from cuasmrl.gpu.timing import Unit
from cuasmrl.gpu.timing.records import SUB_CORES
from tests.traced_kernels import rescheduled, traced

KERNELS = ["softmax", "gemm_leaky_relu", "vector_add"]


def shown(name: str, issues: int = 1_000_000) -> Timeline:
    kernel = traced(name)
    result = kernel.model.simulate(kernel.original, logged=issues)
    return timeline(result, kernel.original, kernel.model)


def tracks(events: list[Event], category: str) -> dict[tuple[int, int], list[Event]]:
    found: dict[tuple[int, int], list[Event]] = defaultdict(list)
    for event in events:
        if event["ph"] == "X" and event["cat"] == category:
            found[event["pid"], event["tid"]].append(event)
    return found


@pytest.mark.parametrize("name", KERNELS)
def test_slices_of_a_track_never_overlap(name: str) -> None:
    events = shown(name).events
    for category in ("issue", "unit"):
        found = tracks(events, category)
        assert found
        for slices in found.values():
            for first, second in pairwise(slices):
                assert first["dur"] > 0
                assert first["ts"] + first["dur"] <= second["ts"]


@pytest.mark.parametrize("name", KERNELS)
def test_every_issue_is_shown_once(name: str) -> None:
    kernel = traced(name)
    result = kernel.model.simulate(kernel.original)
    found = shown(name)
    slices = [event for of_track in tracks(found.events, "issue").values() for event in of_track]
    assert found.issues == found.of == result.instructions == len(slices)
    assert 0 < found.cycles <= result.cycles  # the last stores are still on their way
    by_place = Counter(int(event["args"]["address"], 16) // 16 for event in slices)
    assert dict(by_place) == {p: n for p, n in enumerate(result.row_reasons[:, 0].tolist()) if n}
    # One warp slot belongs to one sub-core, which issues at most once in a cycle.
    for core in range(SUB_CORES):
        cycles = [event["ts"] for event in slices if event["pid"] == core + 1]
        assert len(cycles) == len(set(cycles)) == result.core_reasons[core, 0]


def test_warp_slots_are_reused_by_later_blocks() -> None:
    kernel = traced("vector_add")
    assert kernel.model.blocks > kernel.model.resident
    few = kernel.model.simulate(kernel.original, logged=1_000_000)
    found = tracks(timeline(few, kernel.original, kernel.model).events, "issue")
    warps = kernel.trace.header.warps_per_block
    assert len(found) == kernel.model.resident * warps
    for slices in found.values():
        blocks = [event["args"]["block"] for event in slices]
        assert blocks == sorted(blocks)


def test_units_are_held_as_long_as_the_model_says() -> None:
    kernel = traced("gemm_leaky_relu")
    result = kernel.model.simulate(kernel.original)
    held: dict[int, float] = defaultdict(float)
    for (process, track), slices in tracks(shown("gemm_leaky_relu").events, "unit").items():
        unit = track - 1000 - len(Unit) * (process - 1)
        held[unit] += sum(event["dur"] for event in slices)
    for unit in Unit:
        if unit != Unit.NONE:
            assert held[unit] == pytest.approx(float(result.unit_busy[unit]), abs=1)


def test_results_from_memory_begin_and_end() -> None:
    events = [event for event in shown("softmax").events if event.get("cat") == "memory"]
    begun = {event["id"]: event for event in events if event["ph"] == "b"}
    ended = {event["id"]: event for event in events if event["ph"] == "e"}
    assert begun.keys() == ended.keys()
    assert len(begun) + len(ended) == len(events)
    assert {"LDG", "LDS"} <= {event["name"] for event in events}
    for number, event in begun.items():
        assert ended[number]["ts"] - event["ts"] == event["args"]["latency"] > 0


def test_the_first_issues_only() -> None:
    found, whole = shown("softmax", 100), shown("softmax")
    assert (found.issues, found.of) == (100, whole.of)
    assert found.cycles < whole.cycles
    slices = [event for of_track in tracks(found.events, "issue").values() for event in of_track]
    assert len(slices) == 100


def test_it_is_json_with_named_tracks() -> None:
    document: dict[str, Any] = json.loads(shown("gemm_leaky_relu", 5000).text({"chip": "a chip"}))
    assert document["otherData"]["chip"] == "a chip"
    assert "one modelled cycle" in document["otherData"]["time"]
    events = document["traceEvents"]
    named = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
    assert {(e["pid"], e["tid"]) for e in events if e["ph"] == "X"} == set(named)
    assert {"warp slot 0", "unit tensor", "unit fma"} <= set(named.values())
    processes = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    assert processes == {core + 1: f"sub-core {core}" for core in range(SUB_CORES)}


def test_a_wait_names_what_it_is_for() -> None:
    waits = {
        event["args"]["next waits for"]
        for event in shown("gemm_leaky_relu").events
        if event["ph"] == "X" and "next waits for" in event["args"]
    }
    for beginning in (
        "short scoreboard of LDSM at 0x",
        "stall of ",
        "barrier of BAR at 0x",
    ):
        assert any(wait.startswith(beginning) for wait in waits), beginning
    # What holds a copy up may lie behind L1.
    copies = {wait.partition(" of ")[0] for wait in waits if " of LDGDEPBAR at 0x" in wait} - {"stall"}
    assert copies
    assert copies <= {"copy", "L2 share", "DRAM"}


def test_addresses_are_those_of_the_schedule() -> None:
    kernel, schedule = traced("softmax"), rescheduled("softmax")
    result = kernel.model.simulate(schedule, logged=1000)
    code = schedule.arranged().instructions
    for slices in tracks(timeline(result, schedule, kernel.model).events, "issue").values():
        for event in slices:
            assert code[int(event["args"]["address"], 16) // 16].text == event["args"]["sass"]
