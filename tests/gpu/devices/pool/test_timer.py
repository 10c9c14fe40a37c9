"""Workers in place of one process: the same answers and the same way, whoever dies or hangs meanwhile."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Callable, Iterator

import pytest

from cuasmrl.agents import Agent
from cuasmrl.agents.evolve import Evolve
from cuasmrl.agents.greedy import Greedy
from cuasmrl.agents.policy.agent import PolicyClimb
from cuasmrl.errors import CuasmrlError
from cuasmrl.game import Clock, Evaluation, Game
from cuasmrl.gpu.devices import CandidateError, Rival, Timer, VirtualTimer
from cuasmrl.gpu.devices.pool import Crew, PooledTimer, Processes, check_workers, replica_of
from cuasmrl.gpu.devices.pool import timer as pool_timer
from cuasmrl.gpu.devices.pool.crew import Seat
from cuasmrl.gpu.devices.pool.messages import Broken, Line, Ready, receive, send
from cuasmrl.gpu.launches.launch import Launch
from cuasmrl.schedule import Schedule
from tests.climbing import kernel as small_gemm
from tests.gpu.devices.pool.crews import Serve, Threads, dies_at, ends_at_once, hangs_at

BUDGET = 60
AGENTS: list[Agent] = [Greedy(patience=15), Greedy(patience=15, lag=3), Evolve(lag=3)]


def alone() -> VirtualTimer:
    return VirtualTimer(small_gemm(), iterations=2, seeds=(1, 2, 3, 4, 5, 6), workers=1)


def pooled(crew: Crew, patience: float = 60.0) -> PooledTimer:
    local = alone()
    return PooledTimer(local, crew, lambda: replica_of(local, no_launch, crew.width), patience)


def no_launch() -> Launch:
    raise AssertionError("the virtual GPU launches nothing")


def played(agent: Agent, timer: Timer) -> list[Evaluation]:
    kernel, seen = small_gemm(), list[Evaluation]()
    clock = Clock(timer, kernel.original, BUDGET, listener=seen.append)
    agent.play(lambda: Game(kernel.listing, clock, kernel), seed=0)
    return seen


@pytest.fixture(scope="module")
def ways() -> dict[str, list[Evaluation]]:
    return {str(agent): played(agent, alone()) for agent in AGENTS}


@pytest.fixture
def threads() -> Iterator[Callable[..., PooledTimer]]:
    opened: list[PooledTimer] = []

    def make(width: int, *works: Serve, patience: float = 60.0) -> PooledTimer:
        opened.append(pooled(Threads(width, *works), patience))
        return opened[-1]

    yield make
    for timer in opened:
        timer.close()


@pytest.mark.parametrize("agent", AGENTS, ids=["greedy", "greedy with a lag", "evolve"])
@pytest.mark.parametrize("width", [1, 2, 4, 8])
def test_the_way_does_not_depend_on_the_number_of_workers(
    agent: Agent, width: int, ways: dict[str, list[Evaluation]], threads: Callable[..., PooledTimer]
) -> None:
    timer = threads(width)
    assert played(agent, timer) == ways[str(agent)]
    assert timer.lost == 0
    assert sum(timer.workers.values()) >= BUDGET


@pytest.mark.parametrize("lag", [0, 3])
def test_the_way_of_a_policy_does_not_depend_on_it_either(
    lag: int, threads: Callable[..., PooledTimer]
) -> None:
    """It learns in play which of its moves help, so what is proposed ahead must leave no trace."""
    agent = PolicyClimb(patience=15, lag=lag)
    assert played(agent, threads(3)) == played(agent, alone())


@pytest.mark.parametrize("agent", AGENTS, ids=["greedy", "greedy with a lag", "evolve"])
def test_what_workers_that_die_were_asked_is_asked_of_others(
    agent: Agent, ways: dict[str, list[Evaluation]], threads: Callable[..., PooledTimer]
) -> None:
    timer = threads(2, dies_at(1), dies_at(5), dies_at(9))
    assert played(agent, timer) == ways[str(agent)]
    assert timer.lost == 3
    assert len(timer.workers) == 2, "each is replaced"


def test_thirty_workers_die(
    ways: dict[str, list[Evaluation]], threads: Callable[..., PooledTimer], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every few questions one, at random: nothing is lost, and nothing counted twice."""
    monkeypatch.setattr(pool_timer, "ATTEMPTS", 31)
    rng = random.Random(5)
    timer = threads(3, *[dies_at(rng.randint(1, 2)) for _ in range(30)])
    assert played(AGENTS[1], timer) == ways[str(AGENTS[1])]
    assert timer.lost == 30


def test_a_worker_that_hangs_is_replaced(
    ways: dict[str, list[Evaluation]], threads: Callable[..., PooledTimer], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool_timer, "_LOOK", 0.02)
    timer = threads(2, hangs_at(7), patience=0.3)
    # With a lag every question is waited for.
    assert played(AGENTS[1], timer) == ways[str(AGENTS[1])]
    assert timer.lost >= 1


def test_a_schedule_that_ends_every_worker_ends_the_run(
    threads: Callable[..., PooledTimer], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool_timer, "ATTEMPTS", 2)
    timer = threads(1, dies_at(1), dies_at(1))
    with pytest.raises(CuasmrlError, match=r"2 workers in turn were lost over schedule \w{12}: .* ended"):
        timer.time(small_gemm().original)


