"""Which problems a cubin can run: those for which everything holds that the compiler assumed."""

import pytest

from cuasmrl import workloads
from cuasmrl.optimize.gate import problems_of_workload
from cuasmrl.workloads.build import specialise


@pytest.mark.parametrize(
    ("name", "config"),
    [
        ("gemm_leaky_relu", "m64n64k32_w4_s3"),
        ("softmax", "w4"),
        ("flash_attention", "m64n64_w4_s3"),
        ("rmsnorm", "n1024_w4"),
        ("rmsnorm", "n32_w4_fixed"),
        ("reduction", "t256"),
    ],
)
def test_other_sizes_fit_what_was_compiled(name: str, config: str) -> None:
    """Compiled for them, the compiler might assume more, but never less or something else."""
    workload = workloads.get(name)
    chosen = workload.config(config)
    built = workload.build(chosen, 80)
    found = problems_of_workload(workload, chosen, built, workload.sizes)
    assert found.main.sizes == workload.sizes
    assert found.shapes
    assert found.lengths
    for problem in (*found.shapes, *found.lengths):
        assert problem.sizes != workload.sizes
        other = specialise(workload, chosen, problem.sizes)
        assert set(built.divisible) <= {*other.divisible, *other.fixed}
        assert dict(built.fixed).items() <= dict(other.fixed).items()
        assert workload.constants(problem.sizes, chosen) == workload.constants(workload.sizes, chosen)


def test_ragged_and_small_sizes() -> None:
    workload = workloads.get("gemm_leaky_relu")
    config = workload.configs[0]
    found = problems_of_workload(workload, config, workload.build(config, 80), workload.sizes)
    assert [problem.name for problem in found.shapes] == [
        "M=64 N=64 K=64",
        "M=128 N=128 K=256",
        "M=16 N=16 K=16",
        "M=496 N=496 K=2032",
    ]
    assert {"M": 512, "N": 512, "K": 1024} in [problem.sizes for problem in found.lengths]


def test_seeds_change_inputs() -> None:
    workload = workloads.get("softmax")
    config = workload.config("w4")
    found = problems_of_workload(workload, config, workload.build(config, 80), workload.sizes)
    one, same, other = (found.main.launch(seed).arguments[1] for seed in (5, 5, 6))
    assert (one == same).all()  # type: ignore[union-attr]
    assert (one != other).any()  # type: ignore[union-attr]
