"""The hot loop as data: the right loop, and not one cycle more or less than the model counts."""

import json
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
import pytest

from cuasmrl.errors import CuasmrlError
from cuasmrl.explain.report.loop import ISSUED, ConfirmedGain, HotLoop, hot_loop, telling, window
from cuasmrl.explain.waits.charges import BY_PREDECESSOR, charged
from cuasmrl.explain.waits.regions import hottest, natural_loops
from cuasmrl.gpu.timing import REASON_NAMES, Reason
from cuasmrl.schedule import Block, Board, control_flow
from tests.traced_kernels import rescheduled, traced

KERNELS = ["softmax", "gemm_leaky_relu"]
SEEDS = range(2)
GAIN = {"median": 0.07, "low": 0.04, "high": 0.1, "nominal": 0.09, "members": [0.09, 0.07, 0.04]}


@lru_cache
def loop(name: str, seed: int = 0) -> HotLoop:
    return hot_loop(traced(name), rescheduled(name, seed), seeds=SEEDS)


def blocks(*successors: tuple[int, ...], length: int = 10) -> tuple[Block, ...]:
    return tuple(
        Block(number, length * number, length * (number + 1), targets)
        for number, targets in enumerate(successors)
    )


def test_loops_are_found_by_their_heads() -> None:
    nested = blocks((1,), (2,), (2, 3), (1, 4), ())
    assert natural_loops(nested) == {1: {1, 2, 3}, 2: {2}}


def test_code_set_aside_makes_no_loop() -> None:
    """Block 3 stands behind the exit and leads back to 2, which can be reached without it."""
    assert natural_loops(blocks((1,), (2, 3), (), (2,))) == {}


def test_a_loop_need_not_be_in_one_piece() -> None:
    apart = blocks((1,), (2, 4), (1, 3), (), (2,))
    assert natural_loops(apart) == {1: {1, 2, 4}}
    region = hottest(apart, [1] * 50)
    assert [block.number for block in region.blocks] == [1, 2, 4]
    assert region.positions == (*range(10, 30), *range(40, 50))


def test_padding_behind_the_last_exit_is_no_loop() -> None:
    assert natural_loops((Block(0, 0, 4, ()), Block(1, 4, 5, (1,)))) == {}


def test_cycles_belong_to_the_innermost_loop() -> None:
    nested = blocks((1,), (2,), (2, 3), (1, 4), ())
    inner = hottest(nested, [1] * 10 + [3] * 10 + [9] * 10 + [3] * 10 + [1] * 10)
    assert (inner.is_loop, inner.positions) == (True, tuple(range(20, 30)))
    outer = hottest(nested, [1] * 10 + [5] * 10 + [9] * 10 + [5] * 10 + [1] * 10)
    assert (outer.is_loop, outer.head.number) == (True, 1)
    assert outer.positions == tuple(range(10, 40))


def test_straight_code_has_a_hottest_block() -> None:
    region = hottest(blocks((1,), (2,), ()), [1] * 10 + [2] * 10 + [1] * 10)
    assert (region.is_loop, region.positions) == (False, tuple(range(10, 20)))


@pytest.mark.parametrize("name", KERNELS)
def test_charging_loses_no_cycle_and_crosses_no_block(name: str) -> None:
    kernel = traced(name)
    rows = kernel.model.simulate(kernel.original).row_reasons
    found = charged(rows, control_flow(kernel.listing))
    for block in control_flow(kernel.listing):
        assert (found[block.start : block.end].sum(axis=0) == rows[block.start : block.end].sum(axis=0)).all()
    kept = [reason for reason in range(rows.shape[1]) if reason not in BY_PREDECESSOR]
    assert (found[:, kept] == rows[:, kept]).all()


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("seed", range(2))
def test_cycles_are_exactly_those_of_the_model(name: str, seed: int) -> None:
    found, kernel = loop(name, seed), traced(name)
    for side, schedule in ((found.before, kernel.original), (found.after, rescheduled(name, seed))):
        results = [kernel.model.simulate(schedule, s) for s in SEEDS]
        rows = np.asarray(sum(result.row_reasons for result in results))
        inside = rows[[row.position for row in side.rows]].sum(axis=0)
        assert side.reasons == {REASON_NAMES[Reason(k)]: int(n) for k, n in enumerate(inside) if n}
        assert side.cycles == inside.sum()
        assert side.cycles == sum(row.executions + row.waited for row in side.rows)
        assert side.kernel_cycles == tuple(result.cycles for result in results)
    assert found.iterations == found.before.rows[0].executions == found.after.rows[0].executions
    assert ISSUED not in {name for row in found.before.rows for name in row.waits}


