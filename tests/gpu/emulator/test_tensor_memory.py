"""Tensor memory: allocation, moving cells to registers and back, and what is in flight."""

import numpy as np
import pytest

from cuasmrl import workloads
from cuasmrl.binary.cubin import Cubin
from cuasmrl.binary.sass import disassemble_kernel
from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.emulator import Emulator, Fault
from cuasmrl.gpu.emulator.machine import Machine
from tests.gpu.emulator.by_hand import general, machine, set_pair, set_uniform
from tests.gpu.emulator.test_warpgroups import without

ALLOCATE = "UTCATOMSWS.FIND_AND_SET.ALIGN UP1, UR20, UR21"
FREE = "UTCATOMSWS.AND URZ, UR23"
INIT = "SYNCS.EXCH.64 URZ, [UR22], UR24"
PRODUCT = "UTCHMMA gdesc[UR4], gdesc[UR6], tmem[UR8], tmem[UR9], idesc[UR10], UPT"
FRESH = PRODUCT.replace("UPT", "!UPT")
FROM_CELLS = FRESH.replace("gdesc[UR4]", "tmem[UR11]")
NARROW = FRESH.replace("UR9", "UR12").replace("UR10", "UR13")
COMMIT = "UTCBAR [UR22], URZ"
WAIT = "SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR22], RZ"
LOAD = "LDTM.x8 R24, tmem[UR8]"
STORE = "STTM.x8 tmem[UR8], R24"
STORE_A = "STTM.x8 tmem[UR11], R24"
FENCE = "FENCE.VIEW.ASYNC.T"
SUMS_AT, A_AT = 0x20, 0x100
DESCRIPTOR = 1 << 4 | 32 // 8 << 17 | 128 // 16 << 24
"""128 by 32 sums in FP32 of halves."""
TILE = 1 << 46 | 0x40 << 32 | 0x80 << 16
"""Unswizzled: rows of 16 bytes, eight of them 1 KiB behind each other."""


