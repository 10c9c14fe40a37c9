"""Global, shared, local and constant memory: every width, every way to leave a buffer."""

import re
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from cuasmrl.gpu.emulator import Fault
from tests.gpu.emulator.kernels import Array, Kernels, Load, launch, numbers

CHIPS = ("sm_75", "sm_80", "sm_90", "sm_120")
TYPES: dict[str, type] = {
    "s8": np.int8, "u8": np.uint8, "s16": np.int16, "u16": np.uint16, "u32": np.uint32, "u64": np.uint64,
}  # fmt: skip
I32 = np.dtype(np.int32)


@pytest.fixture(scope="module", params=CHIPS)
def memory(request: pytest.FixtureRequest, load: Load) -> Kernels:
    return load("memory", request.param)


@pytest.fixture(scope="module")
def sm_80(load: Load) -> Kernels:
    return load("memory", "sm_80")


def random_bits(kind: Any, count: int = 32, seed: int = 0) -> Array:
    data: Array = np.random.default_rng(seed).integers(0, 256, count * np.dtype(kind).itemsize, np.uint8)
    return data.view(kind)


# widths


@pytest.mark.parametrize("name", TYPES)
def test_every_width(memory: Kernels, name: str) -> None:
    x = random_bits(TYPES[name])
    for space in ("global", "shared"):
        out = np.zeros_like(x)
        memory.run(f"{space}_{name}", x, out)
        assert (out == x[np.arange(32) ^ 1]).all(), space


@pytest.mark.parametrize("name", TYPES)
def test_local_arrays_with_a_dynamic_index(memory: Kernels, name: str) -> None:
    x = random_bits(TYPES[name])
    out = np.zeros_like(x)
    memory.run(f"local_{name}", x, out, np.int32(3))
    for i in range(32):
        k, a = 3 + i, [x[(i + j) & 31] for j in range(8)]
        for j in range(8):
            t = (k + j) & 7
            a[t], a[j] = a[j], a[t]
        assert out[i] == a[k & 7]
    opcodes = {i.opcode for i in memory.emulator(f"local_{name}").listing.instructions}
    assert {"LDL", "STL"} <= opcodes


@pytest.mark.parametrize(("name", "words"), [("v64", 2), ("v128", 4)])
def test_vectors(memory: Kernels, name: str, words: int) -> None:
    x = random_bits(I32, 32 * words).reshape(32, words)
    for space in ("global", "shared"):
        out = np.zeros_like(x)
        memory.run(f"{space}_{name}", x, out)
        assert (out == x[np.arange(32) ^ 1]).all(), space


def test_narrow_loads_extend_the_sign_or_not(memory: Kernels) -> None:
    arrays = [random_bits(TYPES[name]) for name in ("s8", "u8", "s16", "u16")]
    out = np.zeros((8, 32), np.int64)
    memory.run("widened", *arrays, out)
    for k, array in enumerate(arrays):
        assert (out[k] == array).all()
        assert (out[4 + k] == array[np.arange(32) ^ 1]).all()


def test_constant_tables(memory: Kernels) -> None:
    index = numbers(32, 0, 32)
    out = np.zeros((8, 32))
    memory.run("constants", index, out)

    def table(*first: float) -> Array:
        return np.array([*first, *[0.0] * (32 - len(first))])

    s8 = np.array([-128, 127, -1, *range(28), -28])
    vectors = [sum((4 * k + j + 1) * 100**j for j in range(4)) if k < 3 else 0 for k in range(8)]
    expected = [
        s8, table(255, 128, 3), table(-32768, 32767, -1, 5), table(65535, 32768, 7), table(-5, 4, 3, 2, 1),
        table(1.5, -2.5, 1e300), np.array(vectors * 4),
    ]  # fmt: skip
    for row, values in zip(out, expected, strict=False):
        assert (row == values[index]).all()
    assert (out[7] == -128 + 128 - 32768 + 32768 - 2.5).all()


