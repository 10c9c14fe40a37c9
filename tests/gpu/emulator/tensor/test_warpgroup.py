"""wgmma: operands in shared memory in every layout, fragments of four warps, arithmetic of each type."""

import numpy as np
import pytest
from numpy.typing import NDArray

from cuasmrl.gpu.emulator import Fault
from cuasmrl.gpu.emulator.tensor.warpgroup import warpgroup_form
from tests.gpu.emulator.by_hand import general, machine, set_pair
from tests.gpu.emulator.tensor.dense import BITS, Bits, decode, encode, slow_sum
from tests.gpu.emulator.tensor.placing import (
    A_AT,
    B_AT,
    SHARED,
    across_k,
    along_k,
    as_bytes,
    descriptor,
    small,
)

N = 24


def product(
    text: str,
    a: Bits,
    b: Bits,
    c: Bits | None = None,
    layout: tuple[int, int] = (128, 128),
    across: tuple[bool, bool] = (False, False),
    step: int = 0,
) -> Bits:
    """D of one warpgroup; A (rows, depth) and B (columns, depth) may be deeper than one instruction."""
    mnemonic, rest = text.split(" ", 1)
    form = warpgroup_form(mnemonic, 90)
    made = machine(
        "WARPGROUP.ARRIVE",
        f"{mnemonic} {rest}",
        "WARPGROUP.DEPBAR.LE gsb0, 0x0",
        shared=SHARED,
    )
    place = [across_k if is_across else along_k for is_across in across]
    placed_b = place[1](as_bytes(form.tile.b, b), layout[1], B_AT, step)
    image = placed_b.image
    a_bits = 0
    if "R100" in rest:
        per = 32 // BITS[form.tile.a]
        depth = 8 * per
        fragments = to_fragments(a[:, step * depth : (step + 1) * depth], BITS[form.tile.a])
        for r in range(4):
            made.registers.general[100 + r] = fragments[r].reshape(1, 4, 32)
    else:
        placed_a = place[0](as_bytes(form.tile.a, a), layout[0], A_AT, step)
        image, a_bits = image | placed_a.image, placed_a.descriptor
    made.shared.data[:] = image
    set_pair(made, 4, a_bits, placed_b.descriptor)
    width = BITS[form.tile.accumulator]
    if c is not None:
        for r, value in enumerate(to_sums(c, width)):
            made.registers.general[24 + r] = value.reshape(1, 4, 32)
    made.run()
    return from_sums(general(made, 24, form.accumulators), width)


