"""Bulk copies: boxes at every edge of a tensor, swizzles, reductions, and what is touched too early."""

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from cuasmrl.gpu.emulator import Fault
from cuasmrl.gpu.emulator.machine import Machine
from cuasmrl.gpu.emulator.tensor_maps import Element, TensorMap
from tests.gpu.emulator.by_hand import general, machine, set_pair, set_uniform, zeros
from tests.gpu.emulator.test_mbarriers import word

AT, BARRIER = 0x400, 0x100
ONE = "ISETP.NE.AND P1, PT, R0, RZ, PT"
INIT = "SYNCS.EXCH.64 URZ, [UR60+0x100], UR6"
EXPECT = "@!P1 SYNCS.ARRIVE.TRANS64 RZ, [UR60+0x100], R8"
WAIT = "SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR60+0x100], R9"
BEFORE = ("S2R R0, SR_LANEID", ONE, INIT, EXPECT)
FLUSH = "B------:R2:W-:-:S01  UTMACMDFLUSH"
STORED = "DEPBAR.LE SB2, 0x0"
DTYPES = {
    Element.U8: np.uint8, Element.U16: np.uint16, Element.S32: np.int32, Element.S64: np.int64,
    Element.F16: np.float16, Element.F32: np.float32, Element.F64: np.float64,
}  # fmt: skip


def ready(
    map_: TensorMap, tensor: npt.NDArray[Any], at: tuple[int, ...], *lines: str, shared: int = 0x4000
) -> Machine:
    """One warp; UR8.. as a load wants them, UR16.. as a store, the map in UR24, a buffer of its own."""
    arrays: dict[str, npt.NDArray[Any]] = {"tensor": tensor, "map": zeros(128, 64)}
    made = machine(*lines, warps=1, shared=shared, arrays=arrays, written=False)
    memory = made.env.memory
    placed = TensorMap(
        memory.address_of(tensor) + map_.address, map_.element, map_.sizes, map_.strides, map_.box,
        map_.swizzle, map_.fills_nan, map_.rounds_to_tf32,
    )  # fmt: skip
    memory.write(memory.address_of(arrays["map"]), np.frombuffer(placed.encode(), np.uint8), 0)
    set_pair(made, 6, word(1))
    set_uniform(made, 8, AT, BARRIER, *at)
    set_uniform(made, 16, AT, *at)
    set_pair(made, 24, memory.address_of(arrays["map"]))
    made.registers.general[8] = np.full((1, 1, 1), map_.box_bytes, np.uint32)
    return made


def load(map_: TensorMap, tensor: npt.NDArray[Any], at: tuple[int, ...]) -> npt.NDArray[np.uint8]:
    """The bytes of a box in shared memory, swizzled as they are."""
    made = ready(map_, tensor, at, *BEFORE, f"UTMALDG.{map_.rank}D [UR8], [UR24]", WAIT)
    made.run()
    return made.shared.data[AT : AT + map_.box_bytes]


def map_of(
    tensor: npt.NDArray[Any], element: Element, box: tuple[int, ...], swizzle: int = 0, **more: bool
) -> TensorMap:
    strides = tuple(reversed(tensor.strides[:-1]))
    return TensorMap(0, element, tuple(reversed(tensor.shape)), strides, box, swizzle, **more)


def cut(
    tensor: npt.NDArray[Any], box: tuple[int, ...], at: tuple[int, ...], fill: float = 0
) -> npt.NDArray[Any]:
    """The box by NumPy: pad, then slice. Innermost dimension first in `box` and `at`."""
    widths = [(abs(a) + b, abs(a) + b) for a, b in zip(reversed(at), reversed(box), strict=True)]
    padded = np.pad(tensor, widths, constant_values=fill)
    places = [
        slice(a + w, a + w + b) for a, (w, _), b in zip(reversed(at), widths, reversed(box), strict=True)
    ]
    return padded[tuple(places)]