def test_it_is_the_loop_of_a_product_and_a_block_of_straight_code() -> None:
    product = loop("gemm_leaky_relu")
    assert product.is_loop
    code = traced("gemm_leaky_relu").listing.instructions
    assert {"HMMA", "LDSM", "BRA"} <= {code[row.index].opcode for row in product.before.rows}
    softmax = loop("softmax")
    assert not softmax.is_loop
    most = max(softmax.before.rows, key=lambda row: row.waited)
    everywhere = traced("softmax").model.simulate(traced("softmax").original).row_reasons[:, 1:].sum(axis=1)
    assert most.position in np.argsort(-everywhere)[:3]


@pytest.mark.parametrize("name", KERNELS)
def test_both_sides_hold_the_same_instructions(name: str) -> None:
    found, schedule = loop(name), rescheduled(name)
    assert found.before.place.keys() == found.after.place.keys()
    assert [row.position for row in found.before.rows] == [row.position for row in found.after.rows]
    for row in found.after.rows:
        assert schedule.order[row.position] == row.index
        assert row.control == str(schedule.controls[row.index])
        assert row.text == found.before[row.index].text == schedule.listing.instructions[row.index].text
        assert row.address == 16 * row.position


@pytest.mark.parametrize("name", KERNELS)
def test_a_stall_count_is_charged_to_who_has_it(name: str) -> None:
    """But for the first of a block, which keeps what it waits. A yield takes two cycles at least."""
    starts = {block.start for block in control_flow(traced(name).listing)}
    for row in loop(name).before.rows:
        if row.position not in starts:
            *_, hint, stall = row.control.split(":")
            least = 2 if hint == "Y" else 1
            assert row.waits.get("stall", 0) <= row.executions * (max(least, int(stall[1:])) - 1), row


@pytest.mark.parametrize("name", KERNELS)
def test_who_is_waited_for_sets_a_scoreboard_or_is_a_product(name: str) -> None:
    found, code = loop(name), traced(name).listing.instructions
    awaited = [row for row in found.before.rows if row.awaited is not None]
    assert awaited
    for row in awaited:
        assert row.awaited is not None
        producer = code[row.awaited]
        waits = set(code[row.index].control.waits)
        assert producer.opcode == "HMMA" or waits & set(producer.control.sets)


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("seed", range(2))
def test_all_others_keep_their_order(name: str, seed: int) -> None:
    found = loop(name, seed)
    stay = [found.after.place[row.index] for row in found.before.rows if row.index not in found.moved]
    assert stay == sorted(stay)
    # One that moves more would stay in order with all of these.
    for index in found.moved:
        with_it = [row.index for row in found.before.rows if row.index not in found.moved - {index}]
        places = [found.after.place[i] for i in with_it]
        assert places != sorted(places)


def test_one_move_is_one_move() -> None:
    kernel = traced("gemm_leaky_relu")
    board, rows = Board(kernel.listing), loop("gemm_leaky_relu").before.rows
    load = max(
        (row.index for row in rows if row.text.startswith("LDSM")),
        key=lambda i: max(board.reach(i)) - board.position[i],
    )
    assert board.move(load, max(board.reach(load)))
    found = hot_loop(kernel, board.schedule(), seeds=SEEDS)
    assert found.moved == {load}


