"""How many conditions it takes to score a schedule."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from threading import Event
from typing import Any

import numpy as np
import pytest

from cuasmrl.gpu.devices import Rival
from cuasmrl.gpu.devices.panel import Panel
from cuasmrl.gpu.timing.courses import Course


@dataclass(frozen=True)
class Named:
    """A schedule as far as a panel looks at it."""

    key: bytes


@dataclass
class Chip:
    """Cycles by schedule; counts what it is asked."""

    cycles_of: dict[bytes, int]
    asked: list[bytes] = field(default_factory=list)
    seed: int = 0
    given_up: int = 0
    blocks: int = 1
    halfway: dict[bytes, int] = field(default_factory=dict)

    @property
    def model(self) -> "Chip":
        return self

    def table(self, schedule: Named) -> bytes:
        return schedule.key

    def follow(self, table: bytes, rival: Sequence[int], allowed: int) -> Course:
        """One visit, halfway: by then it is behind by half of what it will be."""
        self.asked.append(table)
        cycles = self.cycles_of[table]
        passes = np.array([self.halfway.get(table, cycles // 2)])
        behind = int(passes[0] - rival[0]) if len(rival) else 0
        given_up = behind > allowed
        self.given_up += given_up
        return Course(passes, 0 if given_up else cycles, passes, passes, (), behind if given_up else 0)

    def behind(self, passes: Sequence[int], rival: Sequence[int], allowed: int) -> int:
        behind = int(passes[0] - rival[0])
        return behind if behind > allowed else 0


OLD: Any = Named(b"old")
RIVAL: Any = Named(b"rival")
NEW: Any = Named(b"new")


def panel_of(new: Sequence[int], noise: float = 0.0, least: float = 0.0) -> tuple[Any, list[Chip]]:
    """The original takes 1000 cycles on every chip, the rival 900."""
    chips = [Chip({b"old": 1000, b"rival": 900, b"new": cycles}) for cycles in new]
    panel = Panel(chips, OLD, noise, least)  # type: ignore[arg-type]
    return panel, chips


def asked(chips: Sequence[Chip], schedule: Named) -> int:
    return sum(chip.asked.count(schedule.key) for chip in chips)


def test_a_time_is_the_mean_of_ratios_times_that_of_the_original() -> None:
    panel, _ = panel_of([800, 900, 1000, 1100])
    assert panel.time(NEW) == pytest.approx(950)


def test_who_is_no_different_on_four_chips_has_the_rivals_time() -> None:
    panel, chips = panel_of([900, 900, 900, 900, 100])
    assert panel.time(NEW, Rival(RIVAL, 905.0)) == 905.0
    assert asked(chips, NEW) == 4


def test_fewer_chips_are_enough_where_hardly_any_move_makes_a_difference() -> None:
    chips = [Chip({b"old": 1000, b"rival": 900, b"new": 900}) for _ in range(6)]
    panel = Panel(chips, OLD, equal=2)  # type: ignore[arg-type]
    assert panel.time(NEW, Rival(RIVAL, 905.0)) == 905.0
    assert asked(chips, NEW) == 2


def test_who_is_clearly_behind_is_given_up() -> None:
    panel, chips = panel_of([990, 800, 800, 800], noise=0.01, least=0.002)
    time = panel.time(NEW, Rival(RIVAL, 900.0))
    assert time == pytest.approx(945)  # by what it was behind halfway
    assert asked(chips, NEW) == chips[0].given_up == 1


def test_nobody_is_given_up_before_the_end_for_less_than_decides() -> None:
    """1.1 % behind at the end is enough; halfway that is 0.55 %, and it may still catch up."""
    panel, chips = panel_of([911, 800, 800, 800], noise=0.01, least=0.01)
    panel.time(NEW, Rival(RIVAL, 900.0))
    assert asked(chips, NEW) == 1
    assert not chips[0].given_up


def test_who_was_ahead_may_fall_behind_by_as_much_more() -> None:
    """2 % ahead on the first chip, so 4 % behind on the second may not be the end."""
    panel, chips = panel_of([880, 940, 800, 800], noise=0.001, least=0.001)
    panel.time(NEW, Rival(RIVAL, 900.0))
    assert not chips[1].given_up


def test_what_was_replayed_before_makes_no_difference() -> None:
    """2.4 % behind halfway, and in the end ahead on all chips, had it been replayed to the end."""
    told = []
    for is_known in (False, True):
        panel, chips = panel_of([899, 899, 899, 899], noise=0.01, least=0.002)
        for chip in chips:
            chip.halfway[b"new"] = 474
        if is_known:
            assert panel.time(NEW) == pytest.approx(899)
        told.append(panel.time(NEW, Rival(RIVAL, 900.0)))
    assert told[0] == told[1] == pytest.approx(924)


def test_what_another_panel_knows_is_a_saving_and_changes_no_answer() -> None:
    for blocks in (1, 3):
        panels = []
        for _ in range(3):
            _, chips = panel_of([990, 800, 800, 800], noise=0.01, least=0.002)
            for chip in chips:
                chip.blocks = blocks
                chip.asked.clear()
            panels.append((Panel(chips, OLD, 0.01, 0.002), chips))  # type: ignore[arg-type]
        (first, _), (second, chips), (alone, _) = panels
        first.time(RIVAL)
        second.learn(RIVAL, first.known(RIVAL))
        assert second.time(NEW, Rival(RIVAL, 900.0)) == alone.time(NEW, Rival(RIVAL, 900.0))
        assert asked(chips, RIVAL) == 0


def test_several_blocks_hide_delays_on_the_way() -> None:
    panel, chips = panel_of([990, 800, 800, 800], noise=0.01, least=0.002)
    several = Panel([replace(chip, blocks=3) for chip in chips], OLD, 0.01, 0.002)  # type: ignore[misc]
    assert panel.time(NEW, Rival(RIVAL, 900.0)) == pytest.approx(945)
    assert several.time(NEW, Rival(RIVAL, 900.0)) == pytest.approx(990)


def test_a_wider_margin_looks_longer() -> None:
    for margin, looks in ((1.0, 1), (2.0, 2)):
        chips = [Chip({b"old": 1000, b"rival": 900, b"new": cycles}) for cycles in (912, 912, 912, 912)]
        panel = Panel(chips, OLD, 0.008, 0.008, margin=margin)  # type: ignore[arg-type]
        assert panel.time(NEW, Rival(RIVAL, 900.0)) > 900
        assert asked(chips, NEW) == looks


def test_without_a_guess_of_the_noise_every_replay_is_finished() -> None:
    panel, chips = panel_of([1500, 1500, 1500, 1500])
    assert panel.time(NEW, Rival(RIVAL, 900.0)) == pytest.approx(1500)
    assert asked(chips, NEW) == 1
    assert not chips[0].given_up


def test_who_is_behind_by_less_than_the_noise_is_looked_at_again() -> None:
    panel, chips = panel_of([905, 880, 880, 880], noise=0.01, least=0.01)
    assert panel.time(NEW, Rival(RIVAL, 900.0)) == pytest.approx((905 + 3 * 880) / 4)
    assert asked(chips, NEW) == 4


def test_small_differences_are_believed_where_chips_differ_little_about_them() -> None:
    panel, chips = panel_of([905, 880, 880, 880], noise=0.01, least=0.0005)
    assert panel.time(NEW, Rival(RIVAL, 900.0)) == pytest.approx(902)
    assert asked(chips, NEW) == 1


def test_chips_that_disagree_are_asked_on() -> None:
    """Ahead on the second, far behind on the third: what they show counts, whatever the guess was."""
    panel, chips = panel_of([901, 880, 935, 880], noise=0.01, least=0.002)
    panel.time(NEW, Rival(RIVAL, 900.0))
    assert asked(chips, NEW) == 4


def test_chips_that_agree_need_no_more_of_them() -> None:
    panel, chips = panel_of([905, 905, 905, 905, 905, 905], noise=0.01, least=0.008)
    assert panel.time(NEW, Rival(RIVAL, 900.0)) > 900
    assert asked(chips, NEW) == 2


def test_a_race_that_nobody_waits_for_any_more_ends() -> None:
    panel, chips = panel_of([890, 890, 890, 890])
    withdrawn = Event()
    withdrawn.set()
    panel.time(NEW, Rival(RIVAL, 900.0), withdrawn)
    assert asked(chips, NEW) == 0


def test_who_is_faster_is_timed_in_full() -> None:
    panel, chips = panel_of([890, 890, 890, 890], noise=0.01)
    assert panel.time(NEW, Rival(RIVAL, 900.0)) == pytest.approx(890)
    assert asked(chips, NEW) == 4


def test_nothing_is_replayed_twice() -> None:
    panel, chips = panel_of([890, 890, 890, 890])
    for _ in range(3):
        panel.time(NEW, Rival(RIVAL, 900.0))
        panel.time(NEW)
    assert asked(chips, NEW) == asked(chips, RIVAL) == 4
    assert panel.replays == 12


def test_the_answer_does_not_depend_on_what_was_asked_before() -> None:
    """So that a run that is continued is the same run."""
    first, _ = panel_of([905, 880, 930, 880], noise=0.01)
    second, _ = panel_of([905, 880, 930, 880], noise=0.01)
    first.time(NEW)
    first.time(RIVAL)
    assert first.time(NEW, Rival(RIVAL, 900.0)) == second.time(NEW, Rival(RIVAL, 900.0))
