"""Kernels that wait to be optimised."""

import json
import os
from pathlib import Path

import pytest

from cuasmrl.deploy.store import Store, code_key
from cuasmrl.deploy.store.pending import MOST_LAUNCHES
from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.launches import load
from tests.deploy.store.faults import dies, disk_is_full, fault
from tests.deploy.store.results import compiled, entry, unproved

LAUNCH = {
    "format": 1, "grid": [4], "block": [128],
    "arguments": [{"dtype": "float32", "shape": [512], "fill": "normal"}, {"dtype": "int32", "value": 512}],
}  # fmt: skip


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def test_what_was_recorded_is_found(store: Store) -> None:
    store.record(compiled(), [LAUNCH], {"kernel": "softmax", "framework": "triton"})
    (found,) = store.recorded()
    assert (found.key, found.cubin.read_bytes()) == (code_key(compiled()), compiled())
    assert found.origin == {"kernel": "softmax", "framework": "triton"}
    (launch,) = found.launches
    assert load(launch).grid == (4, 1, 1)
    assert store.epoch == "empty", "what waits is no result"


def test_distinct_launches_are_kept_up_to_a_limit(store: Store) -> None:
    store.record(compiled())
    for grid in range(1, MOST_LAUNCHES + 10):
        store.record(compiled(), [{**LAUNCH, "grid": [grid]}, {**LAUNCH, "grid": [1]}])
    (found,) = store.recorded()
    assert len(found.launches) == MOST_LAUNCHES
    assert found.origin == {}
    assert json.loads(found.launches[0].read_text())["grid"] == [1]


def test_forgetting(store: Store) -> None:
    store.record(compiled(), [LAUNCH])
    assert store.forget_recorded(code_key(compiled()))
    assert not store.forget_recorded(code_key(compiled()))
    assert not store.forget_recorded("../../somewhere")
    assert store.recorded() == []
    assert os.listdir(store.root / "pending") == []


def test_what_has_a_result_waits_no_longer(store: Store, tmp_path: Path) -> None:
    """Whichever way the result came."""
    store.record(compiled(), [LAUNCH])
    store.record(compiled("rmsnorm"), [LAUNCH])
    store.put(unproved(entry()))
    assert [waiting.key for waiting in store.recorded()] == [code_key(compiled("rmsnorm"))]
    store.export(tmp_path / "one.tar")
    other = Store(tmp_path / "other")
    other.record(compiled(), [LAUNCH])
    other.import_(tmp_path / "one.tar")
    assert other.recorded() == []


def test_the_kernels_of_what_waits(store: Store) -> None:
    recorded = store.record(compiled())
    assert list(recorded.kernels) == ["softmax"]
    recorded.cubin.write_bytes(b"damaged")
    assert not recorded.kernels


def test_bad_input_is_one_sentence(store: Store) -> None:
    with pytest.raises(CuasmrlError, match="not a readable cubin"):
        store.record(b"text")
    with pytest.raises(CuasmrlError, match="must be JSON"):
        store.record(compiled(), [], {"path": Path()})
    assert not store.root.exists()


def test_a_process_may_die_at_every_step(store: Store, tmp_path: Path) -> None:
    with fault(None, dies) as counted:
        Store(tmp_path / "whole").record(compiled(), [LAUNCH], {"by": "test"})
    assert counted.done > 5
    for fatal in range(counted.done):
        mine = Store(tmp_path / str(fatal))
        child = os.fork()
        if not child:
            with fault(fatal, dies):
                mine.record(compiled(), [LAUNCH], {"by": "test"})
            os._exit(0)
        os.waitpid(child, 0)
        for found in mine.recorded():
            assert found.cubin.read_bytes() == compiled()
            assert found.origin == {"by": "test"}
            assert [load(launch).block for launch in found.launches] == [(128, 1, 1)]
        mine.record(compiled(), [LAUNCH], {"by": "test"})
        assert len(mine.recorded()) == 1


def test_a_full_disk_is_one_sentence(store: Store) -> None:
    store.record(compiled("rmsnorm"))
    with fault(None, disk_is_full, writers_only=True) as counted:
        store.record(compiled(), [LAUNCH])
    for fatal in range(counted.done):
        store.forget_recorded(code_key(compiled()))
        with (
            fault(fatal, disk_is_full, writers_only=True),
            pytest.raises(CuasmrlError, match="cannot note a kernel down .*No space left"),
        ):
            store.record(compiled(), [LAUNCH])
