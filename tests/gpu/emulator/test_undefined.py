"""Shared memory that nobody has written may be read; what was read must not be used."""

import numpy as np
import pytest

from cuasmrl.gpu.emulator import Fault
from tests.gpu.emulator.kernels import Array, Kernels, Load

CHIPS = ("sm_75", "sm_80", "sm_90", "sm_120")
LANES = np.arange(32)


@pytest.fixture(scope="module", params=CHIPS)
def undefined(request: pytest.FixtureRequest, load: Load) -> Kernels:
    return load("undefined", request.param)


def run(kernels: Kernels, name: str, *numbers: int) -> Array:
    out = np.full(32, -5, np.int32)
    kernels.run(name, out, *map(np.int32, numbers), shared=512)
    return out


def test_all_is_written(undefined: Kernels) -> None:
    assert (run(undefined, "stored", 32) == 10 * LANES).all()
    assert (run(undefined, "shuffled", 32, 7) == 70).all()
    assert run(undefined, "passed_on", 32, 4)[0] == 50


def test_the_fault_names_the_load_and_the_use(undefined: Kernels) -> None:
    pattern = r"\(ST.*thread \(20, 0, 0\): uses R\d+, which LDS.* at 0x\w+ read from shared memory at 0x"
    with pytest.raises(Fault, match=pattern + r"\w+, never written"):
        run(undefined, "stored", 20)


def test_what_is_selected_away(undefined: Kernels) -> None:
    assert (run(undefined, "selected_away", 20) == np.where(LANES < 20, 10 * LANES + 1, -1)).all()


def test_what_only_others_store(undefined: Kernels) -> None:
    assert (run(undefined, "stored_by_some", 9) == np.where(LANES < 9, 30 * LANES + 1, -5)).all()


def test_what_is_overwritten(undefined: Kernels) -> None:
    assert (run(undefined, "overwritten", 20) == np.where(LANES < 20, 10 * LANES, 7)).all()


@pytest.mark.parametrize("name", ["address", "branch", "votes"])
def test_uses(undefined: Kernels, name: str) -> None:
    run(undefined, name, 32)
    with pytest.raises(Fault, match=r"uses U?[RP]\d+, which LDS.*, never written"):
        run(undefined, name, 20)


def test_a_shuffle_gives_what_its_source_holds(undefined: Kernels) -> None:
    assert (run(undefined, "shuffled", 20, 7) == 70).all()
    with pytest.raises(Fault, match=r"thread \(0, 0, 0\): uses R\d+, which LDS.*, never written"):
        run(undefined, "shuffled", 20, 25)


def test_shared_memory_passes_it_on(undefined: Kernels) -> None:
    assert run(undefined, "passed_on", 20, 4)[0] == 50
    with pytest.raises(Fault, match=r"thread \(25, 0, 0\): uses R\d+, which LDS.*, never written"):
        run(undefined, "passed_on", 20, 25)
    assert (run(undefined, "passed_on_and_overwritten", 20) == (LANES + 1) % 32).all()


def test_tracking_ends_with_the_last_undefined_register(load: Load) -> None:
    """A launch after one with undefined registers, and a slab after another, begin without them."""
    kernels = load("undefined", "sm_80")
    run(kernels, "selected_away", 20)
    assert (run(kernels, "stored", 32) == 10 * LANES).all()
