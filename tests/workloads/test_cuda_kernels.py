"""The CUDA sources compute what the references say, run on host threads instead of a GPU."""

import ctypes
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from cuasmrl.workloads import Config, Workload, all
from cuasmrl.workloads.model import Inputs, Sizes

HOST = Path(__file__).parent / "host_cuda"
C_TYPES = {
    "i32": "int",
    "i64": "long long",
    "u8": "unsigned char",
    "u32": "unsigned int",
    "u64": "unsigned long long",
    "fp16": "__half",
    "fp32": "float",
    "fp64": "double",
}
CASES = [
    (workload, config) for workload in all() if workload.language == "cuda" for config in workload.configs
]


def host_program(workload: Workload, config: Config) -> str:
    """The kernel's own text, with a function that launches it on untyped arguments."""
    # Blocks run one after the other, so dynamic shared memory can be one plain array.
    source = workload.source.read_text().replace("extern __shared__ unsigned int local[];", "")
    arguments = ", ".join(
        f"*({C_TYPES[parameter.type.removeprefix('*')]} {'*' if parameter.is_pointer else ''}*)a[{index}]"
        for index, parameter in enumerate(workload.parameters)
    )
    shared = f"static unsigned int local[{max(config.shared_bytes // 4, 1)}];"
    launcher = f"launch(g, b, [=] {{ {workload.symbol}({arguments}); }});"
    return (
        f'#include "host_cuda.h"\n{shared}\n{source}\n'
        f'extern "C" void run(Dim3 g, Dim3 b, void **a) {{ {launcher} }}\n'
    )


class Dim3(ctypes.Structure):
    _fields_ = (("x", ctypes.c_uint), ("y", ctypes.c_uint), ("z", ctypes.c_uint))


def run(library: ctypes.CDLL, workload: Workload, config: Config, inputs: Inputs, sizes: Sizes) -> None:
    holders = []
    for parameter in workload.parameters:
        value = inputs[parameter.name]
        pointer = value.ctypes.data if isinstance(value, np.ndarray) else None
        holders.append(np.array(pointer if pointer is not None else value))
    slots = (ctypes.c_void_p * len(holders))(*(holder.ctypes.data for holder in holders))
    library.run(Dim3(*workload.grid(sizes, config)), Dim3(*config.block_shape), slots)


@pytest.mark.skipif(shutil.which("g++") is None, reason="g++ runs the kernels on the host")
@pytest.mark.parametrize(("workload", "config"), CASES, ids=[f"{w.name}-{c.name}" for w, c in CASES])
def test_source_meets_its_reference(workload: Workload, config: Config, tmp_path: Path) -> None:
    program, library = tmp_path / "kernel.cpp", tmp_path / "kernel.so"
    program.write_text(host_program(workload, config))
    defines = [f"-D{name}={value}" for name, value in config.constants.items()]
    command = ["g++", "-std=c++17", "-O1", "-ffp-contract=off", "-shared", "-fPIC", "-pthread", *defines]
    subprocess.run([*command, f"-I{HOST}", "-o", str(library), str(program)], check=True, timeout=120)
    loaded = ctypes.CDLL(str(library))
    for sizes in workload.shapes:
        inputs = workload.inputs(sizes, seed=1)
        expected = workload.reference(inputs, sizes)
        run(loaded, workload, config, inputs, sizes)
        failures = {name: want.failure(np.asarray(inputs[name])) for name, want in expected.items()}
        assert not any(failures.values()), (dict(sizes), failures)
