"""The parts of a report: curves, dots, bars, dependences and the timeline of a warp."""

import re
from functools import lru_cache
from xml.etree import ElementTree

import pytest

from cuasmrl.explain.report.axes import Scale, percent, short_percent, spanning
from cuasmrl.explain.report.curve import MOST_TRIED, curve_of
from cuasmrl.explain.report.cycles import cycles_between
from cuasmrl.explain.report.dependences import dependences_of
from cuasmrl.explain.report.gains import GainOf
from cuasmrl.explain.report.headroom import headroom_of
from cuasmrl.explain.report.legend import tenths
from cuasmrl.explain.report.loop import region_of
from cuasmrl.explain.report.palette import page_style
from cuasmrl.explain.report.pictures import gains_chart, search_chart, stacks_chart
from cuasmrl.explain.report.search import Search, floor_of
from cuasmrl.explain.report.stacks import Stack
from cuasmrl.explain.report.warp import timeline_of
from cuasmrl.explain.waits.replays import Replays, replays_of
from cuasmrl.game import Evaluation
from cuasmrl.gpu.timing import Reason
from cuasmrl.gpu.timing.records import Note
from cuasmrl.schedule import Board, control_flow
from cuasmrl.schedule import Reason as EdgeReason
from tests.traced_kernels import rescheduled, traced

KERNELS = ["softmax", "gemm_leaky_relu"]
SEEDS = range(2)


@lru_cache
def replays(name: str) -> tuple[Replays, Replays]:
    model = traced(name).model
    old, new = (replays_of(model, s, SEEDS) for s in (traced(name).original, rescheduled(name)))
    return old, new


def evaluations(*times: float) -> list[Evaluation]:
    best = float("inf")
    found = []
    for number, time in enumerate(times):
        found.append(Evaluation(number, bytes([number % 256]), time, time < best))
        best = min(best, time)
    return found


def test_a_curve_has_all_that_was_tried_and_the_best_so_far() -> None:
    curve = curve_of(evaluations(100, 110, 90, 95, float("inf"), 80))
    assert curve is not None
    assert (curve.start, curve.evaluations, curve.refused, curve.every) == (100, 5, 1, 1)
    assert curve.tried == ((1, 110), (2, 90), (3, 95), (5, 80))
    assert curve.best == ((0, 100), (2, 90), (5, 80))
    assert curve.final == 0.25


def test_of_many_evaluations_a_curve_keeps_a_share_but_every_best() -> None:
    times = [10.0**6 - 3 * k + 7 * (k % 2) for k in range(3 * MOST_TRIED)]
    log = evaluations(*times)
    curve = curve_of(log)
    assert curve is not None
    assert curve.every == 3
    assert len(curve.tried) <= MOST_TRIED
    assert [number for number, _ in curve.best] == [e.number for e in log if e.is_best]


def test_without_a_time_of_the_original_there_is_no_curve() -> None:
    assert curve_of([]) is None
    assert curve_of(evaluations(float("inf"), 3)) is None


@pytest.mark.parametrize("times", [(100,), (100, 100), (100, 500), (100, 99.9, 50)])
def test_searches_of_any_length_are_drawn(times: tuple[float, ...]) -> None:
    curve = curve_of(evaluations(*times))
    assert curve is not None
    for searches in ([Search("a<b", curve, None)], [Search("a", curve, 0.5), Search("b", curve, None)]):
        drawn = search_chart(searches, 400).inline()
        ElementTree.fromstring(drawn)
        paths = " ".join(re.findall(r' d="([^"]+)"', drawn))
        numbers = [float(n) for n in re.findall(r"[MHV ](-?[\d.]+)", paths)]
        assert all(-1 <= n <= 401 for n in numbers)
        assert floor_of(searches) < 0


def test_the_line_ends_at_the_best() -> None:
    curve = curve_of(evaluations(100, 80, 120, 50))
    assert curve is not None
    drawn = search_chart([Search("", curve, None)], 500).inline()
    (line,) = re.findall(r'class="best s0" d="([^"]+)"', drawn)
    places = [float(y) for y in re.findall(r"V([\d.]+)", line)]
    assert len(places) == 2
    assert places == sorted(places, reverse=True)


