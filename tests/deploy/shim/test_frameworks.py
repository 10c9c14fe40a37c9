"""Other frameworks behind the shims, each downloaded for the test: what calls ptxas gets stored code."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cuasmrl.deploy.shim.session import Noted, Outcome, run
from cuasmrl.deploy.store import Store
from cuasmrl.deploy.triton.modes import Mode
from tests.deploy.shim.conftest import put
from tests.deploy.shim.test_session import CUDA, TRITON

pytestmark = pytest.mark.slow

TILELANG = """
import tilelang.language as T
from tilelang import tvm
from tilelang.engine.lower import lower

@T.prim_func
def mix(a: T.Tensor((1024,), "float32"), b: T.Tensor((1024,), "float32")):
    with T.Kernel(8, threads=128) as block:
        for i in T.Parallel(128):
            b[block * 128 + i] = a[block * 128 + i] * 2.0 + 1.0

with tvm.target.Target({"kind": "cuda", "arch": "sm_80"}) as target:
    lower(mix, target=target, enable_device_compile=True)
"""
JAX = """
import os
os.environ["JAX_SKIP_CUDA_CONSTRAINTS_CHECK"] = "1"
import jax, jax.numpy as jnp, numpy as np
from jax.experimental import topologies
from jax.sharding import Mesh, NamedSharding, PartitionSpec

CHIP = '''
gpu_device_info {
  threads_per_block_limit: 1024 threads_per_warp: 32 threads_per_core_limit: 2048 core_count: 108
  shared_memory_per_block: 49152 shared_memory_per_core: 167936 shared_memory_per_block_optin: 166912
  fpus_per_core: 64 block_dim_limit_x: 2147483647 block_dim_limit_y: 65535 block_dim_limit_z: 65535
  memory_bandwidth: 1555200000000 l2_cache_size: 41943040 clock_rate_ghz: 1.41
  device_memory_size: 42331013120 cuda_compute_capability { major: 8 }
  registers_per_core_limit: 65536 registers_per_block_limit: 65536
  driver_version: "13.0.0" runtime_version: "13.0.0" compile_time_toolkit_version: "13.0.0"
}
platform_name: "CUDA"
dnn_version_info { major: 9 minor: 10 }
device_description_str: "NVIDIA A100-SXM4-40GB"
'''
chip = topologies.get_topology_desc(platform="cuda", target_config=CHIP, topology="1x1x1")
everywhere = NamedSharding(Mesh(np.array(chip.devices).reshape(-1)[:1], ("x",)), PartitionSpec())
f = jax.jit(lambda x: jnp.sin(x) * 2 + 1, in_shardings=everywhere, out_shardings=everywhere)
f.lower(jax.ShapeDtypeStruct((1024,), jnp.float32)).compile()
"""


def download(place: Path, *packages: str) -> str:
    """Packages without what they depend on, as a value for PYTHONPATH."""
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--disable-pip-version-check"]
    subprocess.run([*pip, "--target", str(place), *packages], check=True)
    return str(place)


def twice(script: str, store: Store, tmp_path: Path) -> tuple[Outcome, Outcome]:
    """Record what a script compiles, store something better for it, and run it again."""
    path = tmp_path / "script.py"
    path.write_text(script)
    first = run([sys.executable, str(path)], store, Mode.RECORD)
    for kernel in store.recorded():
        put(store, kernel.cubin.read_bytes())
    return first, run([sys.executable, str(path)], store, Mode.DEPLOY)


def test_tilelang(tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    packages = (
        "tilelang==0.1.15",
        "apache-tvm-ffi==0.1.12",
        "z3-solver==4.15.4",
        "torch-c-dlpack-ext",
        "tqdm",
        "psutil",
    )
    monkeypatch.setenv("PYTHONPATH", download(tmp_path / "packages", *packages))
    monkeypatch.setenv("TILELANG_CACHE_DIR", str(tmp_path / "kernels"))
    first, second = twice(TILELANG, store, tmp_path)
    assert (first.status, first.compiled, first.used) == (0, 1, 0)
    assert (second.status, second.compiled, second.used) == (0, 1, 1)


def test_jax(tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    packages = ("jax==0.10.2", "jaxlib==0.10.2", "jax-cuda13-plugin==0.10.2", "jax-cuda13-pjrt", "opt_einsum")
    monkeypatch.setenv("PYTHONPATH", download(tmp_path / "packages", *packages))
    first, second = twice(JAX, store, tmp_path)
    assert first.status == second.status == 0
    assert first.compiled == second.compiled == second.used > 0


@pytest.mark.parametrize("version", ["3.6.0", "3.8.0"])
def test_another_triton_than_ours(
    tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    """The shims were made beside one Triton and are called by another: that one's own ptxas must run."""
    packages = download(tmp_path / "packages", f"triton=={version}")
    script, archs = tmp_path / "script.py", ("80", "90", "100")
    script.write_text(TRITON)
    command = [sys.executable, str(script)]
    theirs = {**os.environ, "PYTHONPATH": packages}
    subprocess.run([*command, str(tmp_path / "plain"), *archs], env=theirs, check=True)
    with_theirs = ["env", "-u", "CUASMRL_TRITON", f"PYTHONPATH={packages}", *command]
    # What Triton made alone is served: so the version that the shim says is the one of its own ptxas.
    assert run([*with_theirs, str(tmp_path / "first"), *archs], store, Mode.DEPLOY).compiled == 0
    outcome = run([*with_theirs, str(tmp_path / "first"), *archs], store, Mode.RECORD)
    assert (outcome.status, outcome.recorded) == (0, Noted(kernels=3))
    assert all(packages in kernel.origin["compiler"] for kernel in store.recorded())
    better = {arch: put(store, (tmp_path / f"plain.{arch}").read_bytes()) for arch in archs[:2]}
    assert run([*with_theirs, str(tmp_path / "second"), *archs], store, Mode.DEPLOY).used == 2
    for arch, cubin in better.items():
        assert (tmp_path / f"second.{arch}").read_bytes() == cubin


def test_nvcc_from_packages(tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a toolkit on PATH, the one installed as packages is put there."""
    parts = ("cuda-nvcc", "cuda-cccl", "cuda-crt", "cuda-runtime", "nvvm")
    packages = download(tmp_path / "packages", *(f"nvidia-{part}>=13,<14" for part in parts))
    (tmp_path / "mix.cu").write_text(CUDA)
    path = os.pathsep.join([str(Path(sys.executable).parent), "/usr/bin", "/bin"])
    output = tmp_path / "mix.cubin"
    command = [sys.executable, "-m", "cuasmrl.cli", "run", "--mode", "record", "--"]
    compile_ = ["nvcc", "-arch=sm_80", "-cubin", str(tmp_path / "mix.cu"), "-o", str(output)]
    environment = {**os.environ, "PATH": path, "PYTHONPATH": packages}
    subprocess.run([*command, *compile_], env=environment, check=True)
    (seen,) = store.recorded()
    assert seen.origin["compiler"].startswith(packages)
    assert seen.cubin.read_bytes() == output.read_bytes()
