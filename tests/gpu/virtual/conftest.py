"""A stand-in for the emulator that keeps each launch, and a clean Triton around every test."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest
import triton

import cuasmrl.gpu.virtual
from cuasmrl.binary.cubin import Cubin
from cuasmrl.gpu.chips import Chip
from cuasmrl.gpu.launches.launch import Launch
from cuasmrl.gpu.virtual import device


@dataclass(frozen=True)
class Figures:
    warp_instructions: int


@dataclass
class Recorder:
    """Runs nothing; `effect` may, and says how many warp instructions it took. As many cycles as well."""

    launches: list[Launch] = field(default_factory=list)
    timed: list[Launch] = field(default_factory=list)
    made: list[tuple[str, str]] = field(default_factory=list)
    effect: Callable[[Launch], int] = lambda launch: 1000

    @property
    def last(self) -> Launch:
        return self.launches[-1]

    def make(self, cubin: Cubin, kernel: str, chip: Chip) -> "RecordedKernel":
        self.made.append((kernel, chip.key))
        return RecordedKernel(self)


@dataclass(frozen=True)
class RecordedKernel:
    recorder: Recorder

    def run(self, launch: Launch) -> Figures:
        self.recorder.launches.append(launch)
        return Figures(self.recorder.effect(launch))

    def cycles(self, launch: Launch) -> float:
        self.recorder.timed.append(launch)
        return self.recorder.effect(launch)


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch) -> Recorder:
    """In the emulator's place; the virtual GPU still has to be activated."""
    recorder = Recorder()
    monkeypatch.setattr(device, "make_emulator", recorder.make)
    return recorder


@pytest.fixture
def a100(recorder: Recorder) -> Iterator[Recorder]:
    with cuasmrl.gpu.virtual.active("a100"):
        yield recorder


@pytest.fixture(autouse=True)
def as_before(pytestconfig: pytest.Config) -> Iterator[None]:
    """Compiled kernels are kept between runs of the tests, and no test leaves a driver behind."""
    assert pytestconfig.cache is not None
    config = triton.runtime.driver
    before = config._active
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRITON_CACHE_DIR", str(pytestconfig.cache.mkdir("cuasmrl-triton")))
        patch.setenv("TRITON_DEFAULT_FP_FUSION", "1")
        yield
    cuasmrl.gpu.virtual.deactivate()
    assert config._active is before
