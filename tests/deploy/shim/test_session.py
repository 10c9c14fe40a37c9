"""Programs that compile, run with the shims in their environment."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from cuasmrl.binary.cubin import Cubin
from cuasmrl.deploy.shim.session import Noted, run
from cuasmrl.deploy.store import Store
from cuasmrl.deploy.triton.modes import Mode
from cuasmrl.workloads.cuda_compiler import find_nvcc
from tests.deploy.shim.conftest import PTX, put

TRITON = """
import sys, triton, triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

@triton.jit
def mix(to, of, COUNT: tl.constexpr):
    at = tl.program_id(0) * COUNT + tl.arange(0, COUNT)
    tl.store(to + at, tl.load(of + at) * 2.0 + tl.load(of + at + 7))

source = ASTSource(mix, {"to": "*fp32", "of": "*fp32", "COUNT": "constexpr"}, {"COUNT": 256})
for arch in sys.argv[2:]:
    made = triton.compile(source, target=GPUTarget("cuda", int(arch), 32))
    open(f"{sys.argv[1]}.{arch}", "wb").write(made.asm["cubin"])
    print(arch, made.hash)
"""
CUDA = """
extern "C" __global__ void mix(float *to, const float4 *from)
{
    const float4 x = from[threadIdx.x], y = from[threadIdx.x + 32];
    to[threadIdx.x] = x.x * y.y + x.z * y.w;
    to[threadIdx.x + 32] = x.y * y.x + x.w * y.z;
}
"""


@pytest.fixture
def triton_script(tmp_path: Path) -> Path:
    path = tmp_path / "script.py"
    path.write_text(TRITON)
    return path


def test_triton_compiles_through_the_shims(
    tmp_path: Path, store: Store, triton_script: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """For two chips, because Triton has an assembler for each."""
    archs = ("80", "90")
    script = [sys.executable, str(triton_script)]
    expected = subprocess.run(
        [*script, str(tmp_path / "plain"), *archs], capture_output=True, text=True, check=True, timeout=120
    ).stdout
    outcome = run([*script, str(tmp_path / "first"), *archs], store, Mode.DEPLOY)
    # Nothing stored, nothing changed: what Triton compiled without us is in its cache under the same keys.
    assert (outcome.status, outcome.compiled, outcome.problems) == (0, 0, ())
    assert capfd.readouterr().out == expected
    better = {arch: put(store, (tmp_path / f"plain.{arch}").read_bytes()) for arch in archs}
    outcome = run([*script, str(tmp_path / "second"), *archs], store, Mode.DEPLOY)
    assert (outcome.status, outcome.compiled, outcome.used) == (0, 2, 2)
    assert not set(capfd.readouterr().out.split("\n")[:2]) & set(expected.split("\n"))
    for arch in archs:
        assert (tmp_path / f"first.{arch}").read_bytes() == (tmp_path / f"plain.{arch}").read_bytes()
        assert (tmp_path / f"second.{arch}").read_bytes() == better[arch]


def test_triton_uses_the_ptxas_that_the_user_names(
    tmp_path: Path, store: Store, triton_script: Path, fake_tool: Callable[[str], Path],
    triton_tool: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    own = fake_tool(f'echo "$@" >> {tmp_path}/calls; exec {triton_tool("ptxas")} "$@"')
    monkeypatch.setenv("TRITON_PTXAS_PATH", str(own))
    outcome = run([sys.executable, str(triton_script), str(tmp_path / "out"), "80"], store, Mode.DEPLOY)
    assert (outcome.status, outcome.compiled) == (0, 1)
    assert "--gpu-name=sm_80" in (tmp_path / "calls").read_text()


def test_nvcc_compiles_through_the_shadow(tmp_path: Path, store: Store) -> None:
    find_nvcc()
    source, cubin, object_ = (tmp_path / name for name in ("mix.cu", "mix.cubin", "mix.o"))
    source.write_text(CUDA)
    compile_ = ["nvcc", "-arch=sm_80", str(source), "-o"]
    outcome = run([*compile_, str(cubin), "-cubin"], store, Mode.RECORD)
    assert (outcome.status, outcome.compiled, outcome.recorded) == (0, 1, Noted(kernels=1))
    plain = cubin.read_bytes()
    (seen,) = store.recorded()
    assert seen.cubin.read_bytes() == plain
    better = put(store, plain)
    outcome = run([*compile_, str(cubin), "-cubin"], store, Mode.DEPLOY)
    assert outcome.sentence == "1 cubin compiled by ptxas in this run, 1 from the store"
    assert cubin.read_bytes() == better
    # In an object the code lies as it is.
    assert run([*compile_, str(object_), "-c"], store, Mode.DEPLOY).used == 1
    assert code(better) in object_.read_bytes()
    assert code(plain) not in object_.read_bytes()


def code(cubin: bytes) -> bytes:
    return b"".join(Cubin.parse(cubin, "a cubin of the tests").kernel().words)


def test_an_error_of_the_program_is_told(tmp_path: Path, store: Store) -> None:
    (tmp_path / "bad.cu").write_text("nonsense")
    outcome = run(["nvcc", "-cubin", str(tmp_path / "bad.cu"), "-o", str(tmp_path / "x")], store, Mode.DEPLOY)
    assert (outcome.status != 0, outcome.compiled) == (True, 0)


def test_doubts_are_in_the_summary(tmp_path: Path, store: Store, cubin: bytes) -> None:
    """Triton throws away what ptxas says, so it is said again at the end."""
    put(store, cubin)
    for entry in Path(store.root).glob("objects/*/*"):
        entry.write_bytes(entry.read_bytes()[:-1])
    shell = f"$TRITON_PTXAS_PATH --gpu-name=sm_80 {PTX} -o {tmp_path}/out 2>/dev/null"
    outcome = run(["sh", "-c", shell], store, Mode.DEPLOY)
    assert (outcome.status, outcome.compiled, outcome.used) == (0, 1, 0)
    assert "1 in doubt: entry" in outcome.sentence


def test_half_a_line_in_the_log_does_no_harm(tmp_path: Path, store: Store) -> None:
    half = "echo '{\"output\": ' >> $CUASMRL_SESSION/events.jsonl"
    shell = f"{half}; $TRITON_PTXAS_PATH --gpu-name=sm_80 {PTX} -o {tmp_path}/out"
    assert run(["sh", "-c", shell], store, Mode.DEPLOY).compiled == 1


def test_virtual_gpu(tmp_path: Path, store: Store, capfd: pytest.CaptureFixture[str]) -> None:
    """With a chip, Triton has a GPU."""
    look = "import triton; print(triton.runtime.driver.active.get_current_target().arch)"
    assert run([sys.executable, "-c", look], store, Mode.DEPLOY, "a100").status == 0
    assert capfd.readouterr().out == "80\n"


LAUNCHED = """
import sys, numpy as np, triton, triton.language as tl
from cuasmrl.gpu.virtual import wrap