def test_constants_out_of_bounds(sm_80: Kernels) -> None:
    index = np.full(32, 1 << 20, np.int32)
    with pytest.raises(Fault, match=r"bytes? of constant bank 3 at 0x\w+ are out of bounds"):
        sm_80.run("constants", index, np.zeros((8, 32)))


def test_arguments_by_value(memory: Kernels) -> None:
    record = np.zeros(
        (), np.dtype({"names": ["a", "b", "c", "d"], "formats": ["i1", "f8", "i2", "3i4"],
                      "offsets": [0, 8, 16, 20], "itemsize": 32}),
    )  # fmt: skip
    record[()] = (-7, 0.5, -300, (10, 20, 30))
    out = np.zeros(32)
    memory.run("by_value", record[()], np.uint8(200), np.int16(-2), np.float32(0.25), np.int64(1 << 40), out)
    rest = -7 + 0.5 - 300 + 200 - 2 + 0.25 + (1 << 40)
    assert (out == rest + np.array([10, 20, 30])[np.arange(32) % 3]).all()


# bounds


@pytest.mark.parametrize(
    ("kernel", "offset", "reason"),
    [
        ("load_word", 400, "4 bytes of global memory are read at {}: 4 bytes past the end of argument 0"),
        ("load_word", 404, "4 bytes of global memory are read at {}: 8 bytes past the end of argument 0"),
        ("load_word", -4, "4 bytes of global memory are read at {}: 4 bytes before argument 0"),
        ("load_wide", 400, "16 bytes of global memory are read at {}: 16 bytes past the end of argument 0"),
        ("load_wide", 384, None),
        ("load_word", 6, "4 bytes of global memory at {} are not aligned to 4"),
        ("load_wide", 24, "16 bytes of global memory at {} are not aligned to 16"),
        ("load_word", 396, None),
    ],
)  # fmt: skip
def test_bounds_of_a_load(sm_80: Kernels, kernel: str, offset: int, reason: str | None) -> None:
    x, out = numbers(100), np.zeros(2, np.int32)
    if reason is None:
        sm_80.run(kernel, x, out, np.int64(offset), grid=2)
        k = offset // 4
        assert (out == (x[k] if kernel == "load_word" else x[k : k + 4] @ [1, 2, 3, 4])).all()
        return
    pattern = re.escape(reason).replace(r"\{\}:", r"0x\w+, out of bounds:").replace(r"\{\}", r"0x\w+")
    with pytest.raises(Fault, match=pattern) as caught:
        sm_80.run(kernel, x, out, np.int64(offset), grid=2)
    fault = caught.value
    assert (fault.kernel, fault.block, fault.thread) == (kernel, (0, 0, 0), (3, 0, 0))
    assert fault.instruction is not None
    assert fault.instruction.opcode == "LDG"
    assert not out.any()


def test_a_wide_load_that_only_begins_inside(sm_80: Kernels) -> None:
    with pytest.raises(Fault, match="16 bytes .* out of bounds: 8 bytes past the end of argument 0"):
        sm_80.run("load_wide", np.zeros(98, np.int32), np.zeros(1, np.int32), np.int64(384))


@pytest.mark.parametrize("offset", [0, 40, -40])
def test_null_pointer(sm_80: Kernels, offset: int) -> None:
    with pytest.raises(Fault, match=r"4 bytes are read at 0x\w+ through a null pointer"):
        sm_80.run("load_word", None, np.zeros(1, np.int32), np.int64(offset))
    with pytest.raises(Fault, match=r"4 bytes are written at 0x\w+ through a null pointer"):
        sm_80.run("store_word", np.zeros(0, np.int32), np.int64(offset), np.int32(1))


def test_bounds_of_a_store(sm_80: Kernels) -> None:
    x = np.zeros(100, np.int32)
    sm_80.run("store_word", x, np.int64(396), np.int32(9))
    assert x[99] == 9
    with pytest.raises(
        Fault, match=r"thread \(5, 0, 0\): 4 bytes of global memory are written .* 4 bytes past"
    ):
        sm_80.run("store_word", x, np.int64(400), np.int32(1))
    assert (x[:99] == 0).all()


