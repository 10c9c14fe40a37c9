import numpy as np
import pytest

from cuasmrl.workloads import Workload, all

ALL = pytest.mark.parametrize("workload", all(), ids=lambda workload: workload.name)

ELEMENTS = {
    "fp8e4nv": "float8_e4m3fn",
    "fp16": "float16",
    "fp32": "float32",
    "fp64": "float64",
    "i8": "int8",
    "i32": "int32",
    "i64": "int64",
    "u8": "uint8",
    "u32": "uint32",
    "u64": "uint64",
}


@ALL
def test_same_seed_same_inputs(workload: Workload) -> None:
    sizes = workload.shapes[0]
    first, again, other = (workload.inputs(sizes, seed) for seed in (3, 3, 4))
    assert {name: np.asarray(value).tobytes() for name, value in first.items()} == {
        name: np.asarray(value).tobytes() for name, value in again.items()
    }
    assert any(np.asarray(first[name]).tobytes() != np.asarray(other[name]).tobytes() for name in first)


@ALL
def test_inputs_are_the_parameters_with_their_types(workload: Workload) -> None:
    inputs = workload.inputs(workload.shapes[-1])
    assert list(inputs) == [parameter.name for parameter in workload.parameters]
    for parameter in workload.parameters:
        value = inputs[parameter.name]
        assert value.dtype.name == ELEMENTS[parameter.type.removeprefix("*")], parameter
        assert isinstance(value, np.ndarray) == parameter.is_pointer
        if isinstance(value, np.ndarray):
            assert value.flags.c_contiguous


@ALL
def test_outputs_are_recognisable_until_written(workload: Workload) -> None:
    sizes = workload.shapes[0]
    inputs = workload.inputs(sizes)
    for name, expected in workload.reference(inputs, sizes).items():
        assert expected.failure(np.asarray(inputs[name])) is not None


@ALL
def test_reference_leaves_the_inputs_alone(workload: Workload) -> None:
    sizes = workload.shapes[0]
    inputs = workload.inputs(sizes)
    before = {name: np.asarray(value).tobytes() for name, value in inputs.items()}
    workload.reference(inputs, sizes)
    assert before == {name: np.asarray(value).tobytes() for name, value in inputs.items()}


@ALL
def test_bounds_would_catch_a_wrong_result(workload: Workload) -> None:
    """A bound stays well below the values it judges."""
    inputs = workload.inputs(workload.shapes[1])
    for expected in workload.reference(inputs, workload.shapes[1]).values():
        assert np.all(np.asarray(expected.bound) >= 0)
        spread = np.abs(expected.value.astype(np.float64)).mean()
        assert np.mean(expected.bound) < 0.05 * spread