def gain(*members: float, name: str = "run", modelled: bool = True) -> GainOf:
    ordered = sorted(members)
    data = {"members": members, "median": ordered[len(ordered) // 2], "low": ordered[0], "high": ordered[-1],
            "nominal": members[0]}  # fmt: skip
    return GainOf(name, data, True, modelled)


def test_gains_keep_inside_and_apart() -> None:
    chart = gains_chart([gain(0.02, *[0.0201] * 6, -0.01, 0.3)], 350)
    root = ElementTree.fromstring(chart.inline())
    dots = list(root.iter("circle"))
    places = {(e.get("cx"), e.get("cy")) for e in dots}
    assert len(dots) == 9
    assert len(places) >= 7, "equal ones do not hide each other"
    assert all(0 <= float(e.get("cx", "-1")) <= 350 for e in dots)


def test_gains_of_a_gpu_have_rounds_and_no_nominal_chip() -> None:
    drawn = gains_chart([gain(0.01, 0.02, float("inf"), modelled=False)], 500).inline()
    assert "round 1: +1.00 %" in drawn
    assert "nominal" not in drawn


def test_stacks_are_as_long_as_their_cycles() -> None:
    stacks = [
        Stack("before", {"issued": 40, "stall": 60}, 10),
        Stack("after", {"issued": 40, "no warp": 10}, 10),
    ]
    root = ElementTree.fromstring(stacks_chart(stacks, 500).inline())
    widths = [float(e.get("width", "")) for e in root.iter("rect")]
    assert widths == [200, 300, 200, 50]


def test_tenths_sum_to_the_total() -> None:
    counts = {"a": 1, "b": 1, "c": 1}
    assert sum(tenths(counts, list(counts), 7)) == round(10 * 3 / 7)


@pytest.mark.parametrize("name", KERNELS)
def test_cycles_of_the_kernel_are_exact(name: str) -> None:
    old, new = replays(name)
    found = cycles_between(old, new)
    for side, made in ((found.before, old), (found.after, new)):
        assert side.cycles == tuple(result.cycles for result in made.results)
        assert sum(side.reasons.values()) == found.divisor * sum(side.cycles) / len(found.seeds)


def test_headroom_is_what_the_largest_bound_leaves() -> None:
    old, new = replays("gemm_leaky_relu")
    cycles = cycles_between(old, new)
    found = headroom_of(traced("gemm_leaky_relu").model, cycles)
    assert found.bounds[0].cycles == max(bound.cycles for bound in found.bounds)
    assert found.bounds[0].cycles * (1 + found.before) == pytest.approx(cycles.before.mean_cycles)
    assert found.before > 0


@pytest.mark.parametrize("name", KERNELS)
def test_the_timeline_is_one_iteration_of_one_warp(name: str) -> None:
    old, new = replays(name)
    region = region_of(traced(name), old)
    found = timeline_of(old, new, region)
    assert found is not None
    inside = set(region.positions)
    for side, made in ((found.before, old), (found.after, new)):
        positions = [made.schedule.order.index(issue.index) for issue in side.issues]
        assert positions[0] == region.head.start
        assert set(positions) <= inside
        cycles = [issue.cycle for issue in side.issues]
        assert cycles[0] == 0
        assert cycles == sorted(set(cycles))
        assert cycles[-1] < side.cycles
        log = made.log[(made.log[:, Note.BLOCK] == 0) & (made.log[:, Note.WARP] == 0)]
        heads = log[log[:, Note.POSITION] == region.head.start][:, Note.CYCLE].tolist()
        start = heads[found.iteration]
        logged = {int(row[Note.CYCLE]) - start: int(row[Note.POSITION]) for row in log}
        assert [logged[cycle] for cycle in cycles] == positions
        assert all(issue.reason is None or issue.reason in list(Reason) for issue in side.issues)


def test_dependences_are_those_of_the_board_without_scoreboards() -> None:
    kernel = traced("gemm_leaky_relu")
    old, _ = replays("gemm_leaky_relu")
    inside = region_of(kernel, old).positions
    found = {(d.first, d.second): d for d in dependences_of(kernel.listing, inside)}
    board = Board(kernel.listing)
    code = kernel.listing.instructions
    for block in control_flow(kernel.listing):
        for first, edges in board.graphs[block.number].successors.items():
            for second, edge in edges.items():
                if EdgeReason.REGISTER in edge.reasons and {first, second} <= set(inside):
                    assert found[first, second].need == edge.need
                if edge.reasons == {EdgeReason.SCOREBOARD}:
                    assert (first, second) not in found
    raw = [d for d in found.values() if d.what.startswith("RAW R")]
    assert raw
    for d in raw:
        assert {a.register for a in code[d.first].defs} & {a.register for a in code[d.second].uses}
        shown = re.match(r"RAW ([^,]+)", d.what)
        assert shown
        assert re.search(r"R\d+", shown[1])


def test_scales() -> None:
    scale = spanning([0.02, 0.05], 0, 100)
    assert scale(0) == 0
    assert 90 < scale(0.05) < 100
    assert Scale(0, 583, 0, 1).ticks(6) == [0, 100, 200, 300, 400, 500]
    assert (percent(-0.00001), percent(-0.0123)) == ("+0.00 %", "\N{MINUS SIGN}1.23 %")
    assert [short_percent(v) for v in (0, 0.005, -0.01)] == ["0 %", "+0.5 %", "\N{MINUS SIGN}1 %"]


def test_a_page_has_every_colour_in_both_themes() -> None:
    style = page_style()
    light, dark = re.findall(r":root\{(.*?)\}", style)[0], re.findall(r"data-theme=dark\]\{(.*?)\}", style)[0]
    names = [re.findall(r"--(\w+):", theme) for theme in (light, dark)]
    assert names[0] == names[1]
    assert {f"r{int(reason)}" for reason in Reason} <= set(names[0])
    assert set(re.findall(r"var\(--(\w+)\)", style)) <= set(names[0])
