"""The bytes behind tensors and arrays, without a copy."""

import gc
import weakref
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest
import torch
from triton.runtime.jit import reinterpret

from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.virtual import wrap
from cuasmrl.gpu.virtual.memory import bytes_of, zeros


def memory(tensor: Any) -> npt.NDArray[np.uint8]:
    found = bytes_of(tensor, "Argument x")
    assert found is not None
    return found


def test_a_tensor_is_seen_in_place() -> None:
    tensor = torch.arange(6, dtype=torch.int32)
    memory(tensor).view(np.int32)[2] = 99
    assert tensor.tolist() == [0, 1, 99, 3, 4, 5]


def test_a_slice_keeps_what_is_behind_it() -> None:
    tensor = torch.arange(12, dtype=torch.int16).reshape(3, 4)
    assert memory(tensor[1, 1:3]).view(np.int16).tolist() == [5, 6, 7, 8, 9, 10, 11]


def test_a_transposed_tensor_is_its_storage() -> None:
    tensor = torch.arange(6, dtype=torch.int64).reshape(2, 3)
    assert memory(tensor.T).view(np.int64).tolist() == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float8_e4m3fn, torch.bool])
def test_element_types_do_not_matter(dtype: torch.dtype) -> None:
    tensor = torch.ones(5).to(dtype)
    assert memory(tensor).nbytes == 5 * tensor.element_size()


def test_a_tensor_without_dimensions() -> None:
    assert memory(torch.tensor(2.5)).view(np.float32).tolist() == [2.5]


def test_an_empty_tensor_is_a_null_pointer() -> None:
    assert bytes_of(torch.empty(0), "x") is None


def test_reinterpreted_tensors() -> None:
    tensor = torch.zeros(4, dtype=torch.int8)
    assert memory(reinterpret(tensor, torch.float8_e5m2)).nbytes == 4


def test_the_view_keeps_the_tensor() -> None:
    tensor = torch.full((1000,), 7.0)
    alive = weakref.ref(tensor)
    view = memory(tensor)
    del tensor
    gc.collect()
    assert alive() is not None
    assert view.view(np.float32).sum() == 7000


def test_anything_with_a_size_will_do() -> None:
    class Mine:
        def __init__(self) -> None:
            self.array = np.arange(4, dtype=np.uint8)
            self.nbytes = 4

        def data_ptr(self) -> int:
            return self.array.ctypes.data

    assert memory(Mine()).tolist() == [0, 1, 2, 3]


def test_wrap() -> None:
    array = np.arange(12, dtype=np.float32).reshape(3, 4)
    buffer = wrap(array[1:, 1:])
    assert buffer.array.base is not None
    assert (buffer.shape, buffer.stride(), buffer.stride(1)) == ((2, 3), (4, 1), 1)
    assert (buffer.numel(), buffer.element_size(), str(buffer.dtype)) == (6, 4, "float32")
    assert buffer.data_ptr() == array.ctypes.data + 5 * 4
    assert memory(buffer).view(np.float32).tolist() == [5, 6, 7, 8, 9, 10, 11]
    memory(buffer).view(np.float32)[0] = -1
    assert array[1, 1] == -1


def test_wrapped_arrays_can_be_restored_by_the_autotuner() -> None:
    buffer = wrap(np.ones(3))
    saved = buffer.clone()
    buffer.zero_()
    assert buffer.array.tolist() == [0, 0, 0]
    assert buffer.copy_(saved).array.tolist() == [1, 1, 1]


def test_wrap_takes_what_triton_has_a_name_for() -> None:
    for dtype in (np.bool_, np.uint64, np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn):
        assert wrap(np.zeros(2, dtype)).element_size() == np.dtype(dtype).itemsize


def frozen() -> npt.NDArray[Any]:
    array = np.zeros(3)
    array.flags.writeable = False
    return array


@pytest.mark.parametrize(
    ("array", "message"),
    [
        ([1, 2], "wrap takes a NumPy array, got a list"),
        (np.zeros(2, np.complex64), "no pointer to elements of type complex64; use one of bool, int8"),
        (np.zeros(2, ">f4"), "no pointer to elements of type >f4"),
        (np.zeros(2, object), "no pointer to elements of type object"),
        (frozen(), "read-only .*; pass a copy"),
        (np.zeros(4)[::-1], "backwards in memory"),
        (np.zeros(4, [("a", "u1"), ("b", "f4")])["b"], "strides are not whole elements"),
    ],
)
def test_wrap_refuses(array: Any, message: str) -> None:
    with pytest.raises(CuasmrlError, match=message):
        wrap(array)


def test_a_tensor_elsewhere() -> None:
    with pytest.raises(CuasmrlError, match="Argument x lives on meta; .* move it to the CPU"):
        bytes_of(torch.empty(3, device="meta"), "Argument x")


def test_a_sparse_tensor() -> None:
    with pytest.raises(CuasmrlError, match="Argument x has no memory of its own"):
        bytes_of(torch.eye(3).to_sparse(), "Argument x")


def test_a_tensor_of_unknown_size() -> None:
    class Opaque:
        def data_ptr(self) -> int:
            return 4096

    with pytest.raises(CuasmrlError, match="its size is unknown"):
        bytes_of(Opaque(), "Argument x")


@pytest.mark.parametrize("alignment", [1, 16, 128, 4096])
def test_fresh_memory_is_aligned(alignment: int) -> None:
    room = zeros(100, alignment)
    assert room.nbytes == 100
    assert room.ctypes.data % alignment == 0
    assert not room.any()
