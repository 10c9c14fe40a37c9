"""Each known peculiarity of the oracle on a real instruction: drawn wrongly, and right once corrected."""

import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from cuasmrl.binary.cubin import Cubin
from cuasmrl.binary.sass import File, Instruction, disassemble, find_nvdisasm, resource
from cuasmrl.errors import CuasmrlError
from tests.binary.sass import quirks
from tests.binary.sass.conftest import Sample, Samples
from tests.binary.sass.liveness_oracle import Reading, acceptable_copy, oracle, ours, readings
from tests.conftest import CompileCuda

ZERO_FILL = """
extern "C" __global__ void fill(const int4 *in, int4 *out, int n) {
    __shared__ int4 s[64];
    unsigned to = (unsigned)__cvta_generic_to_shared(s + threadIdx.x);
    int bytes = threadIdx.x < n ? 16 : 0;
    const int4 *from = in + threadIdx.x;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes));
    asm volatile("cp.async.commit_group; cp.async.wait_group 0;" ::: "memory");
    out[threadIdx.x] = s[threadIdx.x ^ 1];
}
"""


def drawn_wrongly(
    sample: Sample, quirk: quirks.Quirk, wanted: Callable[[Instruction], bool]
) -> list[tuple[Instruction, Reading]]:
    """The wanted instructions that disagree with the drawing and agree with it once corrected."""
    found = [(i, drawn) for i, drawn in readings(*sample) if wanted(i) and ours(i) != drawn]
    assert found, "this sample has no such instruction"
    for instruction, drawn in found:
        assert quirk(instruction, drawn) == ours(instruction), instruction
    return found


def test_ldgsts_defines_its_predicate(compile_cuda: CompileCuda) -> None:
    cubin = Cubin.parse(compile_cuda(ZERO_FILL, "sm_80"))
    found = drawn_wrongly(
        Sample(cubin, disassemble(cubin)),
        quirks.ldgsts_defines_its_predicate,
        lambda i: i.opcode == "LDGSTS",
    )
    for instruction, drawn in found:
        assert not instruction.defs
        assert drawn.defs == {resource(File.P, 0)}


def test_predicates_moved_as_a_group_are_not_drawn(samples: Samples) -> None:
    quirk = quirks.predicates_moved_as_a_group_are_not_drawn
    ((instruction, drawn),) = drawn_wrongly(
        samples("arithmetic", "sm_80"), quirk, lambda i: i.opcode == "R2P"
    )
    assert ours(instruction).defs - drawn.defs == {resource(File.P, 0), resource(File.P, 1)}
    for instruction, drawn in drawn_wrongly(samples("memory", "sm_100a"), quirk, lambda i: i.opcode == "P2R"):
        assert instruction.text.endswith(", 0x1")
        assert ours(instruction).uses - drawn.uses == {resource(File.P, 0)}


def test_calls_clobber_what_the_abi_allows(samples: Samples) -> None:
    found = drawn_wrongly(
        samples("arithmetic", "sm_90a"),
        quirks.calls_clobber_what_the_abi_allows,
        lambda i: i.opcode == "CALL",
    )
    for _, drawn in found:
        assert {resource(File.R, k) for k in range(4, 16)} <= drawn.defs


def test_uniform_registers_above_62_have_no_column(samples: Samples) -> None:
    """No sample is large enough to need them, so the destination field of a real UMOV is set to 64."""
    cubin, listings = samples("arithmetic", "sm_100a")
    listing = next(v for v in listings.values() if any(i.opcode == "UMOV" for i in v.instructions))
    umov = next(i for i in listing.instructions if i.opcode == "UMOV")
    word = int.from_bytes(umov.word, "little") & ~(255 << 16) | 64 << 16
    words = list(listing.kernel.words)
    words[umov.index] = word.to_bytes(16, "little")
    changed = cubin.with_words(listing.kernel, tuple(words), {})
    drawn_wrongly(
        Sample(changed, disassemble(changed)),
        quirks.uniform_registers_above_62_have_no_column,
        lambda i: i.text.startswith("UMOV UR64, "),
    )


def test_255_registers_are_refused_and_254_are_not(samples: Samples) -> None:
    cubin, listings = samples("memory", "sm_90a")
    data = bytearray(cubin.data)
    for record in cubin.kernels[0].file_records:
        if record.name == "REGCOUNT":
            data[record.position + 4 : record.position + 8] = (255).to_bytes(4, "little")
    full = Cubin.parse(bytes(data), "full.cubin")
    with pytest.raises(CuasmrlError, match="egister count"):
        _draw(full.data, full)
    assert oracle(full).keys() == listings.keys()


def test_the_container_of_cuda_12_is_not_drawn(old_container: Sample) -> None:
    with pytest.raises(CuasmrlError, match="life ranges"):
        _draw(old_container.cubin.data, old_container.cubin)
    assert acceptable_copy(old_container.cubin)[0x34:] == old_container.cubin.data[0x34:]
    assert oracle(old_container.cubin)


def test_padding_behind_the_last_branch_is_not_drawn(samples: Samples) -> None:
    sample = samples("warp", "sm_75")
    drawn = {instruction for instruction, _ in readings(*sample)}
    left_out = [i for i in sample.instructions if i not in drawn]
    assert left_out
    assert {i.text for i in left_out} == {"NOP"}


def _draw(data: bytes, cubin: Cubin) -> str:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kernel.cubin"
        path.write_bytes(data)
        return find_nvdisasm().run(path, "-c", "-lrm", "narrow", source=cubin.source)