def numbers(shape: tuple[int, ...], kind: type) -> npt.NDArray[Any]:
    values: npt.NDArray[Any] = np.random.default_rng(1).integers(1, 100, shape).astype(kind)
    found: npt.NDArray[Any] = zeros(values.nbytes, 16).view(kind).reshape(shape)
    found[...] = values
    return found


@pytest.mark.parametrize("element", DTYPES)
def test_types(element: Element) -> None:
    tensor = numbers((24, 64), DTYPES[element])
    row = 32 // element.bytes
    found = load(map_of(tensor, element, (row, 8)), tensor, (row, 5)).view(DTYPES[element])
    assert np.array_equal(found, cut(tensor, (row, 8), (row, 5)).reshape(-1))


@pytest.mark.parametrize(
    "at", [(0, 0), (40, 0), (56, 20), (-8, -3), (-64, 0), (64, 0), (0, 24), (1000, -1000), (3, 7)]
)
def test_edges_are_filled_with_zeros(at: tuple[int, ...]) -> None:
    """And all bytes of the box are told to the barrier, or the wait would not end."""
    tensor = numbers((24, 64), np.int32)
    found = load(map_of(tensor, Element.S32, (32, 16)), tensor, at).view(np.int32)
    assert np.array_equal(found.reshape(16, 32), cut(tensor, (32, 16), at))


def test_edges_that_are_not_numbers() -> None:
    tensor = numbers((24, 64), np.float16)
    found = load(map_of(tensor, Element.F16, (16, 8), fills_nan=True), tensor, (56, 20)).view(np.float16)
    assert np.array_equal(found.reshape(8, 16), cut(tensor, (16, 8), (56, 20), np.nan), equal_nan=True)


@pytest.mark.parametrize("rank", [1, 2, 3, 4, 5])
def test_dimensions(rank: int) -> None:
    shape = (3, 4, 5, 6, 32)[-rank:]
    tensor = numbers(shape, np.uint16)
    box, at = (16, 2, 3, 2, 2)[:rank], (8, 5, 1, -1, 2)[:rank]
    found = load(map_of(tensor, Element.U16, box), tensor, at).view(np.uint16)
    assert np.array_equal(found, cut(tensor, box, at).reshape(-1))


