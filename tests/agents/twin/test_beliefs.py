"""Guesses are fitted to times: they get less wrong, and what does not matter is left alone."""

from __future__ import annotations

import random
from functools import lru_cache

import numpy as np
import pytest

from cuasmrl.agents.twin.beliefs import Beliefs, Seen, informative, interval
from cuasmrl.agents.twin.guess import Guess
from cuasmrl.agents.twin.numbers import drawn, sensitive, stepped
from cuasmrl.schedule import Board, Schedule
from tests.climbing import kernel


@lru_cache
def nominal() -> Guess:
    return Guess(kernel().part(4))


@lru_cache
def schedules() -> tuple[Schedule, ...]:
    board, rng = Board(kernel().listing), random.Random(0)
    found: list[Schedule] = []
    while len(found) < 24:
        board.reset()
        for i in rng.sample(range(len(board.code)), 60):
            others = board.others(i)
            if len(others):
                board.move(i, int(rng.choice(others)))
        found.append(board.schedule())
    return tuple(found)


@lru_cache
def names() -> tuple[str, ...]:
    return sensitive(nominal(), schedules()[:6])


def seen_on(device: Guess, chosen: tuple[Schedule, ...]) -> list[Seen]:
    return [Seen(schedule, device.predict(schedule)) for schedule in chosen]


def error(beliefs: Beliefs, device: Guess, chosen: tuple[Schedule, ...]) -> float:
    """How wrong guesses are, on average."""
    left = [[device.predict(s) - guess.predict(s) for s in chosen] for guess in beliefs.guesses]
    return float(np.std(left, axis=1).mean())


def test_numbers_that_matter_change_how_schedules_compare() -> None:
    # Under any draw of the jitter: who waits for data waits for DRAM, so how far L2 is matters in few draws.
    assert {"dram_latency", "l2_jitter", "bar_latency", "raw LDSM", "interval HMMA.16816.F32"} <= set(names())
    # There is no double precision in this kernel, and nobody launches it.
    assert not {"fp64_latency", "launch_time", "xu_hold"} & set(names())
    assert len(names()) < len(nominal().numbers) / 2


def test_a_fit_brings_guesses_nearer_to_the_device_also_on_schedules_it_has_not_seen() -> None:
    known, unknown = schedules()[:16], schedules()[16:]
    nearer = []
    for secret in range(3):
        device = nominal().changed(drawn(nominal().numbers, 1, random.Random(100 + secret))[0])
        beliefs = Beliefs(nominal(), names(), 12, random.Random(secret))
        before = [error(beliefs, device, chosen) for chosen in (known, unknown)]
        for _ in range(4):
            beliefs.fit(seen_on(device, known), 12, 2)
        after = [error(beliefs, device, chosen) for chosen in (known, unknown)]
        assert after[0] < 0.7 * before[0]
        nearer.append(after[1] / before[1])
    assert np.median(nearer) < 0.8


def test_the_same_random_numbers_lead_to_the_same_beliefs() -> None:
    device = nominal().changed(drawn(nominal().numbers, 1, random.Random(5))[0])
    fitted = []
    for _ in range(2):
        beliefs = Beliefs(nominal(), names(), 4, random.Random(1))
        beliefs.fit(seen_on(device, schedules()[:6]), 4, 1)
        fitted.append([dict(guess.numbers) for guess in beliefs.guesses])
    assert fitted[0] == fitted[1]


def test_what_is_believed_stays_within_the_ranges_of_the_file() -> None:
    device = nominal().changed(drawn(nominal().numbers, 1, random.Random(5))[0])
    beliefs = Beliefs(nominal(), names(), 4, random.Random(1))
    beliefs.fit(seen_on(device, schedules()[:8]), 4, 2)
    revealed = beliefs.revealed()
    assert {belief.name for belief in revealed} == set(names())
    for belief in revealed:
        number = nominal().numbers.numbers[belief.name]
        assert number.low <= belief.before[0] <= belief.before[1] <= number.high
        assert number.low <= belief.after[0] <= belief.after[1] <= number.high


def test_a_step_changes_a_few_numbers_and_nothing_else() -> None:
    rng = random.Random(0)
    for _ in range(50):
        other = stepped(nominal().numbers, names(), rng)
        changed = {name for name in other if other[name] != nominal().numbers[name]}
        assert len(changed) <= 4
        assert changed <= set(names())


def test_numbers_that_no_instruction_depends_on_leave_the_code_as_it_is() -> None:
    slower = nominal().numbers.with_values({"l2_latency": 300.0})
    assert nominal().changed(slower).model.code is nominal().model.code
    name = next(name for name in nominal().of_code if name.startswith("latency HMMA"))
    number = nominal().numbers.numbers[name]
    hotter = nominal().changed(nominal().numbers.with_values({name: number.high}))
    assert hotter.model.code is not nominal().model.code
    one = schedules()[0]
    plain = nominal().model.with_parameters(slower)
    assert nominal().changed(slower).model.cycles(plain.table(one), 1) == plain.cycles(plain.table(one), 1)


def test_of_many_times_the_fastest_and_the_latest_are_looked_at() -> None:
    rng = random.Random(0)
    seen = [Seen(schedules()[0], rng.gauss(0, 1)) for _ in range(100)]
    chosen = informative(seen, 30)
    assert len(chosen) == len(set(map(id, chosen))) == 30
    assert set(map(id, seen[-10:])) <= set(map(id, chosen))
    assert set(map(id, sorted(seen, key=lambda one: one.change)[:10])) <= set(map(id, chosen))
    assert informative(seen[:5], 30) == seen[:5]


def test_the_middle_of_values() -> None:
    assert interval([float(k) for k in range(101)]) == (5, 95)
    assert interval([2.0]) == (2, 2)


@pytest.mark.parametrize("chosen", [0, 3])
def test_predictions_are_of_the_device_that_is_guessed(chosen: int) -> None:
    guess = nominal().changed(drawn(nominal().numbers, 4, random.Random(7))[chosen])
    one = schedules()[1]
    cycles = [guess.model.cycles(guess.model.table(s), guess.seeds[0], guess.model.resident)
              for s in (kernel().original, one)]  # fmt: skip
    if len(guess.seeds) == 1:
        assert guess.predict(one) == pytest.approx(np.log(cycles[1] / cycles[0]))
    assert guess.predict(kernel().original) == 0
