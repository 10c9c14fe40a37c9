"""The control flow graph of kernels whose shape is known."""

from collections.abc import Callable

import pytest

from cuasmrl.binary.sass import Listing, Order
from cuasmrl.checker.flow import Block, blocks_of, regions_of
from tests.checker.conftest import CHIPS


def _reachable(blocks: tuple[Block, ...], start: int) -> set[int]:
    seen, work = set[int](), [start]
    while work:
        for following in blocks[work.pop()].successors:
            if following not in seen:
                seen.add(following)
                work.append(following)
    return seen


@pytest.mark.parametrize("chip", CHIPS)
def test_blocks_partition_the_code_and_labels_are_heads(
    chip: str, listed: Callable[[str], dict[str, Listing]]
) -> None:
    for listing in listed(chip).values():
        blocks = blocks_of(listing)
        assert [b.start for b in blocks] == [0, *(b.end for b in blocks[:-1])]
        heads = {b.start for b in blocks}
        for i in listing.instructions:
            assert i.target is None or i.target // 16 in heads
            if i.declaration is not None and i.declaration.jumps and i.index + 1 < len(listing.instructions):
                assert i.index + 1 in heads


@pytest.mark.parametrize("chip", CHIPS)
def test_what_runs_is_reachable_and_loops_are_loops(
    chip: str, listed: Callable[[str], dict[str, Listing]]
) -> None:
    for name, listing in listed(chip).items():
        blocks = blocks_of(listing)
        reached = {0} | _reachable(blocks, 0)
        code = listing.instructions
        # Behind the last exit ptxas writes a branch to itself and pads with NOP.
        last = max(i.index for i in code if i.opcode in ("EXIT", "RET"))
        for number, block in enumerate(blocks):
            idle = all(i.opcode in ("NOP", "BRA") for i in code[block.start : block.end])
            assert number in reached or idle or block.start > last, f"{name}: block {number}"
        if name in ("tile", "reduce", "mixed"):
            assert any(number in _reachable(blocks, number) for number in reached)


@pytest.mark.parametrize("chip", CHIPS)
def test_a_call_goes_to_its_function_and_comes_back_behind_itself(
    chip: str, listed: Callable[[str], dict[str, Listing]]
) -> None:
    listing = listed(chip)["local"]
    blocks = blocks_of(listing)
    starts = {b.start: number for number, b in enumerate(blocks)}
    by_end = {b.end - 1: b for b in blocks}
    calls = [i for i in listing.instructions if i.opcode == "CALL"]
    returns = [i for i in listing.instructions if i.opcode == "RET"]
    assert calls
    assert returns
    for call in calls:
        assert call.target is not None
        assert by_end[call.index].successors == (starts[call.target // 16],)
    for ret in returns:
        assert {starts[call.index + 1] for call in calls} <= set(by_end[ret.index].successors)


@pytest.mark.parametrize("chip", CHIPS)
def test_reconvergence_goes_on_behind_the_barrier_it_belongs_to(
    chip: str, listed: Callable[[str], dict[str, Listing]]
) -> None:
    for listing in listed(chip).values():
        for block in blocks_of(listing):
            last = listing.instructions[block.end - 1]
            if last.opcode == "BSYNC":
                assert len(block.successors) == 1


def test_the_bare_nop_of_a_syncwarp_parts_the_block(listed: Callable[[str], dict[str, Listing]]) -> None:
    code = listed("sm_80")["mixed"].instructions
    regions = regions_of(code, blocks_of(listed("sm_80")["mixed"]))
    stores = [i.index for i in code if i.opcode == "STS"]
    assert any(i.opcode == "NOP" and stores[0] < i.index < stores[-1] for i in code)
    homes = [next(n for n, r in enumerate(regions) if r.start <= i < r.end) for i in stores]
    assert len(set(homes)) == len(stores)
    for region in regions:
        pinned = [i.order is Order.PINNED for i in code[region.start : region.end]]
        assert pinned == [True] if region.pinned else not any(pinned)
