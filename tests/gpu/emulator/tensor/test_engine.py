"""tcgen05: operands in shared and tensor memory, where sums lie, and the arithmetic of each type."""

import numpy as np
import pytest
from numpy.typing import NDArray

from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.emulator import Fault
from cuasmrl.gpu.emulator.machine import Machine
from cuasmrl.gpu.emulator.tensor.engine import engine_form
from tests.gpu.emulator.by_hand import machine, set_pair, set_uniform
from tests.gpu.emulator.tensor.dense import BITS, Bits, decode, encode, slow_sum
from tests.gpu.emulator.tensor.placing import A_AT, B_AT, SHARED, across_k, along_k, as_bytes, small

N = 32
SUMS_AT, A_CELLS = 0x20, 0x100
TYPES = {"F16": 0, "BF16": 1, "TF32": 2, "E4M3": 0, "E5M2": 1, "U8": 0, "S8": 1}
ACCUMULATORS = {"F16": 0, "F32": 1, "S32": 2}


def kind(
    a: str = "F16",
    b: str = "F16",
    accumulator: str = "F32",
    rows: int = 128,
    columns: int = N,
    across: tuple[bool, bool] = (False, False),
    more: int = 0,
) -> int:
    """The instruction descriptor."""
    types = ACCUMULATORS[accumulator] << 4 | TYPES[a] << 7 | TYPES[b] << 10
    return types | across[0] << 15 | across[1] << 16 | columns // 8 << 17 | rows // 16 << 24 | more


def for_tensor_core(bits: int) -> int:
    """A descriptor of wgmma as one of tcgen05: another place of the swizzle, and bit 46."""
    swizzle = {0: 0, 1: 2, 2: 4, 3: 6}[bits >> 62]
    return bits & (1 << 62) - 1 | swizzle << 61 | 1 << 46