def test_a_pointer_to_nowhere(sm_80: Kernels) -> None:
    for offset in (1 << 50, -(1 << 62), 1 << 62):
        with pytest.raises(Fault, match="out of bounds"):
            sm_80.run("load_word", numbers(4), np.zeros(1, np.int32), np.int64(offset))


def test_the_nearer_buffer_is_named(sm_80: Kernels) -> None:
    x, out = numbers(4096), np.zeros(1, np.int32)
    with pytest.raises(Fault, match="8 bytes past the end of argument 1"):
        sm_80.run("load_word", x, out, np.int64(4 * 4096 + 512 + 8))


# arrays of the caller


def test_read_only_arrays(sm_80: Kernels) -> None:
    x, out = numbers(32), np.zeros(32, np.int32)
    x.flags.writeable = False
    sm_80.run("copy", x, out, np.int32(32))
    assert (out == x).all()
    out.flags.writeable = False
    before = out.copy()
    with pytest.raises(Fault, match=r"STG.* argument 1 is read-only but written at 0x"):
        sm_80.run("copy", x[::-1].copy(), out, np.int32(32))
    assert (out == before).all()


def test_overlapping_views(sm_80: Kernels) -> None:
    x = numbers(96)
    before = x.copy()
    sm_80.run("scaled_sum", x[:64], x[32:], np.int32(64))
    wanted = before.copy()
    wanted[:32] = 2 * before[:32] + before[32:64]
    wanted[32:64] = 2 * before[32:64] + before[64:]
    assert (x == wanted).all()


def test_the_same_array_twice(sm_80: Kernels) -> None:
    x = numbers(64)
    before = x.copy()
    sm_80.run("scaled_sum", x, x, np.int32(64))
    assert (x == 3 * before).all()


@pytest.mark.parametrize("first", range(1, 8))
def test_slices_that_begin_anywhere(sm_80: Kernels, first: int) -> None:
    storage, target = numbers(80), np.full(80, -1, np.int32)
    sm_80.run("copy", storage[first : first + 64], target[first + 1 : first + 65], np.int32(64), grid=2)
    assert (target[first + 1 : first + 65] == storage[first : first + 64]).all()
    assert (target[: first + 1] == -1).all()
    assert (target[first + 65 :] == -1).all()
    with pytest.raises(Fault, match="out of bounds"):
        sm_80.run("copy", storage[first : first + 64], target[first + 1 : first + 65], np.int32(65), grid=3)


def test_a_slice_of_bytes_keeps_its_misalignment(sm_80: Kernels) -> None:
    storage = np.zeros(64, np.uint8)
    with pytest.raises(Fault, match="not aligned to 4"):
        sm_80.run("load_word", storage[1:], np.zeros(1, np.int32), np.int64(0))
    sm_80.run("load_word", storage[1:], np.zeros(1, np.int32), np.int64(3))


def test_strided_and_reversed_views(sm_80: Kernels) -> None:
    """A pointer is that of the first element; the kernel walks on in memory, not in the view."""
    storage, out = numbers(64), np.zeros(32, np.int32)
    sm_80.run("copy", storage[::2], out, np.int32(32))
    assert (out == storage[:32]).all()
    sm_80.run("copy", storage[10::-1], out, np.int32(1))
    assert out[0] == storage[10]
    with pytest.raises(Fault, match="past the end"):
        sm_80.run("copy", storage[10::-1], out, np.int32(2))


def test_empty_arrays(sm_80: Kernels) -> None:
    empty: npt.NDArray[np.int32] = np.zeros(0, np.int32)
    sm_80.run("copy", empty, empty, np.int32(0))
    with pytest.raises(Fault, match="null pointer"):
        sm_80.run("copy", empty, empty, np.int32(1))


def test_zero_dimensional_arrays(sm_80: Kernels) -> None:
    x, out = np.array(7, np.int32), np.array(0, np.int32)
    sm_80.run("copy", x, out, np.int32(1))
    assert out == 7