@pytest.mark.parametrize("width", [32, 64, 128])
def test_swizzles(width: int) -> None:
    """Granule c of line r goes to c ^ r, of lines that are as long as the pattern."""
    tensor = numbers((16, width), np.uint8)
    found = load(map_of(tensor, Element.U8, (width, 16), width), tensor, (0, 0)).reshape(16, -1, 16)
    lines = 128 // width
    for r in range(16):
        for c in range(width // 16):
            to = c ^ (AT // width + r) // lines % (width // 16)
            assert np.array_equal(found[r, to], tensor[r, 16 * c : 16 * c + 16])


def test_a_tensor_inside_of_another() -> None:
    """Strides are those of the whole, sizes those of the part."""
    whole = numbers((20, 64), np.float32)
    part = whole[4:16, 8:56]
    map_ = TensorMap((4 * 64 + 8) * 4, Element.F32, (48, 12), (256,), (32, 8))
    found = load(map_, whole, (32, 8)).view(np.float32).reshape(8, 32)
    assert np.array_equal(found, cut(part, (32, 8), (32, 8)))


def test_subnormals_and_tf32() -> None:
    tensor = np.array([[1e-40, -1e-40, 1.5, 1 + 2**-11, 1 + 2**-12, -np.inf, np.nan, 0]], np.float32)
    flushed = load(map_of(tensor, Element.F32_FTZ, (8, 1)), tensor, (0, 0)).view(np.float32)
    assert np.array_equal(flushed, np.where(np.abs(tensor[0]) < 1e-38, 0, tensor[0]), equal_nan=True)
    rounded = load(map_of(tensor, Element.F32, (8, 1), rounds_to_tf32=True), tensor, (0, 0)).view(np.float32)
    assert rounded[2:7].tolist()[:4] == [1.5, 1 + 2**-10, 1.0, -np.inf]
    assert np.isnan(rounded[6])


def store(
    opcode: str, tensor: npt.NDArray[Any], map_: TensorMap, at: tuple[int, ...], box: npt.NDArray[Any]
) -> None:
    made = ready(map_, tensor, at, f"{opcode} [UR16], [UR24]", FLUSH, STORED)
    made.shared.tags[:] = 15
    made.shared.data[AT : AT + map_.box_bytes] = box.reshape(-1).view(np.uint8)
    made.run()


@pytest.mark.parametrize("at", [(0, 0), (40, 12), (-8, -3), (64, 0), (33, 23)])
def test_stores_leave_the_outside_alone(at: tuple[int, ...]) -> None:
    tensor, box = numbers((24, 64), np.int32), -numbers((16, 32), np.int32)
    wanted = tensor.copy()
    for i, j in np.ndindex(16, 32):
        row, column = at[1] + i, at[0] + j
        if 0 <= row < 24 and 0 <= column < 64:
            wanted[row, column] = box[i, j]
    store("UTMASTG.2D", tensor, map_of(tensor, Element.S32, (32, 16)), at, box)
    assert np.array_equal(tensor, wanted)


@pytest.mark.parametrize(
    ("name", "function"), [("ADD", np.add), ("MIN", np.minimum), ("MAX", np.maximum), ("AND", np.bitwise_and),
                           ("OR", np.bitwise_or), ("XOR", np.bitwise_xor)]
)  # fmt: skip
def test_reductions(name: str, function: np.ufunc) -> None:
    tensor, box = numbers((8, 16), np.int32), 2 * numbers((4, 8), np.int32)[::-1].copy()
    wanted = tensor.copy()
    wanted[2:6, 4:12] = function(wanted[2:6, 4:12], box)
    store(f"UTMAREDG.2D.{name}", tensor, map_of(tensor, Element.S32, (8, 4)), (4, 2), box)
    assert np.array_equal(tensor, wanted)


def test_sums_of_bfloat16() -> None:
    """1 + 2^-8 is a tie, and goes to the even 1; 1 + 3 2^-8 goes up."""
    tensor = np.full((1, 8), 0x3F80, np.uint16)
    box = np.array([[0x3B80, 0x3C40, 0x3F80, 0, 0, 0, 0, 0xBF80]], np.uint16)
    store("UTMAREDG.2D.ADD", tensor, map_of(tensor, Element.BF16, (8, 1)), (0, 0), box)
    assert tensor[0].tolist() == [0x3F80, 0x3F82, 0x4000, 0x3F80, 0x3F80, 0x3F80, 0x3F80, 0]


def plain_copy(*lines: str, size: int = 256) -> tuple[Machine, npt.NDArray[np.int32]]:
    """UR8: shared memory and barrier, UR16 and UR24: global memory, UR28: a count of 16 bytes."""
    array = numbers((128,), np.int32)
    made = machine(*lines, warps=1, arrays={"array": array}, written=False)
    set_pair(made, 6, word(1))
    set_uniform(made, 8, AT, BARRIER)
    set_pair(made, 24, made.env.memory.address_of(array))
    set_uniform(made, 28, size // 16)
    made.registers.general[8] = np.full((1, 1, 1), size, np.uint32)
    return made, array


def test_plain_copies() -> None:
    made, array = plain_copy(*BEFORE, "UBLKCP.S.G [UR8], [UR24], UR28", WAIT)
    made.run()
    assert np.array_equal(made.shared.data[AT : AT + 256].view(np.int32), array[:64])
    made, array = plain_copy("UBLKCP.G.S [UR24], [UR8], UR28", FLUSH, STORED)
    made.shared.tags[:] = 15
    made.shared.data[AT : AT + 256] = 7
    made.run()
    assert (array[:64] == 0x07070707).all()
    assert not (array[64:] == 0x07070707).any()


# too early

LOAD = "UTMALDG.2D [UR8], [UR24]"
STORE = "UTMASTG.2D [UR16], [UR24]"


def try_out(*lines: str, written: bool = True, changes: Mapping[str, int] | None = None) -> None:
    tensor = numbers((24, 64), np.int32)
    made = ready(map_of(tensor, Element.S32, (32, 16)), tensor, (0, 0), *lines)
    if written:
        made.shared.tags[:] = 15
    for name, value in (changes or {}).items():
        set_uniform(made, int(name[2:]), value)
    made.run()


def test_reading_what_nobody_has_waited_for() -> None:
    read = f"LDS R2, [RZ+{AT + 64:#x}]"
    try_out(*BEFORE, LOAD, WAIT, read)
    with pytest.raises(Fault, match="0x440, the target of a bulk copy whose mbarrier nobody has waited for"):
        try_out(*BEFORE, LOAD, read, WAIT)
    # Another barrier's phase is not the one.
    other = [line.replace("0x100", "0x108") for line in (INIT, EXPECT.replace("R8", "RZ"), WAIT)]
    with pytest.raises(Fault, match="whose mbarrier nobody has waited for"):
        try_out(*BEFORE, LOAD, *other, read)


def test_writing_what_is_on_its_way() -> None:
    write = f"STS [RZ+{AT + 64:#x}], R2"
    try_out(*BEFORE, LOAD, WAIT, write)
    with pytest.raises(Fault, match="written at 0x440, the target of a bulk copy whose mbarrier nobody"):
        try_out(*BEFORE, LOAD, write, WAIT)


@pytest.mark.parametrize("write", [f"STS [RZ+{AT + 64:#x}], R2", LOAD])
def test_overwriting_what_is_still_stored(write: str) -> None:
    for wait in (STORED, "DEPBAR {2}", "B--2---:R-:W-:-:S01  NOP", "DEPBAR.LE SB1, 0x1, {2}"):
        try_out(*BEFORE, STORE, FLUSH, wait, write, written=True)
    for wait in ("NOP", "DEPBAR.LE SB2, 0x1", "DEPBAR.LE SB1, 0x0", "DEPBAR {1,0}"):
        with pytest.raises(Fault, match=rf"which {re.escape(STORE)} at 0x\w+ still reads") as caught:
            try_out(*BEFORE, STORE, FLUSH, wait, write)
        assert caught.value.instruction is not None
        assert caught.value.instruction.text == write
    # A store that is in no group yet cannot be waited for.
    with pytest.raises(Fault, match="still reads"):
        try_out(*BEFORE, FLUSH, STORE, STORED, write)


def test_a_wait_for_all_but_the_last_group() -> None:
    second = STORE.replace("UR16", "UR32")
    lines = (*BEFORE, STORE, FLUSH, second, FLUSH, "DEPBAR.LE SB2, 0x1")
    try_out(*lines, f"STS [RZ+{AT:#x}], R2", changes={"UR32": 0x2000})
    with pytest.raises(Fault, match="still reads"):
        try_out(*lines, "STS [RZ+0x2000], R2", changes={"UR32": 0x2000})


def test_storing_what_nobody_wrote() -> None:
    with pytest.raises(Fault, match="stores shared memory from 0x400 on, parts of which nobody wrote"):
        try_out(STORE, written=False)


@pytest.mark.parametrize(
    ("line", "changes", "sentence"),
    [
        (LOAD, {"UR8": 0x440}, "a box at 0x440 of shared memory is not aligned to 128"),
        (LOAD, {"UR8": 0x3C00}, "2048 bytes of shared memory at 0x3c00 are out of bounds; 16384 bytes"),
        (LOAD, {"UR9": 0x108}, "there is no mbarrier at 0x108"),
        (LOAD, {"UR24": 0x1234_5640}, "128 bytes of global memory are read at 0x7?12345640, out of bounds"),
        ("UTMALDG.3D [UR8], [UR24]", {}, "has 2 dimensions, and 3 coordinates are given"),
    ],
)
def test_orders_that_cannot_be_carried_out(line: str, changes: dict[str, int], sentence: str) -> None:
    with pytest.raises(Fault, match=sentence):
        try_out(*BEFORE, line, changes=changes)


def test_a_map_that_is_none() -> None:
    tensor = numbers((24, 64), np.int32)
    made = ready(map_of(tensor, Element.S32, (32, 16)), tensor, (0, 0), *BEFORE, LOAD)
    address = int(made.registers.uniform[24].item()) | int(made.registers.uniform[25].item()) << 32
    made.env.memory.write(address + 9, np.array([0xFF], np.uint8), 0)
    with pytest.raises(Fault, match=r"map at 0x\w+ is impossible: its element type is 15, which does"):
        made.run()


def test_a_tensor_that_is_larger_than_its_buffer() -> None:
    tensor = numbers((24, 64), np.int32)
    map_ = TensorMap(0, Element.S32, (64, 40), (256,), (32, 16))
    load(map_, tensor, (0, 8))
    with pytest.raises(
        Fault, match="of global memory are read at .*, out of bounds: .* past the end of tensor"
    ):
        load(map_, tensor, (0, 16))


def test_refused_forms() -> None:
    from cuasmrl.errors import CuasmrlError

    for line in ("UTMALDG.2D.MULTICAST [UR8], [UR24], UR30", "UTMALDG.4D.IM2COL [UR8], [UR24], UR30",
                 "UBLKCP.S.S [UR8], [UR24], UR30", "UTMAREDG.2D.INC [UR16], [UR24]"):  # fmt: skip
        with pytest.raises(CuasmrlError, match="cannot be emulated"):
            machine(line)


def test_one_order_for_a_warp_whatever_its_lanes_do() -> None:
    """Two warps, each with a box of its own, in every block."""
    tensor = numbers((64, 64), np.int32)
    map_ = map_of(tensor, Element.S32, (32, 8))
    arrays: dict[str, npt.NDArray[Any]] = {"tensor": tensor, "map": zeros(128, 64)}
    made = machine(
        "S2R R0, SR_TID.X", ONE, "VOTEU.ANY UP0, !P1", f"@UP0 {INIT}", EXPECT, "BAR.SYNC 0x0", LOAD, WAIT,
        warps=2, blocks=3, shared=0x4000, arrays=arrays, written=False,
    )  # fmt: skip
    placed = TensorMap(
        made.env.memory.address_of(tensor),
        *[getattr(map_, f) for f in ("element", "sizes", "strides", "box")],
    )
    memory = made.env.memory
    memory.write(memory.address_of(arrays["map"]), np.frombuffer(placed.encode(), np.uint8), 0)
    set_pair(made, 6, word(1))
    set_uniform(made, 8, AT, BARRIER, 0, 0)
    block, warp = np.arange(3).reshape(3, 1, 1), np.arange(2).reshape(1, 2, 1)
    made.registers.uniform[8] = (AT + 0x1000 * warp).astype(np.uint32)
    made.registers.uniform[10] = (32 * warp).astype(np.uint32)
    made.registers.uniform[11] = (8 * block).astype(np.uint32)
    set_pair(made, 24, made.env.memory.address_of(arrays["map"]))
    made.registers.general[8] = np.full((1, 1, 1), 2 * map_.box_bytes, np.uint32)
    made.run()
    shared = made.shared.data.reshape(3, -1)
    for b, w in np.ndindex(3, 2):
        found = shared[b, AT + 0x1000 * w :][: map_.box_bytes].view(np.int32).reshape(8, 32)
        assert np.array_equal(found, tensor[8 * b : 8 * b + 8, 32 * w : 32 * w + 32])
    assert general(made, 0, 1).shape == (1, 6, 32)
