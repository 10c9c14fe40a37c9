"""The same fleet on a Ray cluster; `python -m tests.deploy.fleet.kills --on ray` kills its nodes as well."""

import sys
from pathlib import Path

import pytest

from cuasmrl.deploy.fleet.head import run_fleet
from cuasmrl.deploy.fleet.on_ray import OnRay
from cuasmrl.deploy.fleet.pool import Alone
from cuasmrl.errors import CuasmrlError
from tests.deploy.fleet.playing import GIVEN, recorded_store, work
from tests.deploy.fleet.test_fleet import found


def test_without_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(CuasmrlError, match=r"Ray is not installed; pip install 'cuasmrl\[fleet\]'"):
        OnRay()


@pytest.mark.slow
def test_a_cluster_that_is_not_there() -> None:
    pytest.importorskip("ray")
    with pytest.raises(CuasmrlError, match="no Ray cluster at 127.0.0.1:9: "):
        OnRay("127.0.0.1:9")


@pytest.mark.slow
def test_two_nodes_find_what_one_process_finds(tmp_path: Path) -> None:
    pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    store = recorded_store(tmp_path / "store")
    alone = run_fleet(store, GIVEN, 60, 20, tmp_path / "alone", Alone(work))
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    cluster.add_node(num_cpus=1)
    pool = OnRay(cluster.address, [tmp_path], work=work)
    try:
        assert pool.width == 2
        assert found(run_fleet(store, GIVEN, 60, 20, tmp_path / "ray", pool)) == found(alone)
    finally:
        pool.close()
        cluster.shutdown()
