"""If a mechanism were free: each is switched off where it decides, and leaves the rest alone."""

import numpy as np
import pytest

from cuasmrl.gpu.chips import CHIPS
from cuasmrl.gpu.timing import L2, Model, counterfactuals_of, load_parameters
from cuasmrl.gpu.timing.counterfactuals import MECHANISMS
from cuasmrl.schedule import Schedule
from tests.gpu.timing.programs import model_of, stream
from tests.traced_kernels import traced

COLD = {"constant_miss": 79.0, "fetch_latency": 39.0, "fetch_gap": 2.0}
HMMA = "B------:R-:W-:-:S01  HMMA.16816.F32 R{0}, R12, R16, {1}"


def free(model: Model) -> dict[str, float]:
    """Cycles by mechanism, and of the real machine."""
    schedule = Schedule.original(model.listing)
    found = {one.mechanism: one.cycles for one in counterfactuals_of(model, schedule, [0])}
    return found | {"real": model.simulate(schedule).cycles}


def test_nothing_to_free() -> None:
    found = free(model_of(stream(*["NOP"] * 20), "a6000"))
    assert set(found.values()) == {21}


CASES = {
    "issue without stall counts": ["B------:R-:W-:-:S08  FADD R4, R6, R7"] * 10,
    "no waits for scoreboards": ["B0-----:R-:W0:-:S02  LDS R4, [R4]"] * 10,
    "constant cache always hits": ["FADD R4, R5, c[0x0][0x160]"],
    "instruction cache always hits": ["NOP"] * 40,
    "register ports unlimited": ["FFMA R20, R10, R12, R14"] * 40,
    "units take one instruction a cycle": [f"MUFU.EX2 R{20 + k}, R5" for k in range(20)],
    "memory queue unlimited": [f"LDS R{20 + k}, [R4]" for k in range(30)],
    "tensor cores at twice the rate": [HMMA.format(20 + 4 * (k % 8), "RZ") for k in range(40)],
    "tensor results at once": [HMMA.format(20, "R20")] * 20,
}


@pytest.mark.parametrize("name", CASES)
def test_the_mechanism_that_decides(name: str) -> None:
    found = free(model_of(stream(*CASES[name], arch=80), "a100", 1, **COLD))
    assert found[name] == min(found.values())
    assert found[name] < 0.8 * found["real"]


def test_barriers() -> None:
    found = free(traced("gemm_leaky_relu").model)
    assert found["no barriers"] < found["barriers release at once"] < found["real"]


def test_memory_of_real_kernels() -> None:
    found = free(traced("gemm_leaky_relu").model)
    for name in ("L2 as near as L1", "no waits for copies", "shared memory port unlimited"):
        assert found[name] < found["real"]
    kernel = traced("vector_add")
    streaming = free(kernel.model)
    assert streaming["DRAM bandwidth unlimited"] < 0.9 * streaming["real"]
    warm = free(Model(kernel.original, kernel.trace, kernel.chip, l2=L2.WARM))
    assert warm["L2 bandwidth unlimited"] < warm["real"]
    assert warm["next block starts at once"] < 0.9 * warm["real"]


def test_the_report_is_sorted_and_relative() -> None:
    kernel = traced("softmax")
    found = counterfactuals_of(kernel.model, kernel.original, range(2))
    assert [one.cycles for one in found] == sorted(one.cycles for one in found)
    assert {one.mechanism for one in found} == {mechanism.name for mechanism in MECHANISMS}
    real = np.mean([kernel.model.simulate(kernel.original, seed).cycles for seed in range(2)])
    for one in found:
        assert one.change == pytest.approx(one.cycles / real - 1)


def test_the_model_stays_as_it_is() -> None:
    kernel = traced("softmax")
    before = kernel.model.table(kernel.original).copy()
    counterfactuals_of(kernel.model, kernel.original, [0])
    assert (kernel.model.table(kernel.original) == before).all()
    assert dict(kernel.model.parameters) == dict(load_parameters("a100"))


@pytest.mark.parametrize("chip", sorted(CHIPS))
def test_every_chip_has_the_numbers(chip: str) -> None:
    for mechanism in MECHANISMS:
        load_parameters(chip).with_values(mechanism.values)
