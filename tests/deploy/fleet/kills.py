"""A fleet in a storm: workers, nodes and heads are killed at random points, and the results are the same.

    python -m tests.deploy.fleet.kills --kills 50              # processes of this machine
    python -m tests.deploy.fleet.kills --kills 50 --on ray     # two nodes of a Ray cluster on this machine

Each head is a process of its own, started again whenever it was killed. Prints how often what was killed, and
whether schedules and logs are those of an undisturbed fleet.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from cuasmrl.deploy.fleet.head import Fleet, run_fleet
from cuasmrl.deploy.fleet.pool import Alone, Pool, Processes
from cuasmrl.deploy.store import Store
from tests.deploy.fleet.playing import GIVEN, recorded_store, work

BUDGET, SLICE = 200, 50
_BETWEEN = (1.0, 6.0)
"""Seconds between two kills."""


def found(fleet: Fleet) -> dict[str, tuple[int, str]]:
    """Of each kernel: evaluations, and the best schedule."""
    return {line.job.name: (line.spent, line.slices[-1].best) for line in fleet.lines}


def logged(place: Path) -> dict[str, list[str]]:
    """Every evaluation of every run."""
    return {path.parent.name: path.read_text().splitlines() for path in place.glob("*/log.jsonl")}


def head(store: str, place: str, on: str) -> None:
    """What a head process does."""
    pool: Pool
    if on == "processes":
        pool = Processes(2, work=work)
    else:
        from cuasmrl.deploy.fleet.on_ray import OnRay

        pool = OnRay(on, [Path(store)], work=work)
    run_fleet(Store(store), GIVEN, BUDGET, SLICE, Path(place), pool)
    pool.close()


class Cluster:
    """Two nodes of one processor each besides that of the head."""

    def __init__(self) -> None:
        from ray.cluster_utils import Cluster as Nodes

        self._nodes = Nodes(initialize_head=True, head_node_args={"num_cpus": 0})
        self.address: str = self._nodes.address
        self._added: list[Any] = [self._nodes.add_node(num_cpus=1) for _ in range(2)]

    def kill_node(self, rng: random.Random) -> None:
        gone = self._added.pop(rng.randrange(len(self._added)))
        self._nodes.remove_node(gone, allow_graceful=False)
        self._added.append(self._nodes.add_node(num_cpus=1))

    def close(self) -> None:
        self._nodes.shutdown()


def children(pid: int) -> list[int]:
    """Worker processes of a head."""
    found = []
    with contextlib.suppress(OSError):
        for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes():
                found.append(int(child))
    return found


def ray_workers() -> list[int]:
    """Processes that carry out tasks on the nodes of this cluster."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if path.read_bytes().startswith(b"ray::"):
                found.append(int(path.parent.name))
    return found


def storm(store: Path, place: Path, kills: int, rng: random.Random, cluster: Cluster | None) -> Counter[str]:
    """Run a fleet until it is done, killing something now and then."""
    on = cluster.address if cluster else "processes"
    command = [sys.executable, "-m", "tests.deploy.fleet.kills", "--head", str(store), str(place), on]
    killed: Counter[str] = Counter()
    process = subprocess.Popen(command)
    while True:
        try:
            status = process.wait(rng.uniform(*_BETWEEN))
            if status == 0:
                return killed
            process = subprocess.Popen(command)
        except subprocess.TimeoutExpired:
            if killed.total() < kills:
                what = _kill(process, rng, cluster)
                killed.update([what] if what else [])


def _kill(process: subprocess.Popen[bytes], rng: random.Random, cluster: Cluster | None) -> str | None:
    what = rng.choice(("worker", "worker", "head") if cluster is None else ("worker", "node", "head"))
    if what == "node" and cluster is not None:
        cluster.kill_node(rng)
        return what
    workers = ray_workers() if cluster else children(process.pid)
    target = process.pid if what == "head" else rng.choice(workers) if workers else None
    if target is None:
        return None
    with contextlib.suppress(ProcessLookupError):
        os.kill(target, signal.SIGKILL)
    return what


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--on", choices=("processes", "ray"), default="processes")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--head", nargs=3)
    asked = parser.parse_args()
    if asked.head:
        head(*asked.head)
        return
    rng = random.Random(asked.seed)
    folder = Path(tempfile.mkdtemp(prefix="fleet-"))
    store = recorded_store(folder / "store")
    expected = found(run_fleet(store, GIVEN, BUDGET, SLICE, folder / "undisturbed", Alone(work)))
    lines = logged(folder / "undisturbed")
    cluster = Cluster() if asked.on == "ray" else None
    killed: Counter[str] = Counter()
    same = fleets = 0
    start = time.monotonic()
    while killed.total() < asked.kills:
        place = folder / f"storm{fleets}"
        killed += storm(Path(store.root), place, asked.kills - killed.total(), rng, cluster)
        report = json.loads((place / "report.json").read_text())["kernels"]
        names = {Path(one["run"]).name: (one["spent"], one["best"]) for one in report}
        same += names == expected and logged(place) == lines
        fleets += 1
    kinds = ", ".join(f"{number} {what}s" for what, number in sorted(killed.items()))
    print(f"{asked.on}: {killed.total()} kills ({kinds}), fleets of {len(expected)} kernels")
    print(f"{same} of {fleets} with the schedules and evaluations of an undisturbed one")
    print(f"{time.monotonic() - start:.0f} s")
    if cluster is not None:
        cluster.close()
    sys.exit(same != fleets)


if __name__ == "__main__":
    main()
