"""Products of warpgroups in flight: whoever touches them too early is found, and both are named."""

import numpy as np
import pytest

from cuasmrl import workloads
from cuasmrl.binary.cubin import Cubin
from cuasmrl.binary.sass import Listing, disassemble_kernel
from cuasmrl.binary.sass.instruction import parse_instruction
from cuasmrl.gpu.emulator import Emulator, Fault
from tests.gpu.emulator.by_hand import general, machine, set_pair

ARRIVE = "WARPGROUP.ARRIVE"
PRODUCT = "HGMMA.64x8x16.F32 R24, gdesc[UR4], R24"
FROM_REGISTERS = "HGMMA.64x8x16.F32 R24, R40, gdesc[UR4], R24, gsb0"
OTHER = "HGMMA.64x8x16.F32 R32, gdesc[UR4], R32, gsb0"
WAIT = "WARPGROUP.DEPBAR.LE gsb0, 0x0"
WAIT_BUT_ONE = "WARPGROUP.DEPBAR.LE gsb0, 0x1"
A, B = 0x40 << 32, 0x40 << 32 | 0x80
"""Unswizzled tiles at 0 and at 0x800: rows of 16 bytes, eight of them 1 KiB behind each other."""


def run(*lines: str, warps: int = 4, written: bool = True) -> None:
    made = machine(*lines, warps=warps, shared=0x4000, written=written)
    set_pair(made, 4, A | 8 << 16, B | 8 << 16)
    made.run()


@pytest.mark.parametrize(
    "lines",
    [
        (ARRIVE, PRODUCT, f"{PRODUCT}, gsb0", WAIT, "FADD R24, R24, R25"),
        (ARRIVE, PRODUCT, "FADD R28, R29, R30", f"{PRODUCT}, gsb0", WAIT),
        (ARRIVE, f"{PRODUCT}, gsb0", ARRIVE, OTHER, WAIT_BUT_ONE, "FADD R24, R24, R25", WAIT),
        (ARRIVE, f"{PRODUCT}, gsb0", WAIT, "STS [RZ], R24"),
        (ARRIVE, FROM_REGISTERS, "FADD R50, R40, R41", WAIT, "MOV R40, R1"),
        ("MOV R24, R1", "MOV R40, R1", ARRIVE, FROM_REGISTERS, WAIT),
        (ARRIVE, f"{PRODUCT}, gsb0", "@!PT FADD R24, R24, R25", "@P0 MOV R24, R1", WAIT),
    ],
)
def test_in_order(lines: tuple[str, ...]) -> None:
    run(*lines)


@pytest.mark.parametrize(
    ("lines", "culprit", "product"),
    [
        ((ARRIVE, f"{PRODUCT}, gsb0", "FADD R0, R24, R1", WAIT), "reads R24", PRODUCT),
        ((ARRIVE, f"{PRODUCT}, gsb0", "MOV R27, R1", WAIT), "writes R27", PRODUCT),
        ((ARRIVE, PRODUCT, WAIT, "FADD R0, R24, R1"), "reads R24", PRODUCT),
        ((ARRIVE, f"{PRODUCT}, gsb0", WAIT_BUT_ONE, "STG.E [R2], R24"), "reads R24", PRODUCT),
        (
            (ARRIVE, f"{PRODUCT}, gsb0", ARRIVE, OTHER, WAIT_BUT_ONE, "FADD R0, R24, R33"),
            "reads R33",
            OTHER,
        ),
        ((ARRIVE, FROM_REGISTERS, "MOV R42, R1", WAIT), "writes R42", FROM_REGISTERS),
        (
            (ARRIVE, f"{PRODUCT}, gsb0", ARRIVE, "HGMMA.64x8x16.F32 R32, R24, gdesc[UR4], R32"),
            "A from R24",
            PRODUCT,
        ),
        (
            (ARRIVE, FROM_REGISTERS, ARRIVE, "HGMMA.64x8x16.F32 R40, gdesc[UR4], RZ, !UPT"),
            "into R40",
            FROM_REGISTERS,
        ),
        (
            (ARRIVE, f"{PRODUCT}, gsb0", ARRIVE, "HGMMA.64x16x16.F32 R24, gdesc[UR4], R24"),
            "of another shape",
            PRODUCT,
        ),
    ],
)
def test_too_early(lines: tuple[str, ...], culprit: str, product: str) -> None:
    with pytest.raises(Fault, match=culprit) as caught:
        run(*lines)
    assert product in str(caught.value)
    assert "no WARPGROUP.DEPBAR has waited for it" in str(caught.value)
    assert caught.value.instruction is not None
    assert caught.value.instruction.text == [line for line in lines if "DEPBAR" not in line][-1]


def test_a_register_that_is_written_behind_the_arrival() -> None:
    for lines in (("MOV R26, R1", f"{PRODUCT}, gsb0"), (ARRIVE, "MOV R41, R1", FROM_REGISTERS)):
        with pytest.raises(Fault, match="which MOV .* at 0x00.0 wrote behind the last WARPGROUP.ARRIVE"):
            run(*lines)


