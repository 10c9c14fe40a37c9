"""Workers on a Ray cluster: places from Ray, questions and answers over lines of their own."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cuasmrl.agents.greedy import Greedy
from cuasmrl.deploy.fleet import on_ray as fleets
from cuasmrl.errors import CuasmrlError
from cuasmrl.game import Evaluation
from cuasmrl.gpu.devices import Rival
from cuasmrl.gpu.devices.pool import PooledTimer, replica_of
from cuasmrl.gpu.devices.pool.on_ray import OnRay
from cuasmrl.schedule import Schedule
from tests.gpu.devices.pool.fake_ray import FakeRay
from tests.gpu.devices.pool.test_timer import alone, no_launch, played

AGENT = Greedy(patience=15, lag=3)


@pytest.fixture
def ray(monkeypatch: pytest.MonkeyPatch) -> FakeRay:
    return FakeRay().install(monkeypatch)


@pytest.fixture
def crew(ray: FakeRay) -> Iterator[OnRay]:
    made = OnRay("10.0.0.1:6379")
    yield made
    made.close()


@pytest.fixture(scope="module")
def way() -> list[Evaluation]:
    return played(AGENT, alone())


def test_the_way_is_that_of_one_process(ray: FakeRay, crew: OnRay, way: list[Evaluation]) -> None:
    assert ray.given["address"] == "10.0.0.1:6379"
    assert crew.width == 2
    local = alone()
    timer = PooledTimer(local, crew, lambda: replica_of(local, no_launch, 2))
    assert played(AGENT, timer) == way
    assert sorted(timer.workers) == [0, 1]
    timer.close()
    assert {task.options["max_retries"] for task in ray.tasks} == {0}


def test_what_a_lost_worker_was_asked_is_asked_of_another(
    ray: FakeRay, crew: OnRay, way: list[Evaluation]
) -> None:
    class Storm(PooledTimer):
        asked = 0

        def time(self, schedule: Schedule, rival: Rival | None = None) -> float:
            self.asked += 1
            if self.asked in (15, 25):
                # Its node is gone, whether or not the line to it says so.
                ray.tasks[-1].lost = True
                self._looked = 0.0
            return super().time(schedule, rival)

    ray.processors = 9
    local = alone()
    timer = Storm(local, crew, lambda: replica_of(local, no_launch, 2))
    timer.gather()
    assert played(AGENT, timer) == way
    assert timer.lost == 2
    timer.close()


def test_without_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(CuasmrlError, match=r"Ray is not installed; pip install 'cuasmrl\[fleet\]'"):
        OnRay()


@pytest.mark.parametrize(
    "said",
    [
        "Version mismatch: The cluster was started with:\n    Ray: 2.40.0\n    Python: 3.11.2\n"
        "This process on node 10.0.0.2 was started with:\n    Ray: 2.60.0",
        "Failed to connect to GCS at 10.0.0.1:6379",
    ],
)
def test_another_version_on_the_head(said: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    FakeRay(refusal=RuntimeError(said)).install(monkeypatch)
    sentence = " ".join(said.split())
    pattern = rf"no Ray cluster at 10.0.0.1:6379: {sentence[:40]}.*by the same version \(Ray 2.60.0\)"
    with pytest.raises(CuasmrlError, match=pattern):
        OnRay("10.0.0.1:6379")
    with pytest.raises(CuasmrlError, match=pattern):
        fleets.OnRay("10.0.0.1:6379", [tmp_path])


def test_more_workers_than_a_cluster_has_places_for(ray: FakeRay) -> None:
    with pytest.raises(CuasmrlError, match="9 workers need as many processors, and the Ray cluster has 2; "):
        OnRay(width=9)
    with pytest.raises(CuasmrlError, match="1 workers need as many GPUs, .* has 0; add a node that has one"):
        OnRay(gpus=True)
    with pytest.raises(CuasmrlError, match="--workers 0 leaves nobody to work"):
        OnRay(width=0)


def test_a_store_that_a_node_does_not_see(ray: FakeRay, tmp_path: Path) -> None:
    ray.blind.add("node-1")
    ray.processors = 2
    with pytest.raises(
        CuasmrlError, match=r"cannot be reached from 1 of 2 nodes; put it where all of them see it"
    ):
        fleets.OnRay("10.0.0.1:6379", [tmp_path])
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_two_nodes_of_a_real_cluster(way: list[Evaluation]) -> None:
    """And one of them goes in the middle; the other one does its work."""
    pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    node = cluster.add_node(num_cpus=1)
    crew = OnRay(cluster.address)

    class Storm(PooledTimer):
        asked = 0

        def time(self, schedule: Schedule, rival: Rival | None = None) -> float:
            self.asked += 1
            if self.asked == 20:
                cluster.remove_node(node, allow_graceful=False)
            return super().time(schedule, rival)

    local = alone()
    timer = Storm(local, crew, lambda: replica_of(local, no_launch, 2))
    try:
        timer.gather()
        assert played(AGENT, timer) == way
        assert timer.lost >= 1
    finally:
        timer.close()
        crew.close()
        cluster.shutdown()
