"""Clocks, power and reasons to slow down, with a management library that pretends."""

from types import SimpleNamespace
from typing import Any

import pytest

from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.devices.monitor import REASONS, Conditions, Nvml, Reading, open_monitor


class RefusalError(Exception):
    pass


def library(**answers: Any) -> SimpleNamespace:
    """As pynvml is called; what is not given is not supported."""

    def asked(name: str) -> Any:
        def answer(*arguments: Any) -> Any:
            if name not in answers:
                raise RefusalError("Not Supported")
            value = answers[name]
            return value[arguments[1]] if isinstance(value, dict) else value

        return answer

    names = (
        "nvmlDeviceGetPowerUsage", "nvmlDeviceGetCurrentClocksThrottleReasons", "nvmlDeviceGetClockInfo",
        "nvmlDeviceGetTemperature", "nvmlDeviceGetDefaultApplicationsClock", "nvmlDeviceSetGpuLockedClocks",
    )  # fmt: skip
    constants = {"NVML_CLOCK_SM": 1, "NVML_CLOCK_MEM": 2, "NVML_TEMPERATURE_GPU": 0}
    return SimpleNamespace(NVMLError=RefusalError, **constants, **{name: asked(name) for name in names})


def test_a_reading() -> None:
    nvml = library(
        nvmlDeviceGetPowerUsage=251_500,
        nvmlDeviceGetCurrentClocksThrottleReasons=0x01 | 0x04 | 0x40,
        nvmlDeviceGetClockInfo={1: 1410, 2: 1215},
        nvmlDeviceGetTemperature=63,
    )
    reasons = ("power cap", "hardware thermal slowdown")
    assert Nvml(nvml, "handle").read() == Reading(1410, 1215, 251.5, 63, reasons)


def test_what_a_gpu_does_not_say_is_left_out() -> None:
    assert Nvml(library(), "handle").read() == Reading()
    assert Conditions.of([Reading()] * 3) is not None
    assert "says nothing" in Conditions.of([Reading()] * 3).sentence  # type: ignore[union-attr]


def test_the_bits_are_those_of_the_library() -> None:
    pynvml = pytest.importorskip("pynvml")
    named = {
        "power cap": pynvml.nvmlClocksThrottleReasonSwPowerCap,
        "hardware slowdown": pynvml.nvmlClocksThrottleReasonHwSlowdown,
        "thermal slowdown": pynvml.nvmlClocksThrottleReasonSwThermalSlowdown,
        "hardware thermal slowdown": pynvml.nvmlClocksThrottleReasonHwThermalSlowdown,
        "power brake": pynvml.nvmlClocksThrottleReasonHwPowerBrakeSlowdown,
    }
    assert {name: bit for bit, name in REASONS.items()} == named
    assert callable(pynvml.nvmlDeviceGetHandleByUUID)


def test_without_a_driver_there_is_no_monitor() -> None:
    assert open_monitor("no such GPU") is None


@pytest.mark.parametrize(("slowed", "refused"), [(0, False), (9, False), (10, True), (200, True)])
def test_nothing_is_claimed_under_throttling(slowed: int, refused: bool) -> None:
    readings = [Reading(1410)] * (200 - slowed) + [Reading(1200, throttle=("power cap",))] * slowed
    conditions = Conditions.of(readings)
    assert conditions is not None
    assert (conditions.refusal is not None) is refused
    if refused:
        assert f"in {slowed} of 200 rounds (power cap); lock its clocks lower" in str(conditions.refusal)


def test_conditions_in_words() -> None:
    steady = Conditions.of([Reading(1410, 1215, 250.2, 60), Reading(1410, 1215, 251.9, 61)])
    assert steady is not None
    assert steady.sentence == "SM clock 1410 MHz, power 250 to 252 W, temperature 60 to 61 C"
    assert not steady.is_wandering
    wandering = Conditions.of([Reading(1410), Reading(1350)])
    assert wandering is not None
    assert wandering.is_wandering


def test_clocks_are_locked_where_that_is_allowed() -> None:
    allowed = {"nvmlDeviceSetGpuLockedClocks": None}
    nvml = Nvml(library(nvmlDeviceGetDefaultApplicationsClock=1095, **allowed), "handle")
    assert nvml.lock() == 1095
    with pytest.raises(CuasmrlError, match="cannot be locked: Not Supported; as root run nvidia-smi -lgc"):
        Nvml(library(nvmlDeviceGetDefaultApplicationsClock=1095), "handle").lock()