def test_lanes_choose_among_buffers(memory: Kernels) -> None:
    a, b = numbers(32), numbers(32, seed=1)
    c, d = np.zeros(32, np.int32), np.zeros(32, np.int32)
    memory.run("choose", a, b, c, d)
    i = np.arange(32)
    chosen = np.where(i % 3, a, b)
    assert (c == np.where(i % 2, chosen, 0)).all()
    assert (d == np.where(i % 2, 0, chosen)).all()


# shared memory


@pytest.mark.parametrize("n", [32, 100, 5000])
def test_static_and_dynamic_shared_memory(memory: Kernels, n: int) -> None:
    x, out = numbers(32), np.zeros(n, np.int32)
    memory.run("static_and_dynamic", x, out, np.int32(n), shared=4 * n)
    k = np.arange(n)
    assert (out == 1000 * (n - 1 - k) + x[31 - k % 32]).all()


def test_shared_memory_out_of_bounds(memory: Kernels) -> None:
    out = np.zeros(32, np.int32)
    memory.run("shared_at", out, np.int32(0), shared=128)
    assert (out == np.arange(32)).all()
    with pytest.raises(
        Fault, match=r"thread \(31, 0, 0\): 4 bytes of shared memory at 0x\w+ are out of bounds"
    ):
        memory.run("shared_at", out, np.int32(1), shared=128)
    with pytest.raises(Fault, match=r"shared memory .*; \d+ bytes from 0x0 on are declared"):
        memory.run("shared_at", out, np.int32(0), shared=0)


def test_shared_memory_before_its_first_byte(sm_80: Kernels) -> None:
    with pytest.raises(Fault, match="shared memory at 0xfffffffc are out of bounds"):
        sm_80.run("shared_at", np.zeros(32, np.int32), np.int32(-1), shared=128)


def test_reading_what_nobody_has_written(memory: Kernels) -> None:
    out = np.zeros(64, np.int32)
    memory.run("never_written", out, np.int32(32))
    with pytest.raises(
        Fault, match=r"STG.*thread \(20, 0, 0\): uses R\d+, which LDS.* at 0x\w+, never written"
    ):
        memory.run("never_written", out, np.int32(20))


def test_blocks_do_not_share_their_shared_memory(sm_80: Kernels) -> None:
    """Block 1 must not see what block 0 has written at the same address."""
    out = np.zeros(32, np.int32)
    with pytest.raises(Fault, match="never written") as caught:
        sm_80.run("never_written", out, np.int32(0), grid=2)
    assert caught.value.block == (0, 0, 0)


def test_a_word_of_which_half_was_written(memory: Kernels) -> None:
    x, out = random_bits(np.uint16, 64), np.zeros(32, np.uint32)
    memory.run("half_written", x, out, np.int32(1))
    assert (out == x[:32] | (x[32:].astype(np.uint32) << 16)).all()
    with pytest.raises(Fault, match="never written"):
        memory.run("half_written", x, out, np.int32(0))


def test_what_is_the_same_in_all_threads_of_a_block(memory: Kernels) -> None:
    """One load for each block, one store by one of its threads; slabs grow as they have so little to do."""
    x, out = numbers(5000, 0, 1000), np.zeros(5000, np.int32)
    done: list[int] = []
    launched = launch((x, out, np.int32(33)), grid=5000, block=1024)
    memory.emulator("by_block").run(launched, progress=lambda blocks, total: done.append(blocks))
    assert (out == 2 * x).all()
    assert done[:3] == [16, 16 + 128, 16 + 128 + 1024]


def test_faults_of_what_is_the_same_in_all_threads_of_a_block(memory: Kernels) -> None:
    x, out = numbers(100, 0, 1000), np.zeros(100, np.int32)
    with pytest.raises(Fault, match=r"block \(70, 0, 0\), thread \(33, 0, 0\): 4 bytes .* are read .* past"):
        memory.run("by_block", x[:70].copy(), out, np.int32(33), grid=100, block=64)
    with pytest.raises(Fault, match=r"block \(90, 0, 0\), thread \(33, 0, 0\): 4 bytes .* are written"):
        memory.run("by_block", x, out[:90].copy(), np.int32(33), grid=100, block=64)
