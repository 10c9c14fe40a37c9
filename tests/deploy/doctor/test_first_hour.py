"""The checklist for the first hour with a GPU, on drivers that pretend."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from cuasmrl.deploy.doctor import Finding, Level, first_hour
from cuasmrl.gpu.devices.cuda import available
from cuasmrl.gpu.devices.driver import Parameters
from tests.gpu.devices.fake_driver import FakeDriver, Scene

SCENE = Scene(time=9.0, records=True, throttle=())


class Adder(FakeDriver):
    """Adds two vectors as the workload does."""

    def _write(self, parameters: Parameters, value: int) -> None:
        places = [int.from_bytes(parameters.data[n : n + 8], "little") for n in (0, 8, 16)]
        x, y, out = (self.memory[place].view(np.float16) for place in places)
        out[:] = x + y if value == 7 else x


def examined(scene: Scene, driver: type[FakeDriver] = Adder) -> dict[str, Finding]:
    found = list(first_hour.examine(0, partial(driver, scene), lock_clocks=True))
    assert {finding.topic for finding in found} == {"first hour"}
    return {finding.subject: finding for finding in found}


def test_a_gpu_that_is_well() -> None:
    found = examined(SCENE)
    assert list(found) == [
        "cuda:0", "locked", "clocks", "timing", "results", "warm", "no gain", "times", "candidate", "next",
    ]  # fmt: skip
    assert not any(finding.level is Level.ACTION for finding in found.values())
    assert "sm_80, 108 SMs, driver for CUDA 13.1; a100 stands for it" in found["cuda:0"].text
    assert found["locked"].text == "locked at 1095 MHz"
    assert found["clocks"].text.startswith("SM clock 1410 MHz, power 250 W")
    assert "under load SM clock 1410 MHz" in found["no gain"].text
    assert "9.0" in found["times"].text
    assert "12,6" in found["times"].text  # 9 microseconds at 1410 MHz
    assert "is certified, computes the same" in found["candidate"].text


def test_a_gpu_that_computes_something_else() -> None:
    found = examined(SCENE, FakeDriver)
    assert found["results"].level is Level.ACTION
    assert "does not compute its reference" in found["results"].text
    assert "candidate" not in found


def test_without_instruments() -> None:
    found = examined(replace(SCENE, records=False, throttle=None))
    assert found["clocks"].level is found["timing"].level is Level.NOTE
    assert "cuasmrl[gpu]" in found["clocks"].advice
    assert found["candidate"].level is Level.OK


def test_a_gpu_that_slows_itself_down() -> None:
    found = examined(replace(SCENE, throttle=("power cap",)))
    assert found["no gain"].level is Level.ACTION
    assert "(power cap)" in found["no gain"].advice


@pytest.mark.parametrize(
    ("scene", "sentence"),
    [
        (Scene(version=11040), "for CUDA 11.4, and the oldest that will do is for 12.0"),
        (Scene(count=0), "there is no cuda:0"),
        (Scene(arch=70), "sm_70"),
    ],
)
def test_what_stands_in_the_way_is_said_first(scene: Scene, sentence: str) -> None:
    found = examined(scene)
    assert list(found) == ["cuda:0"]
    assert found["cuda:0"].level is Level.ACTION
    assert sentence in found["cuda:0"].text


@pytest.mark.skipif(available() is None, reason="there is a GPU")
def test_a_machine_without_a_gpu() -> None:
    (finding,) = first_hour.examine(0)
    assert (finding.level, finding.text) == (Level.ACTION, available())