@pytest.mark.parametrize(
    "store", ["STS [R1+0x800], R2", "STSM.16.M88 [R1+0x800], R2", "ATOMS.ADD RZ, [R1+0x800], R2"]
)
def test_a_tile_that_is_overwritten(store: str) -> None:
    run(ARRIVE, f"{PRODUCT}, gsb0", WAIT, store)
    with pytest.raises(
        Fault,
        match=r"written at 0x800, which HGMMA\S+ R24, .* at 0x0010 still reads, since nobody has waited",
    ) as caught:
        run(ARRIVE, f"{PRODUCT}, gsb0", store, WAIT)
    assert caught.value.instruction is not None
    assert caught.value.instruction.text == store
    # The second tile is read by the second product only.
    run(ARRIVE, f"{PRODUCT}, gsb0", store.replace("0x800", "0x3f00"), WAIT)


def test_a_tile_is_in_use_until_its_own_group_is_done() -> None:
    first, second = f"{PRODUCT}, gsb0", "HGMMA.64x8x16.F32 R32, gdesc[UR8], R32, gsb0"
    for wait, address, is_fault in (
        (WAIT_BUT_ONE, 0x800, False),
        (WAIT_BUT_ONE, 0x2800, True),
        (WAIT, 0x2800, False),
    ):
        made = machine(ARRIVE, first, second, wait, f"STS [RZ+{address:#x}], R2", WAIT, shared=0x4000)
        set_pair(made, 4, A | 8 << 16, B | 8 << 16)
        set_pair(made, 8, A | 8 << 16 | 0x200, B | 8 << 16 | 0x200)
        if is_fault:
            with pytest.raises(Fault, match="R32, .* still reads"):
                made.run()
        else:
            made.run()


def test_a_tile_that_nobody_wrote() -> None:
    run(ARRIVE, f"{PRODUCT}, gsb0", WAIT, "FADD R24, R24, R25", written=False)
    with pytest.raises(
        Fault, match=r"uses R24, which HGMMA.* read from shared memory at 0x\w+, never written"
    ):
        run(ARRIVE, f"{PRODUCT}, gsb0", WAIT, "FADD R24, R24, R25", "STG.E [R2], R24", written=False)


def test_a_warpgroup_is_four_whole_warps() -> None:
    with pytest.raises(Fault, match="needs warpgroups of 4 warps, and the block has 2"):
        run(ARRIVE, PRODUCT, warps=2)
    with pytest.raises(Fault, match="needs all lanes of a warp"):
        run("S2R R3, SR_LANEID", "ISETP.NE.AND P0, PT, R3, RZ, PT", "@!P0 EXIT", ARRIVE, PRODUCT)
    with pytest.raises(Fault, match="warp 2 of the block has issued 0 warpgroup products, others .* 1"):
        run("S2R R3, SR_WARPID", "ISETP.NE.AND P0, PT, R3, 0x2, PT", "@!P0 EXIT", ARRIVE, PRODUCT)


def test_warps_of_a_warpgroup_name_the_same_operand() -> None:
    made = machine(ARRIVE, PRODUCT, shared=0x4000)
    set_pair(made, 4, A | 8 << 16, B | 8 << 16)
    made.registers.uniform[6] = np.arange(4, dtype=np.uint32).reshape(1, 4, 1) * 8 | made.registers.uniform[6]
    with pytest.raises(Fault, match="do not name the same operand"):
        made.run()


def test_values_are_those_of_the_last_product() -> None:
    """A B twice: the accumulators of one product are those that the next one starts from."""
    made = machine(ARRIVE, PRODUCT, f"{PRODUCT}, gsb0", WAIT, shared=0x4000)
    set_pair(made, 4, A | 8 << 16, B | 8 << 16)
    made.shared.data.view(np.float16)[:] = 1
    made.run()
    assert (general(made, 24, 4).view(np.float32) == 2 * 16).all()


def test_every_wait_and_arrival_of_a_kernel_is_missed() -> None:
    """Take them out of a compiled kernel one by one: no result comes out by luck."""
    workload = workloads.get("flash_attention")
    built = workload.build(workload.config("m64n64_w4_s3"), 90, workload.shapes[-1])
    cubin = Cubin.parse(built.cubin)
    original = disassemble_kernel(cubin)
    launch = workload.launch(built, workload.inputs(workload.shapes[-1], 0), workload.shapes[-1])
    Emulator(cubin, listing=original).run(launch)
    found = [i for i in original.instructions if i.opcode == "WARPGROUP"]
    assert len(found) >= 4
    for instruction in found:
        with pytest.raises(Fault, match=r"no WARPGROUP\.DEPBAR|nobody has waited|behind the last WARPGROUP"):
            Emulator(cubin, listing=without(original, instruction.index)).run(launch)


def without(original: Listing, index: int) -> Listing:
    """The same with a NOP in the place of an instruction, which keeps its waits."""
    instructions = list(original.instructions)
    kernel = original.kernel
    instructions[index] = parse_instruction(
        index, instructions[index].word, "NOP", kernel.arch, kernel.registers, {}
    )
    return Listing(kernel, tuple(instructions))