@triton.jit
def twice(to, of, n, COUNT: tl.constexpr):
    at = tl.program_id(0) * COUNT + tl.arange(0, COUNT)
    tl.store(to + at, tl.load(of + at, mask=at < n) * 2.0, mask=at < n)

@triton.jit
def negative(to, of, n, COUNT: tl.constexpr):
    at = tl.program_id(0) * COUNT + tl.arange(0, COUNT)
    tl.store(to + at, -tl.load(of + at, mask=at < n), mask=at < n)

for count in map(int, sys.argv[1:]):
    of = np.ones(count, np.float32)
    for kernel in (twice, negative):
        kernel[(count // 64 + 1,)](wrap(of.copy()), wrap(of), count, COUNT=64)
"""


def test_recorded_kernels_and_launches_are_counted_apart_from_compiled_cubins(
    tmp_path: Path, store: Store
) -> None:
    """What Triton has in its cache is not compiled, but it is launched and so recorded."""
    script = tmp_path / "launched.py"
    script.write_text(LAUNCHED)

    def record(*counts: str) -> tuple[int, Noted | None]:
        outcome = run([sys.executable, str(script), *counts], store, Mode.RECORD, "a100")
        assert outcome.status == 0
        return outcome.compiled, outcome.recorded

    assert record("127") == (2, Noted(kernels=2, launches=2))
    assert record("127", "255") == (0, Noted(launches=2))
    for kernel in store.recorded():
        store.forget_recorded(kernel.key)
    assert record("127", "255") == (0, Noted(kernels=2, launches=4))
    assert run(["true"], store, Mode.DEPLOY).recorded is None