def lane_of(row: int, rows: int) -> int:
    return row if rows == 128 else 32 * (row // 16) + row % 16


def prepared(line: str, descriptor: int, arch: int = 100, shared: int = SHARED, blocks: int = 1) -> Machine:
    """All tensor memory is allocated, written, and given back at the end."""
    made = machine(
        "UTCATOMSWS.FIND_AND_SET.ALIGN UP1, UR20, UR21",
        "SYNCS.EXCH.64 URZ, [UR22], UR24",
        line,
        "UTCBAR [UR22], URZ",
        "SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR22], RZ",
        "UTCATOMSWS.AND URZ, UR23",
        warps=1,
        arch=arch,
        shared=shared,
        blocks=blocks,
    )
    # Wait for the end of phase 0: an mbarrier that expects one arrival, behind everything else.
    lacking = (1 << 20) - 1
    set_uniform(made, 8, SUMS_AT, 0, descriptor, A_CELLS)
    set_uniform(made, 20, 0, 16, shared - 16, 0)
    set_pair(made, 24, lacking << 1 | lacking << 43)
    assert made.tensor_memory is not None
    return made


def product(
    opcode: str,
    descriptor: int,
    a: Bits,
    b: Bits,
    c: Bits | None = None,
    layout: tuple[int, int] = (32, 32),
    step: int = 0,
    a_in_cells: bool = False,
) -> Bits:
    """D; A (rows, depth) and B (columns, depth) may be deeper than one instruction."""
    form = engine_form(opcode, descriptor, 100)
    first = "tmem[UR11]" if a_in_cells else "gdesc[UR4]"
    adds = "!UPT" if c is None else "UPT"
    line = f"{opcode} {first}, gdesc[UR6], tmem[UR8], tmem[UR9], idesc[UR10], {adds}"
    made = prepared(line, descriptor)
    memory = made.tensor_memory
    assert memory is not None
    size = BITS[form.tile.a] // 8
    images = []
    for name, at, rows, across in (("a", A_AT, a, form.a_across), ("b", B_AT, b, form.b_across)):
        width = layout[name == "b"]
        data = as_bytes(form.tile.a if name == "a" else form.tile.b, rows)
        images.append(across_k(data, width, at, step, size) if across else along_k(data, width, at, step))
    made.shared.data[:] = images[1].image if a_in_cells else images[0].image | images[1].image
    set_pair(made, 4, for_tensor_core(images[0].descriptor), for_tensor_core(images[1].descriptor))
    lanes = [lane_of(row, form.rows) for row in range(form.rows)]
    if a_in_cells:
        words = as_bytes(form.tile.a, a).view(np.uint32)
        memory.cells[0, lanes, A_CELLS : A_CELLS + 8] = words[:, 8 * step : 8 * step + 8]
    if c is not None:
        memory.cells[0, lanes, SUMS_AT : SUMS_AT + form.columns] = c.astype(np.uint32)
    before = memory.cells.copy()
    made.run()
    after = memory.cells[0, lanes, SUMS_AT : SUMS_AT + form.columns].astype(np.uint64)
    before[0, lanes, SUMS_AT : SUMS_AT + form.columns] = after
    assert np.array_equal(before, memory.cells), "other cells have changed"
    return after


LAYOUTS = [
    (width, across, step)
    for width in (0, 32, 64, 128)
    for across in ((False, False), (False, True), (True, False), (True, True))
    for step in (0, 1)
    # Along K an operand is as wide as its swizzle: 32 bytes are one slice.
    if width != 32 or step == 0 or across == (True, True)
]


@pytest.mark.parametrize("rows", [64, 128])
@pytest.mark.parametrize(("width", "across", "step"), LAYOUTS)
def test_layouts(rows: int, width: int, across: tuple[bool, bool], step: int) -> None:
    rng = np.random.default_rng(width + step)
    depth = width // 2 if width and across != (True, True) else 64
    a, b = small(rng, rows, depth), small(rng, N, depth)
    found = product("UTCHMMA", kind(rows=rows, across=across), encode("F16", a), encode("F16", b), None,
                    (width, width), step)  # fmt: skip
    wanted = a[:, 16 * step :][:, :16] @ b[:, 16 * step :][:, :16].T
    assert np.array_equal(decode("F32", found), wanted)


@pytest.mark.parametrize("size", [1, 4])
@pytest.mark.parametrize("width", [0, 32, 64, 128])
def test_layouts_across_k_of_other_sizes(size: int, width: int) -> None:
    rng = np.random.default_rng(size)
    name, opcode = {1: ("E4M3", "UTCQMMA"), 4: ("TF32", "UTCHMMA")}[size]
    depth = 32 // size
    a, b = small(rng, 128, 2 * depth), small(rng, N, 2 * depth)
    descriptor = kind(name, name, across=(True, True))
    found = product(opcode, descriptor, encode(name, a), encode(name, b), None, (width, width), 1)
    assert np.array_equal(decode("F32", found), a[:, depth:] @ b[:, depth:].T)


KINDS = [
    ("UTCHMMA", "F16", "F16", "F32"),
    ("UTCHMMA", "F16", "F16", "F16"),
    ("UTCHMMA", "BF16", "BF16", "F32"),
    ("UTCHMMA", "TF32", "TF32", "F32"),
    ("UTCQMMA", "E4M3", "E5M2", "F32"),
    ("UTCQMMA", "E5M2", "E4M3", "F16"),
    ("UTCIMMA", "S8", "U8", "S32"),
    ("UTCIMMA", "U8", "S8", "S32"),
]


@pytest.mark.parametrize(("opcode", "a_type", "b_type", "accumulator"), KINDS)
@pytest.mark.parametrize("rows", [64, 128])
@pytest.mark.parametrize("a_in_cells", [False, True])
def test_types(opcode: str, a_type: str, b_type: str, accumulator: str, rows: int, a_in_cells: bool) -> None:
    rng = np.random.default_rng(rows)
    depth = 256 // BITS[a_type]
    a, b = small(rng, rows, depth, a_type[0] == "U"), small(rng, N, depth, b_type[0] == "U")
    c = small(rng, rows, N)
    descriptor = kind(a_type, b_type, accumulator, rows)
    bits = encode(a_type, a), encode(b_type, b), encode(accumulator, c)
    found = product(opcode, descriptor, *bits, a_in_cells=a_in_cells)
    assert np.array_equal(decode(accumulator, found), a @ b.T + c)


def test_negated() -> None:
    rng = np.random.default_rng(3)
    for name, opcode in (("F16", "UTCHMMA"), ("TF32", "UTCHMMA"), ("E5M2", "UTCQMMA")):
        depth = 256 // BITS[name]
        a, b, c = small(rng, 64, depth), small(rng, N, depth), small(rng, 64, N)
        bits = encode(name, a), encode(name, b), encode("F32", c)
        for more, sign in ((1 << 13, -1), (1 << 14, -1), (3 << 13, 1)):
            found = product(opcode, kind(name, name, rows=64, more=more), *bits)
            assert np.array_equal(decode("F32", found), sign * (a @ b.T) + c)


def test_integers_saturate_where_they_are_told_to() -> None:
    a, b = np.full((64, 32), 127.0), np.full((N, 32), 127.0)
    c = np.full((64, N), 2.0**31 - 1)
    bits = encode("S8", a), encode("S8", b), encode("S32", c)
    assert (product("UTCIMMA", kind("S8", "S8", "S32", 64, more=8), *bits) == 2**31 - 1).all()
    wrapped = (2**31 - 1 + 32 * 127 * 127) & 0xFFFF_FFFF
    assert (product("UTCIMMA", kind("S8", "S8", "S32", 64), *bits) == wrapped).all()


@pytest.mark.parametrize(("opcode", "a_type", "b_type", "accumulator"), KINDS[:-2])
def test_sums_are_those_of_the_published_model(
    opcode: str, a_type: str, b_type: str, accumulator: str
) -> None:
    descriptor = kind(a_type, b_type, accumulator, 64, 8)
    tile = engine_form(opcode, descriptor, 100).tile
    rng = np.random.default_rng(5)

    def wide(name: str, rows: int) -> NDArray[np.float64]:
        values = rng.normal(size=(rows, tile.k)) * 2.0 ** rng.integers(-5, 5, (rows, tile.k))
        return decode(name, encode(name, values))

    a, b = wide(a_type, 64), wide(b_type, 8)
    c = decode(accumulator, encode(accumulator, rng.normal(size=(64, 8))))
    bits = encode(a_type, a), encode(b_type, b), encode(accumulator, c)
    found = decode(accumulator, product(opcode, descriptor, *bits))
    for i in range(0, 64, 5):
        for j in range(8):
            assert found[i, j] == slow_sum(tile, list(a[i]), list(b[j]), float(c[i, j]))


def test_fp8_sums_keep_twenty_five_bits() -> None:
    """Unlike those of wgmma, which keep thirteen."""
    a, b = np.zeros((64, 32)), np.zeros((8, 32))
    a[0, 0], b[0, 0] = 1.0, 1.0
    a[0, 31], b[0, 31] = 2.0**-9, 2.0**-9
    found = product("UTCQMMA", kind("E4M3", "E4M3", "F32", 64, 8), encode("E4M3", a), encode("E4M3", b))
    assert decode("F32", found)[0, 0] == 1.0 + 2.0**-18


@pytest.mark.parametrize(
    ("opcode", "descriptor", "why"),
    [
        ("UTCHMMA", kind(more=4), "sparsity"),
        ("UTCHMMA", kind(more=1 << 23), "sparsity or something else"),
        ("UTCHMMA", kind("F16", "BF16"), "types"),
        ("UTCHMMA", kind("BF16", "BF16", "F16"), "types"),
        ("UTCQMMA", kind("E4M3", "E4M3") | 5 << 7, "types"),
        ("UTCIMMA", kind("S8", "S8", "F32"), "types"),
        ("UTCHMMA", kind(rows=256), "asks for 256 by 32"),
        ("UTCHMMA", kind(rows=32), "asks for 32 by 32"),
        ("UTCHMMA", kind(columns=24), "asks for 128 by 24"),
        ("UTCHMMA", kind(columns=264), "by 264"),
        ("UTCHMMA", kind(more=8), "saturates"),
        ("UTCIMMA", kind("S8", "S8", "S32", more=1 << 13), "negates"),
    ],
)
def test_instruction_descriptors_without_a_model(opcode: str, descriptor: int, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        engine_form(opcode, descriptor, 100)
    made = prepared(f"{opcode} gdesc[UR4], gdesc[UR6], tmem[UR8], tmem[UR9], idesc[UR10], !UPT", descriptor)
    with pytest.raises(Fault, match=f"the instruction descriptor {descriptor:#x} of {opcode} .*{why}"):
        made.run()


@pytest.mark.parametrize("bits", [0, 1 << 46 | 1 << 49, 1 << 46 | 1 << 52, 1 << 46 | 1 << 61, 2 << 46])
def test_matrix_descriptors_without_a_model(bits: int) -> None:
    made = prepared("UTCHMMA gdesc[UR4], gdesc[UR6], tmem[UR8], tmem[UR9], idesc[UR10], !UPT", kind())
    set_pair(made, 4, bits, 1 << 46)
    with pytest.raises(Fault, match=f"the matrix descriptor {bits:#x} .* no model"):
        made.run()


def test_operands_beyond_the_memory_of_the_block() -> None:
    line = "UTCHMMA gdesc[UR4], gdesc[UR6], tmem[UR8], tmem[UR9], idesc[UR10], !UPT"
    made = prepared(line, kind(), shared=8192)
    set_pair(made, 4, 1 << 46 | 0x100, 1 << 46 | 0x1FF)
    with pytest.raises(Fault, match="reads shared memory at 0x2060, out of bounds; 8192 bytes are declared"):
        made.run()


def test_every_block_has_its_own() -> None:
    rng = np.random.default_rng(7)
    made = prepared(
        "UTCHMMA gdesc[UR4], gdesc[UR6], tmem[UR8], tmem[UR9], idesc[UR10], !UPT", kind(), blocks=3
    )
    operands = [(small(rng, 128, 16), small(rng, N, 16)) for _ in range(3)]
    for block, (a, b) in enumerate(operands):
        placed = along_k(as_bytes("F16", encode("F16", a)), 32, A_AT, 0)
        other = along_k(as_bytes("F16", encode("F16", b)), 32, B_AT, 0)
        made.shared.data.reshape(3, -1)[block] = placed.image | other.image
    set_pair(made, 4, for_tensor_core(placed.descriptor), for_tensor_core(other.descriptor))
    made.run()
    assert made.tensor_memory is not None
    for block, (a, b) in enumerate(operands):
        found = made.tensor_memory.cells[block, :, SUMS_AT : SUMS_AT + N].view(np.float32)
        assert np.array_equal(found, a @ b.T)


def test_forms_that_are_refused() -> None:
    rest = "gdesc[UR4], gdesc[UR6], tmem[UR8], tmem[UR9], idesc[UR10]"
    for operands in ("UR16, UPT", "UPT, 0x3", "tmem[UR16], UPT"):
        with pytest.raises(CuasmrlError, match="cannot be emulated"):
            prepared(f"UTCHMMA {rest}, {operands}", kind())
    for modifier in ("2CTA", "WS", "ASHIFT"):
        with pytest.raises(CuasmrlError, match=f"modifier .{modifier}"):
            prepared(f"UTCHMMA.{modifier} {rest}, UPT", kind())
