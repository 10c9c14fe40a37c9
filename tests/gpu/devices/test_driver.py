"""The binding against a C library whose functions are declared by the real cuda.h."""

import ctypes
import importlib.util
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.devices import driver
from cuasmrl.gpu.devices.cuda import CudaTimer, available, find
from cuasmrl.gpu.devices.driver import Driver, DriverError, Parameters
from cuasmrl.gpu.devices.libcuda import LibCuda
from cuasmrl.gpu.devices.loading import load
from tests.gpu.devices.launched import launch_of
from tests.traced_kernels import rescheduled, traced

NAMED = (
    *driver.Status, *driver.Attribute, driver.MAX_DYNAMIC_SHARED_SIZE_BYTES, driver.CACHE_PREFER_SHARED,
    driver.NON_BLOCKING, driver.BUFFER_POINTER, driver.BUFFER_SIZE, driver.END,
)  # fmt: skip


class Loader:
    """`load` of a given file, as another process can be told."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __call__(self) -> Driver:
        return load(self.path)


def compiled(target: Path, *more: str) -> str:
    """The library that pretends."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    spec = importlib.util.find_spec("triton")
    assert spec is not None
    assert spec.origin is not None
    include = Path(spec.origin).parent / "backends/nvidia/include"
    source = Path(__file__).parent / "fake_cuda.c"
    options = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-O1", "-shared", "-fPIC", *more]
    subprocess.run([compiler, *options, f"-I{include}", "-o", str(target), str(source)], check=True)
    return str(target)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> str:
    return compiled(tmp_path_factory.mktemp("fake") / "libcuda.so")


@pytest.fixture
def fake(library: str) -> ctypes.CDLL:
    handle = ctypes.CDLL(library)
    handle.fake_calls.restype = ctypes.c_char_p
    handle.fake_reset(0, 2)
    handle.fake_fail(0)
    return handle


@pytest.fixture
def calls(fake: ctypes.CDLL) -> Callable[[], list[str]]:
    return lambda: fake.fake_calls().decode().splitlines()


def test_numbers_are_those_of_the_header(fake: ctypes.CDLL) -> None:
    assert tuple(int(number) for number in NAMED) == tuple(fake.fake_constant(n) for n in range(len(NAMED)))
    assert fake.fake_constant(len(NAMED)) == -1


def test_a_gpu_is_described(library: str, fake: ctypes.CDLL) -> None:
    gpu = find(1, Loader(library))
    assert (gpu.ordinal, gpu.name, gpu.arch, gpu.sm_count, gpu.l2_bytes) == (
        1,
        "Fake GPU 1",
        86,
        108,
        1 << 20,
    )
    assert gpu.driver_version >= 12000
    assert gpu.uuid == "292a2b2c-2d2e-2f30-3132-333435363738"
    assert available(Loader(library)) is None


def test_a_kernel_gets_its_arguments_and_its_results_come_back(
    library: str, calls: Callable[[], list[str]]
) -> None:
    binding = load(library)
    binding.open_context(1)
    stream = binding.create_stream()
    x, y = np.arange(100, dtype=np.uint16), np.full(100, 5, np.uint16)
    buffers = [binding.allocate(x.nbytes) for _ in range(3)]
    binding.upload(buffers[0], x.view(np.uint8), stream)
    binding.upload(buffers[1], y.view(np.uint8), stream)
    binding.fill(buffers[2], 0, x.nbytes, stream)
    module = binding.load_module(traced("vector_add").cubin.data)
    function = binding.function(module, "add_kernel")
    area = b"".join(address.to_bytes(8, "little") for address in buffers) + (100).to_bytes(4, "little")
    binding.allow_shared(function, 100_000)
    begin, end = binding.create_event(), binding.create_event()
    binding.record(begin, stream)
    binding.launch(function, (1, 2, 3), (4, 5, 6), 70_000, stream, Parameters(area))
    binding.record(end, stream)
    assert not binding.has_happened(end)
    binding.synchronize(stream)
    assert binding.has_happened(end)
    assert binding.elapsed(begin, end) == pytest.approx(21.0)
    assert (binding.download(buffers[2], x.nbytes, stream).view(np.uint16) == x ^ y).all()
    binding.copy(buffers[2], buffers[0], x.nbytes, stream)
    assert (binding.download(buffers[2], x.nbytes, stream).view(np.uint16) == x).all()
    for address in buffers:
        binding.free(address)
    binding.unload_module(module)
    assert calls()[-1] == "cuLaunchKernel 1 2 3, 4 5 6, 70000, 28"
    assert {"cuModuleGetFunction add_kernel", "cuFuncSetCacheConfig 1", "cuFuncSetAttribute 8 100000"} < set(
        calls()
    )


def test_errors_have_the_names_of_the_driver(library: str, fake: ctypes.CDLL) -> None:
    binding = load(library)
    stream = binding.create_stream()
    fake.fake_fail(700)
    with pytest.raises(
        DriverError, match=r"cuStreamSynchronize failed with CUDA_ERROR_ILLEGAL_ADDRESS \(700"
    ) as e:
        binding.synchronize(stream)
    assert e.value.code == 700
    with pytest.raises(DriverError, match="cuEventQuery failed"):
        binding.has_happened(binding.create_event())
    with pytest.raises(DriverError, match="cuModuleLoadData failed with an error it has no name for"):
        binding.load_module(b"text")


def test_the_whole_way_through_another_process(library: str) -> None:
    kernel, launch = traced("vector_add"), launch_of("vector_add")
    timer = CudaTimer(kernel, 0, launch, Loader(library))
    assert (timer.device, timer.unit, timer.gpu.name) == ("cuda:0", "microseconds", "Fake GPU 0")
    assert timer.ready.outputs == (2,)
    assert timer.ready.time == pytest.approx(21.0, rel=1e-3)
    # The clock of this driver does not show its steps, so they are taken for half a microsecond.
    assert timer.ready.batch == 5
    assert not timer.ready.by_activity
    assert timer.time(rescheduled("vector_add")) == pytest.approx(21.0, rel=1e-3)
    timer.close()


def test_what_is_missing_is_said_in_a_sentence(library: str, fake: ctypes.CDLL) -> None:
    assert available() is None or "--device virtual:a100" in (available() or "")
    missing = available(Loader("libcuda-is-not-here.so"))
    assert missing is not None
    assert missing.startswith("there is no NVIDIA driver here (libcuda-is-not-here.so cannot be loaded)")
    for init, count, sentence in (
        (0, 0, "finds no GPU"),
        (100, 0, "finds no GPU"),
        (34, 0, "the toolkit's stub"),
        (999, 0, "the NVIDIA driver does not start: cuInit failed"),
    ):
        fake.fake_reset(init, count)
        assert sentence in (available(Loader(library)) or "")


def test_a_library_that_is_no_driver_is_refused() -> None:
    with pytest.raises(CuasmrlError, match="the CUDA driver has no cuInit"):
        LibCuda(ctypes.CDLL(None))


def test_a_gpu_that_is_not_there_is_refused(library: str, fake: ctypes.CDLL) -> None:
    with pytest.raises(
        CuasmrlError, match="there is no cuda:2 on this machine; the GPUs are cuda:0 to cuda:1"
    ):
        find(2, Loader(library))
    fake.fake_reset(0, 1)
    with pytest.raises(CuasmrlError, match="the only GPU is cuda:0"):
        find(1, Loader(library))
