"""Replays that set out from earlier ones give the cycles of replays from the beginning."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from cuasmrl.gpu.timing import Model
from cuasmrl.gpu.timing.code import Int
from cuasmrl.gpu.timing.courses import Courses, marks_passed
from cuasmrl.gpu.timing.records import FAR
from cuasmrl.gpu.timing.sheet import NOTHING, new_sheet
from cuasmrl.gpu.timing.uncertainty import draw
from cuasmrl.schedule import Board
from tests.traced_kernels import rescheduled
from tests.traced_kernels import traced as small

SCHEDULES = 25


def wandering(name: str, model: Model) -> list[Int]:
    """Tables of a climb that keeps every other schedule."""
    kernel, rng = small(name), random.Random(3)
    board = Board(kernel.listing)
    rival, tables = board.schedule(), [model.table(kernel.original)]
    while len(tables) < SCHEDULES:
        i = rng.randrange(len(board.code))
        if board.move(i, rng.choice(board.reach(i))):
            tables.append(model.table(board.schedule()))
            if len(tables) % 2:
                rival = board.schedule()
            else:
                board.restore(rival)
    return tables


@pytest.mark.parametrize("name", ["softmax", "gemm_leaky_relu", "vector_add"])
def test_cycles_are_those_of_a_replay_from_the_beginning(name: str) -> None:
    for parameters in draw(small(name).model.parameters, 3, seed=1):
        model = small(name).model.with_parameters(parameters)
        courses, blocks = Courses(model, 2, model.resident), model.resident
        for table in wandering(name, model):
            assert courses.cycles(table) == model.cycles(table, 2, blocks)


def test_threads_do_not_change_them() -> None:
    model = small("gemm_leaky_relu").model
    tables = wandering("gemm_leaky_relu", model)
    courses = Courses(model, 1, model.resident)
    with ThreadPoolExecutor(3) as pool:
        found = list(pool.map(courses.cycles, tables))
    assert found == [model.cycles(table, 1, model.resident) for table in tables]


def test_a_schedule_that_differs_late_sets_out_late() -> None:
    """Of the same schedule everything is shared; of one that differs in the first instruction nothing."""
    model = small("gemm_leaky_relu").model
    table = model.table(small("gemm_leaky_relu").original)
    sheet = new_sheet(len(model.code.rows), model.visits(model.resident), NOTHING)
    cycles, _, _ = model.resumed(table, 0, model.resident, sheet)
    marks, looks = np.array([1, cycles // 4, cycles // 2], np.int64), sheet.looks
    assert looks[0] == 0 < looks[looks < FAR].max() < cycles
    assert marks_passed(table, table, looks, marks) == 3
    other = model.table(rescheduled("gemm_leaky_relu"))
    differing = np.flatnonzero((other != table).reshape(len(looks), -1).any(axis=1))
    passed = marks_passed(other, table, looks, marks)
    assert passed == int((marks <= looks[differing].min()).sum())


def test_a_replay_goes_on_from_every_state_that_was_kept() -> None:
    model = small("gemm_leaky_relu").model
    table = model.table(small("gemm_leaky_relu").original)
    cycles = model.cycles(table, 5, model.resident)
    marks = np.array([0, cycles // 3, cycles], np.int64)
    sheet = new_sheet(len(model.code.rows), model.visits(model.resident), marks)
    found, states, _ = model.resumed(table, 5, model.resident, sheet)
    assert found == cycles
    assert len(states) == 2  # nothing is issued any more when the last mark comes
    for state in states:
        again = sheet._replace(marks=NOTHING)
        assert model.resumed(table, 5, model.resident, again, state)[0] == cycles
    assert not np.array_equal(states[0], states[1])


def late_at(passes: Int, rival: Int, allowed: int, patience: int) -> int | None:
    """The visit at which a schedule is given up."""
    late = 0
    for number, (at, other) in enumerate(zip(passes, rival, strict=True)):
        late = late + 1 if at - other > allowed else 0
        if late == patience:
            return number
    return None


@pytest.mark.parametrize("name", ["softmax", "gemm_leaky_relu"])
def test_who_is_given_up_depends_on_the_two_schedules_only(name: str) -> None:
    """Not on what was replayed before: that decides where a replay sets out."""
    model = small(name).model
    patience = model.resident * model.header.block[0] // 32
    fresh, used = Courses(model, 2, model.resident), Courses(model, 2, model.resident)
    tables = wandering(name, model)
    whole = [used.follow(table) for table in tables]
    given_up = 0
    for table, course, rival in zip(tables[1:], whole[1:], whole, strict=False):
        for allowed in (0, 10):
            at = late_at(course.passes, rival.passes, allowed, patience)
            for courses in (fresh, used):
                found = courses.follow(table, rival.passes, allowed)
                if at is None:
                    assert (found.behind, found.cycles) == (0, course.cycles)
                    assert found.passes.tolist() == course.passes.tolist()
                else:
                    assert found.behind == course.passes[at] - rival.passes[at]
                assert courses.behind(course.passes, rival.passes, allowed) == found.behind
            given_up += at is not None
    assert 0 < given_up < 2 * len(tables)


def test_visits_are_as_many_as_end() -> None:
    model = small("vector_add").model
    table = model.table(small("vector_add").original)
    passes = Courses(model, 0, model.resident + 1).follow(table).passes
    assert len(passes) == model.visits(model.resident + 1)
    assert passes[0] > 0
    assert (np.diff(passes) >= 0).all()
