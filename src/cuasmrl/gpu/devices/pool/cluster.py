"""A Ray cluster: connecting to it, in words if that fails. Ray is imported when somebody asks for it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cuasmrl.errors import CuasmrlError

NEWEST = "newest"
"""Of addresses: a cluster of this machine, which is started if there is none."""


def installed() -> Any:
    """The module."""
    try:
        import ray
        import ray.util.scheduling_strategies
    except ImportError:
        raise CuasmrlError(
            "Ray is not installed; pip install 'cuasmrl[fleet]', or leave out --on ray"
        ) from None
    return ray


def connected(address: str | None) -> Any:
    """The module, connected to a cluster: that at an address, or one of this machine."""
    ray = installed()
    if ray.is_initialized():
        return ray
    given: dict[str, Any] = {"log_to_driver": False, "configure_logging": False}
    given |= {"include_dashboard": False} if address in (None, NEWEST) else {"address": address}
    try:
        ray.init(**given)
    except (ConnectionError, RuntimeError, ValueError) as error:
        sentence = " ".join(str(error).split())[:300]
        raise CuasmrlError(
            f"no Ray cluster at {address or 'this machine'}: {sentence}; start one with `ray start --head`, "
            f"by the same version (Ray {ray.__version__})"
        ) from error
    return ray


def check_shared(ray: Any, folder: Path) -> None:
    """Every node must see what is written here."""
    probe = folder / ".reached"
    try:
        probe.write_text("")
    except OSError as error:
        raise CuasmrlError(f"cannot write {folder}: {error.strerror}; choose a writable place") from error
    nodes = [node["NodeID"] for node in ray.nodes() if node["Alive"]]
    strategy = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy
    sees = ray.remote(_sees)
    asked = [
        sees.options(num_cpus=0, scheduling_strategy=strategy(node, soft=False)).remote(str(probe))
        for node in nodes
    ]
    blind = sum(not _answer(ray, reference) for reference in asked)
    probe.unlink()
    if blind:
        raise CuasmrlError(
            f"{folder} cannot be reached from {blind} of {len(nodes)} nodes; put it where all of them see it "
            "(CUASMRL_STORE for the store, --run or --work for the rest)"
        )


def _answer(ray: Any, reference: Any) -> bool:
    """A node that goes while it is asked will get no tasks either."""
    try:
        return bool(ray.get(reference))
    except ray.exceptions.RayError:
        return True


def _sees(path: str) -> bool:
    return Path(path).exists()


@contextmanager
def two_nodes() -> Iterator[str]:
    """The address of a cluster of two nodes with a processor each, on this machine: for measurements."""
    installed()
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    cluster.add_node(num_cpus=1)
    try:
        yield str(cluster.address)
    finally:
        cluster.shutdown()