def test_nothing_has_moved_in_the_original() -> None:
    kernel = traced("gemm_leaky_relu")
    found = hot_loop(kernel, kernel.original, seeds=SEEDS)
    assert found.moved == frozenset()
    assert found.before.reasons == found.after.reasons
    assert telling(found, window(found, 20), 5) == ()


def test_a_window_is_where_most_is_saved() -> None:
    found = loop("gemm_leaky_relu")

    def saved(seen: range) -> float:
        inside = (row.index for row in found.before.rows[seen.start : seen.stop])
        return sum(found.saved(i) for i in inside if found.after.place[i] in seen)

    chosen, length = window(found, 20), len(found.before.rows)
    assert len(chosen) == 20
    assert saved(chosen) == max(saved(range(k, k + 20)) for k in range(length - 19))
    assert window(found, length) == window(found, 10 * length) == range(length)


def test_telling_moves_stand_elsewhere_and_change_most() -> None:
    found = loop("gemm_leaky_relu")
    everything = range(len(found.before.rows))
    few, many = telling(found, everything, 3), telling(found, everything, 1000)
    assert 0 < len(few) <= 3
    assert many[: len(few)] == few
    awaited = {found.before[i].awaited for i in many}
    for index in many:
        assert found.before.place[index] != found.after.place[index]
        assert abs(found.saved(index)) + abs(found.saved_but_for_stalls(index)) >= 0.5 or index in awaited
    changes = [abs(found.saved_but_for_stalls(i)) for i in many if i not in awaited]
    assert changes == sorted(changes, reverse=True)


def verdict(**changes: Any) -> dict[str, Any]:
    key = rescheduled("softmax").key.hex()
    return {"accepted": True, "device": "virtual:a100", "schedule": key, "gain": GAIN} | changes


def test_a_gain_is_what_the_verdict_confirms() -> None:
    schedule = rescheduled("softmax")
    found = ConfirmedGain.of(verdict(), schedule)
    assert found == ConfirmedGain(0.07, 0.04, 0.1, 0.09, 3, "virtual:a100")
    assert found.is_modelled
    measured = ConfirmedGain.of(verdict(device="cuda:0"), schedule)
    assert measured is not None
    assert not measured.is_modelled


def test_without_a_verdict_on_this_schedule_nothing_is_confirmed() -> None:
    schedule = rescheduled("softmax")
    assert ConfirmedGain.of(None, schedule) is None
    assert ConfirmedGain.of(verdict(accepted=False), schedule) is None
    assert ConfirmedGain.of(verdict(), rescheduled("softmax", 1)) is None


@pytest.mark.parametrize("gain", [None, {}, {**GAIN, "low": "a little"}])
def test_a_verdict_that_cannot_be_read_is_refused(gain: Any) -> None:
    with pytest.raises(CuasmrlError, match="holds no gain that can be read"):
        ConfirmedGain.of(verdict(gain=gain), rescheduled("softmax"))


def test_a_schedule_of_other_code_is_refused() -> None:
    with pytest.raises(CuasmrlError, match="made from other code"):
        hot_loop(traced("softmax"), rescheduled("gemm_leaky_relu"))


def test_json() -> None:
    found = replace(loop("gemm_leaky_relu"), gain=ConfirmedGain(0.07, 0.04, 0.1, 0.09, 3, "virtual:a100"))
    data = json.loads(json.dumps(found.as_dict()))
    assert data["gain"]["median"] == 0.07
    assert data["moved"] == sorted(found.moved)
    for name, side in (("before", found.before), ("after", found.after)):
        assert data[name]["reasons"] == side.reasons
        rows = data[name]["rows"]
        assert sum(sum(row["waits"].values()) + row["executions"] for row in rows) == side.cycles
        assert data[name]["cycles_per_iteration"] == side.cycles / data["iterations"]
