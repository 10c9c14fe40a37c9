"""Parsed instructions against nvdisasm's own output and against the bits of their words."""

import re
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from cuasmrl.binary.cubin import Cubin, Kernel
from cuasmrl.binary.sass import Instruction, Order, find_nvdisasm
from cuasmrl.binary.sass.disassembler import parse_output
from tests.binary.sass.conftest import Sample, Samples
from tests.binary.sass.fidelity import CHECKS, TEXTURES

_HEX = re.compile(r"/\*([0-9a-f]{4,})\*/ .*?/\* 0x([0-9a-f]{16}) \*/\s*/\* 0x([0-9a-f]{16}) \*/", re.DOTALL)
_TABLE = re.compile(r"/\*([0-9a-f]{4,})\*/ +(?:@\S+ )?BRX.*BRANCH_TARGETS ([^\"]+)\"")


def nvdisasm(cubin: Cubin, *options: str) -> dict[str, str]:
    """Its output by kernel."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kernel.cubin"
        path.write_bytes(cubin.data)
        output = find_nvdisasm((13, 0)).run(path, *options)
    parts = re.split(r"\.section\s+\.text\.([^,\s]+),", output)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


@pytest.mark.parametrize("check", CHECKS)
def test_every_instruction(sample: Sample, check: Callable[[Instruction, Kernel], str | None]) -> None:
    for listing in sample.listings.values():
        for instruction in listing.instructions:
            assert check(instruction, listing.kernel) is None, instruction.text


def test_texture_words_have_reuse_bits_that_are_not_printed(samples: Samples) -> None:
    """The only words where bits have no mark, and where they come with a yield."""
    for chip in ("sm_75", "sm_80"):
        found = [i for i in samples("textures", chip).instructions if i.opcode in TEXTURES]
        assert len(found) == 2
        assert all(i.control.reuse and i.control.yield_ for i in found)
        assert not any(operand.reused for i in found for operand in i.operands)
        assert all(i.declaration is None for i in found)


def test_sparsity_patterns_have_a_reuse_bit_of_their_own(samples: Samples) -> None:
    """A mark that is none of the control bits: bit 50 of HMMA.SP. Such a word is not moved."""
    sparse = [i for i in samples("mma", "sm_80").instructions if i.mnemonic.startswith("HMMA.SP")]
    assert {i.operands[4].reused for i in sparse} == {True, False}
    for i in sparse:
        assert int.from_bytes(i.word, "little") >> 50 & 1 == i.operands[4].reused
        assert (i.order is Order.PINNED) == i.operands[4].reused


def test_words_and_counts_are_those_of_nvdisasm(one_of_each: Sample) -> None:
    for name, output in nvdisasm(one_of_each.cubin, "-c", "-ndf", "-hex").items():
        words = {
            int(address, 16): (int(high, 16) << 64 | int(low, 16)).to_bytes(16, "little")
            for address, low, high in _HEX.findall(output)
        }
        assert {i.address: i.word for i in one_of_each.listings[name].instructions} == words


@pytest.mark.parametrize("chip", ["sm_75", "sm_80", "sm_90a", "sm_100a", "sm_120a"])
def test_targets_of_indirect_branches_are_recorded(samples: Samples, chip: str) -> None:
    """The records of the cubin against the comment that nvdisasm's flow analysis prints."""
    cubin, listings = samples("memory", chip)
    output = nvdisasm(cubin, "-c")["control_flow"]
    listing = listings["control_flow"]
    labels = parse_output(f".section .text.control_flow,\n{output}")["control_flow"][1]
    printed = {
        int(address, 16): {labels[label] for label in names.split(",")}
        for address, names in _TABLE.findall(output)
    }
    recorded = {pc: set(targets) for pc, targets in listing.kernel.branch_targets().items()}
    assert recorded == printed
    branches = [i for i in listing.instructions if i.opcode == "BRX"]
    assert {i.address for i in branches} == recorded.keys()
    assert all(i.target is None for i in branches)


def test_comments_are_no_part_of_the_text() -> None:
    output = """
	.section	.text.k,"ax",@progbits
.text.k:
        /*0000*/                   LDL R2, [R1+0x4] (*"SpillRefill"*) ;
.L_x_0:
        /*0010*/                   BRA `(.L_x_0);
"""
    texts, labels = parse_output(output)["k"]
    assert texts == ["LDL R2, [R1+0x4]", "BRA `(.L_x_0)"]
    assert labels == {".text.k": 0, ".L_x_0": 16}