def to_fragments(a: Bits, bits: int) -> NDArray[np.uint32]:
    """A in registers: PTX ISA, register fragments of wgmma."""
    per = 32 // bits
    out = np.zeros((4, 4, 32), np.uint32)
    for warp in range(4):
        for lane in range(32):
            for r in range(4):
                row = 16 * warp + lane // 4 + 8 * (r % 2)
                first = per * (lane % 4 + 4 * (r // 2))
                for i in range(per):
                    out[r, warp, lane] |= np.uint32(int(a[row, first + i]) << bits * i)
    return out


def to_sums(c: Bits, bits: int) -> NDArray[np.uint32]:
    per, columns = 32 // bits, c.shape[1]
    out = np.zeros((columns // 2 // per, 4, 32), np.uint32)
    for warp, lane, r in np.ndindex(4, 32, len(out)):
        for i in range(per):
            j = r * per + i
            row = 16 * warp + lane // 4 + 8 * (j % 4 // 2)
            out[r, warp, lane] |= np.uint32(int(c[row, 8 * (j // 4) + 2 * (lane % 4) + j % 2]) << bits * i)
    return out


def from_sums(registers: NDArray[np.uint32], bits: int) -> Bits:
    per = 32 // bits
    d = np.zeros((64, 2 * per * len(registers)), np.uint64)
    for warp, lane, r in np.ndindex(4, 32, len(registers)):
        for i in range(per):
            j = r * per + i
            row = 16 * warp + lane // 4 + 8 * (j % 4 // 2)
            column = 8 * (j // 4) + 2 * (lane % 4) + j % 2
            d[row, column] = int(registers[r, warp, lane]) >> bits * i & (1 << bits) - 1
    return d


LAYOUTS = [
    (width, across, step)
    for width in (0, 32, 64, 128)
    for across in ((False, False), (False, True), (True, False), (True, True))
    for step in (0, 1)
    # Along K an operand is as wide as its swizzle: 32 bytes are one slice.
    if width != 32 or step == 0 or across == (True, True)
]


@pytest.mark.parametrize(("width", "across", "step"), LAYOUTS)
def test_layouts(width: int, across: tuple[bool, bool], step: int) -> None:
    rng = np.random.default_rng(width + step)
    depth = width // 2 if width and across != (True, True) else 64
    a, b = small(rng, 64, depth), small(rng, N, depth)
    suffix = "".join(f".tnsp{name}" for name, is_across in zip("AB", across, strict=True) if is_across)
    text = f"HGMMA.64x{N}x16.F32 R24, gdesc[UR4]{suffix}, RZ, !UPT, gsb0"
    found = product(text, encode("F16", a), encode("F16", b), None, (width, width), across, step)
    wanted = a[:, 16 * step :][:, :16] @ b[:, 16 * step :][:, :16].T
    assert np.array_equal(decode("F32", found), wanted)


@pytest.mark.parametrize(
    ("mnemonic", "depth"),
    [
        ("HGMMA.64x24x16.F32", 16),
        ("HGMMA.64x24x16.F16", 16),
        ("HGMMA.64x24x16.F32.BF16", 16),
        ("HGMMA.64x24x8.F32.TF32", 8),
        ("QGMMA.64x24x32.F32.E4M3.E5M2", 32),
        ("QGMMA.64x24x32.F16.E5M2.E4M3", 32),
        ("IGMMA.64x24x32.S8.U8", 32),
        ("IGMMA.64x24x32.U8.S8", 32),
    ],
)
@pytest.mark.parametrize("a_in_registers", [False, True])
def test_types(mnemonic: str, depth: int, a_in_registers: bool) -> None:
    form = warpgroup_form(mnemonic, 90)
    rng = np.random.default_rng(depth)
    a = small(rng, 64, depth, form.tile.a[0] == "U")
    b, c = small(rng, N, depth, form.tile.b[0] == "U"), small(rng, 64, N)
    first = "R100, " if a_in_registers else ""
    found = product(
        f"{mnemonic} R24, {first}gdesc[UR4], R24, gsb0",
        encode(form.tile.a, a),
        encode(form.tile.b, b),
        encode(form.tile.accumulator, c),
        (32, 32),
    )
    assert np.array_equal(decode(form.tile.accumulator, found), a @ b.T + c)


def test_without_the_accumulator_and_negated() -> None:
    rng = np.random.default_rng(3)
    a, b, c = small(rng, 64, 16), small(rng, N, 16), small(rng, 64, N)
    bits = encode("F16", a), encode("F16", b), encode("F32", c)
    text = f"HGMMA.64x{N}x16.F32 R24, gdesc[UR4]"
    assert np.array_equal(decode("F32", product(f"{text}, R24, UP0, gsb0", *bits, (32, 32))), a @ b.T)
    for suffix, sign in ((".negA", -1), (".negB", -1), (".negA.negB", 1)):
        found = product(f"{text}{suffix}, R24, gsb0", *bits, (32, 32))
        assert np.array_equal(decode("F32", found), sign * (a @ b.T) + c), suffix


@pytest.mark.parametrize(
    "mnemonic",
    ["HGMMA.64x8x16.F32", "HGMMA.64x8x16.F16", "HGMMA.64x8x8.F32.TF32", "HGMMA.64x8x16.F32.BF16",
     "QGMMA.64x8x32.F32.E4M3.E4M3", "QGMMA.64x8x32.F16.E4M3.E5M2"],
)  # fmt: skip
def test_sums_are_those_of_the_published_model(mnemonic: str) -> None:
    tile = warpgroup_form(mnemonic, 90).tile
    rng = np.random.default_rng(5)

    def wide(rows: int) -> NDArray[np.float64]:
        values = rng.normal(size=(rows, tile.k)) * 2.0 ** rng.integers(-5, 5, (rows, tile.k))
        return decode(tile.a, encode(tile.a, values))

    a, b = wide(64), decode(tile.b, encode(tile.b, wide(8)))
    c = decode(tile.accumulator, encode(tile.accumulator, rng.normal(size=(64, 8))))
    text = f"{mnemonic} R24, gdesc[UR4], R24, gsb0"
    bits = encode(tile.a, a), encode(tile.b, b), encode(tile.accumulator, c)
    found = decode(tile.accumulator, product(text, *bits, (32, 32)))
    for i in range(0, 64, 5):
        for j in range(8):
            assert found[i, j] == slow_sum(tile, list(a[i]), list(b[j]), float(c[i, j]))


def test_fp8_sums_keep_thirteen_bits() -> None:
    """As on sm_89, but over all 32 products at once."""
    a, b = np.zeros((64, 32)), np.zeros((8, 32))
    a[0, 0], a[0, 31], b[0] = 1.0, 2.0**-6, 2.0**-7
    b[0, 0] = 1.0
    text = "QGMMA.64x8x32.F32.E4M3.E4M3 R24, gdesc[UR4], RZ, !UPT, gsb0"
    bits = encode("E4M3", a), encode("E4M3", b)
    assert decode("F32", product(text, *bits, None, (32, 32)))[0, 0] == 1.0 + 2.0**-13
    a[0, 31] = 2.0**-7
    bits = encode("E4M3", a), encode("E4M3", b)
    assert decode("F32", product(text, *bits, None, (32, 32)))[0, 0] == 1.0


def test_only_the_warpgroups_that_execute_it_get_results() -> None:
    """Of three warpgroups the second does not take part; each block has its own tiles."""
    rng = np.random.default_rng(7)
    made = machine(
        "WARPGROUP.ARRIVE",
        "HGMMA.64x8x16.F32 R24, gdesc[UR4], RZ, !UPT, gsb0",
        "WARPGROUP.DEPBAR.LE gsb0, 0x0",
        warps=12,
        blocks=2,
        shared=SHARED,
    )
    operands = [(small(rng, 64, 16), small(rng, 8, 16)) for _ in range(2)]
    for block, (a, b) in enumerate(operands):
        placed = along_k(as_bytes("F16", encode("F16", a)), 32, A_AT, 0)
        other = along_k(as_bytes("F16", encode("F16", b)), 32, B_AT, 0)
        made.shared.data.reshape(2, -1)[block] = placed.image | other.image
    set_pair(made, 4, placed.descriptor, other.descriptor)
    made.living = np.repeat([True, False, True], 4).reshape(1, 12, 1) & np.ones((2, 12, 32), bool)
    made._ready[0] = made.living
    made.registers.general[24] = np.full((1, 1, 1), 77, np.uint32)
    made.run()
    registers = general(made, 24, 4).reshape(4, 2, 3, 4, 32)
    for block, (a, b) in enumerate(operands):
        for group in (0, 2):
            found = decode("F32", from_sums(np.ascontiguousarray(registers[:, block, group]), 32))
            assert np.array_equal(found, a @ b.T)
    assert (registers[0, :, 1] == 77).all() or not registers[0, :, 1].any()


@pytest.mark.parametrize(
    ("mnemonic", "why"),
    [
        ("HGMMA.64x24x16.F64", "types"),
        ("HGMMA.64x24x32.F32", "shape"),
        ("HGMMA.64x12x16.F32", "shape"),
        ("HGMMA.64x264x16.F32", "shape"),
        ("QGMMA.64x8x32.F32.E4M3.S8", "types"),
        ("IGMMA.64x8x32.S4.S4", "types"),
        ("BGMMA.64x8x256", "not a warpgroup product"),
        ("HGMMA.SP.64x8x32.F32", "not a warpgroup product"),
    ],
)
def test_forms_without_a_model(mnemonic: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        warpgroup_form(mnemonic, 90)


def test_a_descriptor_with_a_base_offset_is_no_guess() -> None:
    made = machine("WARPGROUP.ARRIVE", "HGMMA.64x8x16.F32 R24, gdesc[UR4], RZ, !UPT, gsb0")
    set_pair(made, 4, 1 << 49, 0)
    with pytest.raises(Fault, match="has a base offset, which has no model"):
        made.run()


def test_operands_beyond_the_memory_of_the_block() -> None:
    made = machine("WARPGROUP.ARRIVE", "HGMMA.64x8x16.F32 R24, gdesc[UR4], RZ, !UPT, gsb0", shared=4096)
    set_pair(made, 4, descriptor(0, 0, 256, 32), descriptor(0xF80, 0, 256, 32))
    with pytest.raises(Fault, match="reads shared memory at 0x1070, out of bounds; 4096 bytes are declared"):
        made.run()
