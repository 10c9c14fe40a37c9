"""A fleet: the same results on any number of workers, and whatever is killed."""

import os
import signal
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from cuasmrl.deploy.fleet.head import Fleet, run_fleet
from cuasmrl.deploy.fleet.pool import Alone, Done, Failed, Pool, Processes
from cuasmrl.deploy.fleet.tasks import Answer, Job, Survey, Surveyed, Task
from cuasmrl.deploy.store import Store
from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.devices.pool import check_memory
from tests.deploy.fleet.playing import GIVEN, recorded_store, work


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return recorded_store(tmp_path_factory.mktemp("shared") / "store")


def run(store: Store, place: Path, pool: Pool) -> Fleet:
    try:
        return run_fleet(store, GIVEN, 60, 20, place, pool)
    finally:
        pool.close()


def found(fleet: Fleet) -> list[tuple[str, int, str | None]]:
    return [
        (line.job.name, line.spent, line.slices[-1].best if line.slices else None) for line in fleet.lines
    ]


@pytest.fixture(scope="module")
def undisturbed(store: Store, tmp_path_factory: pytest.TempPathFactory) -> Fleet:
    return run(store, tmp_path_factory.mktemp("alone") / "fleet", Alone(work))


def test_alone(undisturbed: Fleet) -> None:
    lines = undisturbed.lines
    assert len(lines) == 3
    assert all(line.problem is None and line.finished is not None for line in lines)
    assert sum(line.spent for line in lines) <= 3 * 60
    roomy, _, cramped = lines
    assert cramped.slices[-1].gain == 0 < roomy.slices[0].gain
    assert cramped.spent == 2 * 20, "nothing gained twice, and no more is given"
    assert roomy.spent > cramped.spent, "budgets move to where something is gained"
    assert undisturbed.gain > 0


def test_processes_of_which_some_are_killed_find_the_same(
    store: Store, tmp_path: Path, undisturbed: Fleet
) -> None:
    pool = Processes(2, work=work)
    killed: list[int] = []

    def kill() -> None:
        for _ in range(3):
            time.sleep(1.5)
            living = [one.process.pid for one in list(pool._workers) if one.task is not None]
            if living and living[0] is not None:
                os.kill(living[0], signal.SIGKILL)
                killed.append(living[0])

    killer = threading.Thread(target=kill)
    killer.start()
    disturbed = run(store, tmp_path / "fleet", pool)
    killer.join()
    assert killed
    assert found(disturbed) == found(undisturbed)
    for line in disturbed.lines:
        numbers = (line.job.run / "log.jsonl").read_text().splitlines()
        assert len(numbers) == line.spent + 1, "nothing is lost, and nothing counted twice"


class Killed(BaseException):
    pass


def test_a_head_that_is_killed_goes_on(store: Store, tmp_path: Path, undisturbed: Fleet) -> None:
    class Dying(Alone):
        """Ends the head after some tasks."""

        left = 3

        def carry_out(self, tasks: Sequence[Task], done: Done) -> None:
            for task in tasks:
                if not self.left:
                    raise Killed
                self.left -= 1
                super().carry_out([task], done)

    place = tmp_path / "fleet"
    for _ in range(2):
        with pytest.raises(Killed):
            run(store, place, Dying(work))
    before = (place / "journal.jsonl").read_text().splitlines()
    assert len(before) == 6
    assert found(run(store, place, Alone(work))) == found(undisturbed)
    after = (place / "journal.jsonl").read_text().splitlines()
    assert after[:6] == before
    assert len({line.split('"kind"')[0] for line in after}) == len(after)


def test_two_heads_do_not_share_a_place(store: Store, tmp_path: Path) -> None:
    place = tmp_path / "fleet"

    class Nested(Alone):
        def carry_out(self, tasks: Sequence[Task], done: Done) -> None:
            run_fleet(store, GIVEN, 60, 20, place, Alone(work))

    with pytest.raises(CuasmrlError, match="is written by another head"):
        run_fleet(store, GIVEN, 60, 20, place, Nested(work))
    with pytest.raises(CuasmrlError, match="holds a fleet that was asked for"):
        run_fleet(store, GIVEN, 80, 20, place, Alone(work))


def test_a_kernel_that_fails_is_left_out(store: Store, tmp_path: Path) -> None:
    first = store.recorded()[0].key

    def failing(task: Task) -> Answer | Failed:
        return Failed("it cannot be traced") if task.job.key == first else work(task)

    fleet = run(store, tmp_path / "fleet", Alone(failing))
    assert [line.problem for line in fleet.lines] == ["it cannot be traced", None, None]
    assert fleet.lines[0].spent == 0
    assert sum(line.spent for line in fleet.lines) <= 2 * 60


def dies(task: Task) -> Answer | Failed:
    os._exit(3)


def hangs(task: Task) -> Answer | Failed:
    if task.job.kernel == "hangs":
        time.sleep(3600)
    return Surveyed(1.0, 0.0)


@pytest.fixture
def answers() -> dict[str, Answer | Failed]:
    return {}


def job(kernel: str) -> Job:
    return Job("", "", "0" * 64, kernel, (), {})


def test_a_task_that_kills_every_worker_fails(
    answers: dict[str, Answer | Failed], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cuasmrl.deploy.fleet.pool.ATTEMPTS", 2)
    pool = Processes(1, work=dies)
    pool.carry_out(
        [Survey(job("k"))], lambda task, answer, seconds: answers.update({task.job.kernel: answer})
    )
    pool.close()
    assert answers == {"k": Failed("the worker ended with status 3, 2 times")}


def test_a_task_that_hangs_fails_and_the_others_do_not(
    answers: dict[str, Answer | Failed], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cuasmrl.deploy.fleet.pool.ATTEMPTS", 2)
    pool = Processes(2, patience=1.0, work=hangs)
    tasks = [Survey(job(kernel)) for kernel in ("hangs", "a", "b")]
    pool.carry_out(tasks, lambda task, answer, seconds: answers.update({task.job.kernel: answer}))
    pool.close()
    assert answers["a"] == answers["b"] == Surveyed(1.0, 0.0)
    assert answers["hangs"] == Failed("the worker gave no answer in 1 s, 2 times")


def test_more_workers_than_memory_for_are_refused() -> None:
    with pytest.raises(CuasmrlError, match=r"100000 workers may need \d+ GiB, .* give --workers \d+"):
        check_memory(100_000)