def made_of(*lines: str, warps: int = 1, written: bool = True) -> Machine:
    made = machine(*lines, warps=warps, shared=0x8000, written=written, arch=100)
    made.shared.tags[0x6000 // 4 :] = 15
    set_pair(made, 4, TILE, TILE | 0x300)
    set_uniform(made, 8, SUMS_AT, 0, DESCRIPTOR, A_AT, 0, DESCRIPTOR ^ (32 // 8 ^ 16 // 8) << 17)
    set_uniform(made, 20, 0, 16, 0x7FF0, 0)
    lacking = (1 << 20) - 1
    set_pair(made, 24, lacking << 1 | lacking << 43)
    return made


def run(*lines: str, warps: int = 1, written: bool = True) -> Machine:
    made = made_of(*lines, warps=warps, written=written)
    made.run()
    return made


BEGIN = (ALLOCATE, INIT)


@pytest.mark.parametrize(
    "lines",
    [
        (FRESH, COMMIT, WAIT, LOAD, FREE),
        (STORE, FENCE, LOAD, FREE),
        (STORE, FENCE, PRODUCT, PRODUCT, COMMIT, WAIT, LOAD, STORE, FREE),
        (STORE_A, FENCE, FROM_CELLS, COMMIT, WAIT, STORE_A, LOAD, FREE),
        (FRESH, COMMIT, "STS [RZ+0x7000], R2", WAIT, "STS [RZ+0x10], R2", FREE),
        (FRESH, COMMIT, WAIT, NARROW, COMMIT, "SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR22], R3", FREE),
        (STORE, FENCE, LOAD, FRESH, COMMIT, WAIT, FREE),
    ],
)
def test_in_order(lines: tuple[str, ...]) -> None:
    made = made_of(*BEGIN, *lines)
    made.registers.general[3] = np.full((1, 1, 1), 1 << 31, np.uint32)
    made.run()


UNAWAITED = "nobody has waited for the mbarrier of a UTCBAR behind it"
UNFENCED = "its warp has not waited for it with FENCE.VIEW.ASYNC.T"


@pytest.mark.parametrize(
    ("lines", "culprit", "why", "lacking"),
    [
        ((FRESH, COMMIT, LOAD, WAIT), FRESH, "reads column 0x20 .* has not delivered", UNAWAITED),
        ((FRESH, LOAD, COMMIT, WAIT), FRESH, "reads column 0x20 .* has not delivered", UNAWAITED),
        ((FRESH, COMMIT, WAIT, PRODUCT, LOAD), PRODUCT, "has not delivered", UNAWAITED),
        ((COMMIT, FRESH, WAIT, LOAD), FRESH, "has not delivered", UNAWAITED),
        ((FRESH, COMMIT, STORE, WAIT), FRESH, "writes column 0x20 .* still writes", UNAWAITED),
        ((STORE_A, FENCE, FROM_CELLS, COMMIT, STORE_A), FROM_CELLS, "writes column 0x100 .* still reads",
         UNAWAITED),
        ((FRESH, COMMIT, FREE, WAIT), FRESH, "frees column 0x20 .* still writes", UNAWAITED),
        ((STORE_A, FENCE, FROM_CELLS.replace("UR8", "UR14"), COMMIT, FREE), FROM_CELLS.split(",")[0],
         "frees column", UNAWAITED),
        ((FRESH, NARROW.replace("UR12", "UR9")), FRESH, "of another shape or warp, still writes", UNAWAITED),
        ((FRESH, FROM_CELLS.replace("UR11", "UR8").replace("tmem[UR8], tmem", "tmem[UR14], tmem")), FRESH,
         "takes an operand from column 0x20 .* has not delivered", UNAWAITED),
        ((STORE, LOAD), STORE, "reads column 0x20 .* has not delivered", UNFENCED),
        ((STORE, PRODUCT), STORE, "adds to column 0x20 .* has not delivered", UNFENCED),
        ((STORE_A, FROM_CELLS), STORE_A, "takes an operand from column 0x100", UNFENCED),
        ((FENCE, STORE, FRESH), STORE, "writes column 0x20", UNFENCED),
    ],
)  # fmt: skip
def test_in_flight(lines: tuple[str, ...], culprit: str, why: str, lacking: str) -> None:
    made = made_of(*BEGIN, *lines)
    set_uniform(made, 14, 0x180)
    with pytest.raises(Fault, match=why) as caught:
        made.run()
    text = str(caught.value)
    assert culprit in text
    assert lacking in text
    assert caught.value.instruction is not None
    assert caught.value.instruction.text in lines
    assert caught.value.instruction.text != culprit or lines.count(culprit) > 1


@pytest.mark.parametrize(
    "store", ["STS [R1+0x3000], R2", "STSM.16.M88 [R1+0x3000], R2", "ATOMS.ADD RZ, [R1+0x3000], R2"]
)
def test_a_tile_that_is_overwritten(store: str) -> None:
    run(*BEGIN, FRESH, COMMIT, WAIT, store, FREE)
    for lines in ((FRESH, COMMIT, store, WAIT), (FRESH, store), (FRESH, COMMIT, WAIT, FRESH, store)):
        with pytest.raises(Fault, match=r"written at 0x3000, which UTCHMMA .* still reads") as caught:
            run(*BEGIN, *lines)
        assert caught.value.instruction is not None
        assert caught.value.instruction.text == store
    # Beside the tile.
    run(*BEGIN, FRESH, store.replace("0x3000", "0x5000"), COMMIT, WAIT, FREE)


def test_products_of_two_warps_on_the_same_sums() -> None:
    only_first = ("S2R R0, SR_WARPID", "ISETP.NE.AND P1, PT, R0, RZ, PT", "VOTEU.ANY UP2, P1")
    first, second = "@!UP2 ", "@UP2 "
    begin = (*only_first, first + ALLOCATE, first + INIT, "BAR.SYNC 0x0")
    finish = ("BAR.SYNC 0x0", WAIT, "BAR.SYNC 0x0", first + FREE)
    run(*begin, first + FRESH, first + COMMIT, *finish, warps=2)
    with pytest.raises(Fault, match="of another shape or warp, still writes"):
        run(*begin, first + FRESH, second + PRODUCT, first + COMMIT, *finish, warps=2)
    # What another warp has committed says nothing of these.
    with pytest.raises(Fault, match="reads column 0x20 .* has not delivered"):
        run(*begin, first + FRESH, "BAR.SYNC 0x0", second + COMMIT, WAIT, first + LOAD, warps=2)


@pytest.mark.parametrize("line", [LOAD, STORE, FRESH, "LDTM.x8 R24, tmem[UR11]"])
def test_tensor_memory_that_is_not_allocated(line: str) -> None:
    with pytest.raises(Fault, match=r"touches column 0x\w+ of tensor memory, which nobody has allocated"):
        run(line)
    with pytest.raises(Fault, match="which UTCATOMSWS.AND URZ, UR23 at 0x0010 has freed"):
        run(ALLOCATE, FREE, line)


def test_tensor_memory_that_is_kept_or_freed_twice() -> None:
    kept = "has never freed the tensor memory that UTCATOMSWS.FIND_AND_SET.ALIGN .* at 0x0000 allocated from"
    with pytest.raises(Fault, match=f"{kept} column 0x0 on"):
        run(ALLOCATE)
    with pytest.raises(Fault, match="frees tensor memory which UTCATOMSWS.AND .* at 0x0010 has freed"):
        run(ALLOCATE, FREE, FREE)
    with pytest.raises(Fault, match="frees tensor memory which nobody has allocated"):
        run(FREE)


def test_units_are_found_in_a_row_at_a_multiple_of_their_number() -> None:
    made = machine(
        *(f"UTCATOMSWS.FIND_AND_SET.ALIGN UP{k}, UR{20 + k}, UR{30 + k}" for k in range(5)),
        "UTCATOMSWS.AND URZ, UR40",
        *(f"USEL UR{45 + k}, URZ, 0x1, !UP{k}" for k in range(5)),
        warps=1,
        arch=100,
    )
    set_uniform(made, 30, 1, 4, 2, 8, 4)
    # What is free behind them: 1, then 12 to 15 would be the fifth.
    set_uniform(made, 40, 0)
    with pytest.raises(Fault, match="frees tensor memory which nobody has allocated"):
        made.run()
    found = [int(made.registers.uniform[20 + k].item()) for k in range(5)]
    assert found == [0, 4, 2, 8, 0]
    assert [bool(p.item()) for p in made.registers.uniform_predicates[:5]] == [True, True, True, True, False]


def test_a_number_of_columns_that_cannot_be_allocated() -> None:
    for units in (0, 3, 32):
        made = made_of(ALLOCATE)
        set_uniform(made, 21, units)
        with pytest.raises(
            Fault, match=f"allocates {32 * units} columns of tensor memory, which is no power"
        ):
            made.run()


# moving cells


def cells(form: str, registers: int, address: int = 0, warps: int = 4, store: bool = False) -> Machine:
    operands = "tmem[UR8+0x4], R64" if store else "R64, tmem[UR8+0x4]"
    operands = f"R60, {operands}" if "STAT" in form else operands
    guard = ("S2R R0, SR_WARPID", "ISETP.NE.AND P1, PT, R0, RZ, PT", "VOTEU.ANY UP2, P1")
    made = machine(*guard, f"@!UP2 {ALLOCATE}", "BAR.SYNC 0x0", f"{form} {operands}", "BAR.SYNC 0x0",
                   f"@!UP2 {FREE}", warps=warps, arch=100)  # fmt: skip
    set_uniform(made, 20, 0, 16, 0, 0)
    quarter = np.arange(warps, dtype=np.uint32) % np.uint32(4) << np.uint32(21)
    made.registers.uniform[8] = (quarter + np.uint32(address)).reshape(1, warps, 1)
    memory = made.tensor_memory
    assert memory is not None
    memory.cells[:] = np.arange(128 * 512, dtype=np.uint32).reshape(128, 512) * 3
    # Allocating says that nobody has written; this is what a product would have left.
    for k in range(registers):
        made.registers.general[64 + k] = np.full((1, 1, 1), 7, np.uint32)
    return made


def expected_cell(form: str, lane: int, r: int) -> tuple[int, int] | None:
    """Lane and column by the figures of the PTX ISA for the shapes of tcgen05.ld."""
    match form.split(".")[1]:
        case "16dp32bit_t0_t15":
            return (lane, r) if lane < 16 else None
        case "16dp32bit_t16_t31":
            return (lane - 16, r) if lane >= 16 else None
        case "16dp64bit":
            # Four lanes share two rows that lie eight apart.
            return lane // 4 + 8 * (lane % 2), 2 * r + (lane % 4 >= 2)
        case "16dp128bit":
            return lane // 4 + 8 * (r % 2 == 1), 4 * (r // 2) + lane % 4
        case "16dp256bit":
            return lane // 4 + 8 * (r % 4 >= 2), 8 * (r // 4) + 2 * (lane % 4) + r % 2
    return lane, r


FORMS = [("LDTM", 1), ("LDTM.x8", 8), ("LDTM.x128", 128), ("LDTM.16dp32bit_t0_t15.x4", 4),
         ("LDTM.16dp32bit_t16_t31.x4", 4), ("LDTM.16dp64bit.x2", 2), ("LDTM.16dp128bit.x2", 4),
         ("LDTM.16dp256bit.x2", 8)]  # fmt: skip


@pytest.mark.parametrize(("form", "registers"), FORMS)
def test_loads_and_stores_of_every_shape(form: str, registers: int) -> None:
    for store in (False, True):
        made = cells(form.replace("LDTM", "STTM") if store else form, registers, store=store)
        memory = made.tensor_memory
        assert memory is not None
        before = memory.cells.copy()
        made.run()
        wanted = np.full((registers, 4, 32), 7, np.uint32)
        for r, warp, lane in np.ndindex(registers, 4, 32):
            shape = form if "dp" in form else "LDTM.whole"
            place = expected_cell(shape, lane, r)
            if place is not None:
                at = 0, 32 * warp + place[0], 4 + place[1]
                if store:
                    before[at] = 7
                else:
                    wanted[r, warp, lane] = before[at]
        assert np.array_equal(general(made, 64, registers), wanted)
        assert np.array_equal(memory.cells, before)


def test_the_extremum_of_what_a_lane_loads() -> None:
    """sm_103: tcgen05.ld.red."""
    for form, pick in (("LDTM.STAT.x4.MAX.F32", np.max), ("LDTM.STAT.x4.MIN.F32.NAN", np.min)):
        made = cells(form, 4)
        assert made.tensor_memory is not None
        values = np.random.default_rng(1).normal(size=(128, 512)).astype(np.float32)
        made.tensor_memory.cells[0] = values.view(np.uint32)
        made.run()
        loaded = values[:, 4:8].T.reshape(4, 4, 32)
        assert np.array_equal(general(made, 64, 4).view(np.float32), loaded)
        assert np.array_equal(general(made, 60, 1).view(np.float32)[0], pick(loaded, axis=0))


def test_halves_are_packed_and_expanded() -> None:
    made = cells("LDTM.x2.PACK16BIT", 2)
    assert made.tensor_memory is not None
    before = made.tensor_memory.cells.copy()
    made.run()
    low, high = before[0, :, 4:8:2] & 0xFFFF, before[0, :, 5:8:2] & 0xFFFF
    wanted = (low | high << np.uint32(16)).T.reshape(2, 4, 32)
    assert np.array_equal(general(made, 64, 2), wanted)
    made = cells("STTM.x2.EXPAND16BIT", 2, store=True)
    made.registers.general[64] = np.full((1, 1, 1), 0x1234_5678, np.uint32)
    made.run()
    assert made.tensor_memory is not None
    assert (made.tensor_memory.cells[0, :, 4:8] == [0x5678, 0x1234, 7, 0]).all()


def test_a_warp_reaches_its_own_quarter() -> None:
    with pytest.raises(Fault, match="from lane 32 on, and its warp reaches lanes 0 to 31"):
        cells("LDTM", 1, address=1 << 21).run()
    with pytest.raises(Fault, match="from lane 16 on, and its warp reaches lanes 0 to 31"):
        cells("LDTM", 1, address=1 << 20).run()
    cells("LDTM.16dp64bit", 1, address=1 << 20).run()
    with pytest.raises(Fault, match="from column 0x1fc to 0x204, and there are 512"):
        cells("LDTM.x8", 8, address=0x1F8).run()
    made = cells("@P2 LDTM", 1)
    made.registers.predicates[2] = np.arange(32).reshape(1, 1, 32) < 31
    with pytest.raises(Fault, match="needs all lanes of a warp"):
        made.run()


def test_what_nobody_has_written() -> None:
    """Reading it is no fault, using it is; sums of what is not there are not there."""
    use = "STG.E [R2], R24"
    where = r"uses R24, which LDTM.x8 .* read from tensor memory at column 0x20, never written"
    run(ALLOCATE, LOAD, FREE)
    for lines in ((LOAD, use), (PRODUCT, COMMIT, WAIT, LOAD, use)):
        with pytest.raises(Fault, match=where):
            run(*BEGIN, *lines)
    with pytest.raises(Fault, match=where):
        run(*BEGIN, FRESH, COMMIT, WAIT, LOAD, use, written=False)
    with pytest.raises(Fault, match=where):
        run(*BEGIN, FROM_CELLS, COMMIT, WAIT, LOAD, use)


def test_books_of_the_compiler_begin_as_zero() -> None:
    made = run(ALLOCATE, "LDS R4, [RZ+0x54]", "LDS.U8 R5, [RZ+0x5c]", FREE, written=False)
    assert not general(made, 4, 2).any()
    assert not made.undefined


@pytest.mark.parametrize(
    "line",
    [
        "LDTM.x8.PACK16BIT.16dp64bit R24, tmem[UR8]",
        "LDTM.STAT.x8.MAX.S32 R5, R24, tmem[UR8]",
        "LDTM R24, tmem[R4]",
        "UTCBAR [UR4], UR6",
        "UTCBAR.MULTICAST [UR4], URZ",
        "UTCATOMSWS.AND UR3, UR4",
    ],
)
def test_refused(line: str) -> None:
    with pytest.raises(CuasmrlError, match="cannot be emulated"):
        made_of(line)


def test_every_wait_of_a_kernel_is_missed() -> None:
    """Take them out of a compiled kernel one by one: no result comes out by luck."""
    workload = workloads.get("gemm_leaky_relu")
    sizes = {"M": 64, "N": 64, "K": 160}
    built = workload.build(workload.config("m64n64k32_w4_s3"), 100, sizes)
    cubin = Cubin.parse(built.cubin)
    original = disassemble_kernel(cubin)
    launch = workload.launch(built, workload.inputs(sizes, 0), sizes)
    Emulator(cubin, listing=original).run(launch)
    found = [i for i in original.instructions if i.text == FENCE or i.opcode in ("UTCBAR", "UTCATOMSWS")]
    assert {i.opcode for i in found} == {"FENCE", "UTCBAR", "UTCATOMSWS"}
    for instruction in found[:-1]:
        if instruction.modifiers[:1] == ("FIND_AND_SET",):
            continue
        with pytest.raises(Fault, match="has not waited|nobody has waited|waits for ever|has never freed"):
            Emulator(cubin, listing=without(original, instruction.index)).run(launch, budget=200_000)
