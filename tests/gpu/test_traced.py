"""Kernels ready to be timed: from a workload and from its cubin with a launch file, with the same cycles."""

from pathlib import Path

import pytest

from cuasmrl import workloads
from cuasmrl.binary.cubin import Cubin
from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.chips import chip
from cuasmrl.gpu.launches import LaunchRecord, describe, load, save
from cuasmrl.gpu.traced import trace_cubin
from cuasmrl.workloads.tracing import corpus_launches
from tests.traced_kernels import rescheduled, traced


def record_of(name: str) -> LaunchRecord:
    workload, sizes = workloads.get(name), traced(name).sizes
    built = workload.build(workload.configs[0], 80, sizes)
    return describe(workload.launch(built, workload.inputs(sizes), sizes), built.kernel)


@pytest.mark.parametrize("name", ["softmax", "gemm_leaky_relu"])
def test_a_cubin_with_its_launch_file_takes_the_same_cycles(name: str, tmp_path: Path) -> None:
    kernel = traced(name)
    save(tmp_path / "k.launch.json", record_of(name))
    again = trace_cubin(kernel.cubin, load(tmp_path / "k.launch.json"))
    for seed in range(2):
        expected = kernel.model.simulate(kernel.original, seed).cycles
        assert again.model.simulate(again.original, seed).cycles == expected


def test_code_of_an_earlier_architecture_runs_on_a_later_chip() -> None:
    kernel = traced("softmax")
    again = trace_cubin(kernel.cubin, record_of("softmax"), chip=chip("rtx4090"))
    assert again.model.chip.key == "rtx4090"
    assert again.model.simulate(again.original).cycles > 0


def test_a_chip_that_cannot_run_it_is_refused() -> None:
    kernel = traced("softmax")
    with pytest.raises(
        CuasmrlError, match=r"sm_80, which h100 \(sm_90\) cannot run; choose --chip a100, a100-80gb"
    ):
        trace_cubin(kernel.cubin, record_of("softmax"), chip=chip("h100"))


def test_a_schedule_is_found_in_another_cubin() -> None:
    kernel, schedule = traced("softmax"), rescheduled("softmax")
    again = Cubin.parse(schedule.apply(kernel.cubin).data, "b.cubin")
    assert kernel.schedule_in(again).words == schedule.words


def test_schedules_of_another_architecture_are_refused() -> None:
    workload = workloads.get("softmax")
    other = Cubin.parse(workload.build(workload.configs[0], 86).cubin, "b.cubin")
    with pytest.raises(CuasmrlError, match="b.cubin is compiled for sm_86, softmax w4 for sm_80"):
        traced("softmax").schedule_in(other)


def test_launches_of_a_corpus(tmp_path: Path) -> None:
    corpus = workloads.build_corpus(tmp_path, [80], ["softmax", "vector_add"], ["w4", "b256_w2"], jobs=1)
    found = dict(corpus_launches(corpus.built))
    assert {path.name for path in found} == {"softmax-w4.cubin", "vector_add-b256_w2.cubin"}
    for path, record in found.items():
        record.check(Cubin.load(path).kernel(record.kernel))