def test_workers_that_do_not_start(
    threads: Callable[..., PooledTimer], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool_timer, "_LOOK", 0.01)
    timer = threads(2, *[ends_at_once] * 9)
    with pytest.raises(CuasmrlError, match="no worker starts: the last one ended"):
        timer.time(small_gemm().original)


def test_workers_learn_what_others_have_replayed(threads: Callable[..., PooledTimer]) -> None:
    """Whoever races against a schedule that another worker has timed does not replay it again."""
    local, timer = alone(), threads(2)
    kernel = small_gemm()
    game = Game(kernel.listing, Clock(local, kernel.original, 9), kernel)
    moved = neighbours(game, 4)
    original = Rival(kernel.original, local.time(kernel.original))
    times = timer.times(moved, original)
    assert times == [local.time(schedule, original) for schedule in moved]
    fastest = moved[times.index(min(times))]
    known = timer._known[fastest.key]
    assert known == pytest.approx(local.panel.known(fastest), nan_ok=True)


def neighbours(game: Game, count: int) -> list[Schedule]:
    rng, found = random.Random(3), dict[bytes, Schedule]()
    while len(found) < count:
        move = game.random_shift(rng)
        if move is not None and game.play(move):
            found[game.schedule.key] = game.schedule
            game.back_to(game.original)
    return list(found.values())


def test_what_was_withdrawn_is_not_answered_and_can_be_asked_again(
    threads: Callable[..., PooledTimer],
) -> None:
    local, timer = alone(), threads(1)
    kernel = small_gemm()
    moved = neighbours(Game(kernel.listing, Clock(local, kernel.original, 9), kernel), 6)
    for schedule in moved:
        timer.announce(schedule)
    timer.withdraw(moved[1:])
    assert timer.time(moved[0]) == local.time(moved[0])
    assert timer.time(moved[3]) == local.time(moved[3])
    assert sum(timer.workers.values()) < len(moved), "most were never looked at"


class _Picky:
    """A device that refuses some schedules; it can be pickled, so any worker has one."""

    device, unit, finalists = "picky", "cycles", 1

    def __init__(self) -> None:
        self.kernel = small_gemm()

    def open(self, seat: int) -> Timer:
        return self  # type: ignore[return-value]

    def time(self, schedule: Schedule, rival: Rival | None = None) -> float:
        if schedule.key == self.kernel.original.key:
            raise CandidateError("schedule 0 does not run")
        return 5.0


def test_what_a_device_refuses_is_refused_here() -> None:
    local = _Picky()
    timer = PooledTimer(local, Threads(2), lambda: local)  # type: ignore[arg-type]
    original = small_gemm().original
    with pytest.raises(CandidateError, match="schedule 0 does not run") as found:
        timer.time(original)
    assert found.value.key == original.key
    game = Game(small_gemm().listing, Clock(alone(), original, 9), small_gemm())
    assert timer.times([original, *neighbours(game, 1)]) == [float("inf"), 5.0]
    timer.close()


def test_workers_that_cannot_open_the_device_say_why() -> None:
    timer = PooledTimer(alone(), Threads(1, _closed), _Picky)
    with pytest.raises(CuasmrlError, match="a worker cannot go on: there is no cuda:7 on this machine"):
        timer.time(small_gemm().original)


def test_workers_with_other_code_are_refused(threads: Callable[..., PooledTimer]) -> None:
    timer = threads(1, _old)
    with pytest.raises(CuasmrlError, match="worker 0 runs other code of cuasmrl than this process; install"):
        timer.time(small_gemm().original)


def _old(line: Line, number: int) -> None:
    receive(line)
    send(line, Ready("of last year"))


def _closed(line: Line, number: int) -> None:
    receive(line)
    send(line, Broken("there is no cuda:7 on this machine; the only GPU is cuda:0"))


def test_processes_that_are_killed_and_stopped(ways: dict[str, list[Evaluation]]) -> None:
    """Real ones: the first is killed and the second stopped while they have something to do."""

    class Disturbed(PooledTimer):
        count = 0

        def time(self, schedule: Schedule, rival: Rival | None = None) -> float:
            Disturbed.count += 1
            if Disturbed.count == 20:
                os.kill(pid_of(self._members[0].seat), signal.SIGKILL)
            if Disturbed.count == 30:
                # From now on it is silent, so the time that a busy machine may take is short for this test.
                os.kill(pid_of(self._members[0].seat), signal.SIGSTOP)
                self.patience = 5.0
            return super().time(schedule, rival)

    local, crew = alone(), Processes(2)
    timer = Disturbed(local, crew, lambda: replica_of(local, no_launch, 2))
    assert played(AGENTS[1], timer) == ways[str(AGENTS[1])]
    assert timer.lost >= 2
    timer.close()


def pid_of(seat: Seat) -> int:
    return int(seat.process.pid)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("width", "sentence"),
    [
        (0, "--workers 0 leaves nobody to work; give at least 1"),
        (100_000, r"100000 workers may need \d+ GiB, and \d+ GiB are free; give --workers \d+"),
    ],
)
def test_impossible_numbers_of_workers(width: int, sentence: str) -> None:
    with pytest.raises(CuasmrlError, match=sentence):
        check_workers(width)
