"""From workloads to weights: the same settings give the same ones, and those shipped fit this version."""

from dataclasses import replace
from pathlib import Path

import pytest

from cuasmrl import workloads
from cuasmrl.agents.policy import curriculum, weights
from cuasmrl.agents.policy.curriculum import HELD_OUT, Curriculum, subjects, train
from cuasmrl.agents.policy.lessons import Plan
from cuasmrl.agents.policy.training import Course, Progress
from cuasmrl.errors import CuasmrlError

PLAN = Plan(stops=(0, 5), moves=12)
SMALL = Curriculum(
    tuple(w.name for w in workloads.all() if w.name != "vector_add"), ("a100",), 1, 2,
    plan=PLAN, next_plan=PLAN, course=Course(width=8, head=8, epochs=1),
)  # fmt: skip


class Silent:
    def lesson(self, number: int, done: int, total: int) -> None:
        pass

    def epoch(self, number: int, progress: Progress) -> None:
        pass


@pytest.mark.slow
def test_the_same_settings_give_the_same_weights_though_interrupted(tmp_path: Path) -> None:
    one, other = tmp_path / "one.safetensors", tmp_path / "other.safetensors"
    about = train(SMALL, tmp_path / "one", one, 1, Silent())
    assert about["round 2"]["moves"] > 0
    train(replace(SMALL, rounds=1), tmp_path / "other", other, 1, Silent())
    train(SMALL, tmp_path / "other", other, 1, Silent())
    assert one.read_bytes() == other.read_bytes()
    with pytest.raises(CuasmrlError, match="another curriculum"):
        train(replace(SMALL, seed=1), tmp_path / "one", one, 1, Silent())


def test_what_is_held_out_is_not_seen() -> None:
    seen = {subject.workload for subject in subjects(Curriculum())}
    assert seen
    assert not seen & set(HELD_OUT)
    assert {w.name for w in workloads.all() if w.published} <= set(HELD_OUT)
    with pytest.raises(CuasmrlError, match="held out"):
        subjects(Curriculum(hold_out=tuple(workloads.names())))


def test_the_weights_that_come_along_fit_this_version() -> None:
    tensors, about = weights.load(weights.DEFAULT)
    assert set(HELD_OUT) <= set(about["curriculum"]["hold_out"])
    assert sum(tensor.size for tensor in tensors.values()) > 10_000
    assert weights.DEFAULT.stat().st_size < 1 << 20
    assert set(about["curriculum"]) == set(curriculum.Curriculum.__dataclass_fields__)
