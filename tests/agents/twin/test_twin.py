"""The agent that plans in a twin: what it may see, what it does with it, and that it is deterministic."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from cuasmrl.agents import AGENTS, match
from cuasmrl.agents.greedy import Greedy
from cuasmrl.agents.policy import weights
from cuasmrl.agents.policy.agent import PolicyClimb
from cuasmrl.agents.twin import Twin
from cuasmrl.checker import Checker
from cuasmrl.game import BudgetSpentError, Clock, Evaluation, Game
from cuasmrl.gpu.devices import Rival, VirtualTimer
from cuasmrl.gpu.devices.hidden import HiddenTimer, Secret
from cuasmrl.schedule import Schedule
from tests.climbing import kernel

QUICK = Twin(
    guesses=4, fresh=2, steps=1, replays=40, most_replays=80, singles=10, fit_every=4, patience=8, policy=None
)  # fmt: skip


class Veiled:
    """A timer that gives times, and fails whoever asks for anything else."""

    _allowed = frozenset(("time", "times", "device", "unit", "cost", "ahead", "announce", "withdraw"))

    def __init__(self, timer: HiddenTimer) -> None:
        self._timer = timer

    def __getattribute__(self, name: str) -> object:
        if name.startswith("__") or name in ("_timer", "_allowed"):
            return object.__getattribute__(self, name)
        assert name in self._allowed, f"a player asked its device for {name}"
        return getattr(self._timer, name)


def timer(secret: int = 1) -> HiddenTimer:
    hidden = HiddenTimer(kernel(), Secret(secret))
    # Without measuring how much has to be replayed.
    hidden.__dict__["effort"] = VirtualTimer(kernel(), iterations=2, seeds=(1,)).effort
    return hidden


def played(agent: Twin, budget: int, seed: int = 0, known: dict[bytes, float] | None = None) -> Clock:
    return match(agent, kernel(), timer(), budget, seed, known)


@pytest.mark.parametrize("agent", ["random", "greedy", "anneal", "evolve", "list", "twin"])
def test_no_agent_sees_more_of_its_device_than_times(agent: str) -> None:
    """Neither its parameters, nor where its time goes, nor what would be confirmed."""
    player = QUICK if agent == "twin" else AGENTS.named(agent)
    open_clock, veiled_clock = (
        match(player, kernel(), device, 30, 1)  # type: ignore[arg-type]
        for device in (timer(), Veiled(timer()))
    )
    assert open_clock.spent == veiled_clock.spent == 30
    assert open_clock.best.key == veiled_clock.best.key


def test_it_spends_its_budget_on_different_schedules_that_are_certified() -> None:
    seen: list[Evaluation] = []
    clock = match(QUICK, kernel(), timer(), 24, 0, None, seen.append)
    assert clock.spent == len({evaluation.key for evaluation in seen}) == 24
    assert clock.gain > 0
    Checker(kernel().cubin).check(clock.best.apply(kernel().cubin))


@pytest.mark.parametrize("budget", [1, 3])
def test_small_budgets_are_kept(budget: int) -> None:
    assert played(QUICK, budget).spent == budget


def test_the_same_seed_plays_the_same_game_and_a_run_that_goes_on_too() -> None:
    seen: list[list[Evaluation]] = [[], [], []]
    for number, found in enumerate(seen):
        known = {e.key: e.time for e in seen[0][:10]} if number == 1 else None
        match(QUICK, kernel(), timer(), 20, int(number == 2), known, found.append)
    assert [e.key for e in seen[0]] == [e.key for e in seen[1]]
    assert [e.key for e in seen[0]] != [e.key for e in seen[2]]


def test_batches_do_not_depend_on_the_number_of_workers() -> None:
    best = []
    for workers in (1, 2):
        device = timer()
        device.workers = workers
        best.append(match(QUICK, kernel(), device, 16, 0).best.key)
    assert best[0] == best[1]


def test_a_kernel_that_cannot_be_replayed_is_played_by_direct_search() -> None:
    clock = Clock(timer(), kernel().original, 10)
    with pytest.warns(RuntimeWarning, match="no twin of it"), suppress(BudgetSpentError):
        QUICK.play(lambda: Game(kernel().listing, clock), 0)
    assert clock.spent == 10


def test_a_device_as_cheap_as_a_replay_is_searched_directly(tmp_path: Path) -> None:
    """By what kind of device it is, and not by its name."""

    class Cheap(HiddenTimer):
        cost = 3.0

    class Dear(VirtualTimer):
        cost = 300.0

    quick = replace(QUICK, notes=tmp_path, policy=weights.DEFAULT)
    ways = []
    for agent, device in (
        (quick, Cheap(kernel(), Secret(1))),
        (PolicyClimb(), Cheap(kernel(), Secret(1))),
        (replace(quick, policy=None), VirtualTimer(kernel(), iterations=2, seeds=(1,))),
        (Greedy(), VirtualTimer(kernel(), iterations=2, seeds=(1,))),
    ):
        seen = list[Evaluation]()
        match(agent, kernel(), device, 12, 0, None, seen.append)
        ways.append([evaluation.key for evaluation in seen])
    assert ways[0] == ways[1]
    assert ways[2] == ways[3]
    assert not (tmp_path / "beliefs.json").exists()
    assert "the device itself is searched" in (tmp_path / "twin.jsonl").read_text()
    match(quick, kernel(), Dear(kernel(), iterations=2, seeds=(1,)), 8, 0)
    assert (tmp_path / "beliefs.json").exists()


@pytest.mark.parametrize("off", [{"fit_every": 0}, {"plans": False}])
def test_parts_can_be_left_out(off: dict[str, int]) -> None:
    assert played(replace(QUICK, **off), 12).spent == 12  # type: ignore[arg-type]


def test_a_device_that_refuses_everything_ends_with_the_original() -> None:
    class Refusing(VirtualTimer):
        cost = 300.0

        def times(self, schedules: Sequence[Schedule], rival: Rival | None = None) -> list[float]:
            original = kernel().original.key
            return [100.0 if s.key == original else math.inf for s in schedules]

    clock = match(QUICK, kernel(), Refusing(kernel(), iterations=2, seeds=(1,)), 8, 0)
    assert clock.best.key == kernel().original.key


def test_it_writes_down_how_it_went_and_what_it_believes(tmp_path: Path) -> None:
    played(replace(QUICK, notes=tmp_path), 16)
    lines = [json.loads(line) for line in (tmp_path / "twin.jsonl").read_text().splitlines()]
    assert [line["spent"] for line in lines if "spent" in line] == [4, 8, 12, 16]
    assert sum("noise" in line for line in lines) == 4
    beliefs = json.loads((tmp_path / "beliefs.json").read_text())
    assert {"name", "unit", "stated", "before", "after", "left"} <= set(beliefs[0])
    assert [one["left"] for one in beliefs] == sorted(one["left"] for one in beliefs)
