"""Several GPUs for one kernel: one for each worker, and alike."""

from __future__ import annotations

import pickle
from functools import partial

import numpy as np
import pytest

from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.devices.cuda import CudaTimer
from cuasmrl.gpu.devices.driver import Gpu
from cuasmrl.gpu.devices.pool import replica, replica_of
from cuasmrl.gpu.launches.launch import Launch
from tests.climbing import kernel
from tests.gpu.devices.fake_driver import FakeDriver, Scene


class Mixed(FakeDriver):
    """The third GPU is another one."""

    def gpu(self, ordinal: int) -> Gpu:
        name = "Other GPU" if ordinal == 2 else "Fake GPU"
        return Gpu(ordinal, name, 80, 108, 40 << 20, 13010, "fake")


def on_first_gpu(count: int, driver: type[FakeDriver] = FakeDriver) -> CudaTimer:
    """As it would be once it has run the original, which needs a process."""
    timer = CudaTimer.__new__(CudaTimer)
    timer.kernel = kernel()
    timer.connect = partial(driver, Scene(count=count))
    timer.gpu = timer.connect().gpu(0)
    return timer


def a_launch() -> Launch:
    return Launch((1, 1, 1), (32, 1, 1), 0, (np.zeros(4, np.float32),))


def test_each_worker_opens_the_next_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[int] = []
    monkeypatch.setattr(replica, "CudaTimer", lambda kernel, ordinal, launch, connect: opened.append(ordinal))
    for own in (False, True):
        # On a cluster each worker sees its own GPU as the first one.
        made = replica.CudaReplica(kernel(), 0, a_launch(), partial(FakeDriver, Scene()), own)
        again = pickle.loads(pickle.dumps(made))
        for seat in range(3):
            again.open(seat)
    assert opened == [0, 1, 2, 0, 0, 0]


def test_gpus_that_are_not_there_or_not_alike() -> None:
    sentence = r"2 workers need a GPU each, from cuda:0 on: there is no cuda:1 .*; give fewer --workers"
    with pytest.raises(CuasmrlError, match=sentence):
        replica_of(on_first_gpu(1), a_launch, 2)
    assert isinstance(replica_of(on_first_gpu(2, Mixed), a_launch, 2), replica.CudaReplica)
    with pytest.raises(CuasmrlError, match="cuda:2 is a Other GPU and cuda:0 a Fake GPU; .* fewer --workers"):
        replica_of(on_first_gpu(3, Mixed), a_launch, 3)
    assert replica_of(on_first_gpu(1), a_launch, 8, own=True).kernel is kernel()
