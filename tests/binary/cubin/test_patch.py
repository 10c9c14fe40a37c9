"""`with_words`: code and the offsets that follow it change, nothing else does."""

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cuasmrl.binary.cubin import WORD_BYTES, Cubin, Kernel
from cuasmrl.errors import CuasmrlError


def permuted(kernel: Kernel, order: list[int]) -> tuple[tuple[bytes, ...], dict[int, int]]:
    """Words in a new order, and where each instruction went. No care for legality: this is about bytes."""
    words = tuple(kernel.words[i] for i in order)
    return words, {old * WORD_BYTES: new * WORD_BYTES for new, old in enumerate(order)}


def changed_bytes(a: bytes, b: bytes) -> set[int]:
    assert len(a) == len(b)
    return {i for i, (x, y) in enumerate(zip(a, b, strict=True)) if x != y}


def allowed_bytes(kernel: Kernel) -> set[int]:
    code = range(kernel.text.offset, kernel.text.offset + kernel.text.size)
    return {*code, *(slot + i for slot in kernel.record_offsets() for i in range(4))}


def test_only_code_and_record_slots_change(cubin: Cubin) -> None:
    for kernel in cubin.kernels:
        words, moved = permuted(kernel, list(reversed(range(len(kernel.words)))))
        patched = cubin.with_words(kernel, words, moved)
        assert changed_bytes(cubin.data, patched.data) <= allowed_bytes(kernel)
        assert patched.kernel(kernel.name).words == words
        for other in cubin.kernels:
            if other.name != kernel.name:
                assert patched.kernel(other.name) == other


def test_a_record_follows_its_instruction(cubin: Cubin) -> None:
    kernel = cubin.kernel("warp")
    assert kernel.record_offsets()
    words, moved = permuted(kernel, list(reversed(range(len(kernel.words)))))
    after = cubin.with_words(kernel, words, moved).kernel("warp")
    for slot, offset in kernel.record_offsets().items():
        new = after.record_offsets()[slot]
        assert after.words[new // WORD_BYTES] == kernel.words[offset // WORD_BYTES]


def test_an_adjacent_swap_exchanges_two_records_of_one_list(cubin: Cubin) -> None:
    # The mask register ids lie in a second list in the same order, so each slot keeps its instruction.
    kernel = cubin.kernel("warp")
    first = kernel.record_offsets()
    offsets = sorted(set(first.values()))[:2]
    moved = {offsets[0]: offsets[1], offsets[1]: offsets[0]}
    after = cubin.with_words(kernel, kernel.words, moved).kernel("warp").record_offsets()
    assert after == {slot: moved.get(offset, offset) for slot, offset in first.items()}


def test_branch_targets_stay(cubin: Cubin) -> None:
    # They name block heads, which are positions: a schedule never moves them.
    kernel = cubin.kernel("jump")
    words, moved = permuted(kernel, list(reversed(range(len(kernel.words)))))
    assert cubin.with_words(kernel, words, moved).kernel("jump").branch_targets() == kernel.branch_targets()


def test_the_same_words_give_the_same_file(cubin: Cubin) -> None:
    for kernel in cubin.kernels:
        assert cubin.with_words(kernel, kernel.words, {}) == cubin


def test_patching_is_relative_to_the_kernel_as_read(one_of_each: Cubin) -> None:
    kernel = one_of_each.kernel("warp")
    words, moved = permuted(kernel, list(reversed(range(len(kernel.words)))))
    there = one_of_each.with_words(kernel, words, moved)
    assert there.with_words(kernel, kernel.words, {}) == one_of_each
    back = there.kernel("warp")
    assert there.with_words(back, *permuted(back, list(reversed(range(len(words)))))) == one_of_each


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_any_permutation_touches_only_its_own_bytes(
    data: st.DataObject, sample: Callable[[str], Cubin]
) -> None:
    cubin = sample(data.draw(st.sampled_from(["cuda12-sm_80", "cuda13-sm_90"])))
    kernel = data.draw(st.sampled_from(cubin.kernels))
    order = data.draw(st.permutations(range(len(kernel.words))))
    patched = cubin.with_words(kernel, *permuted(kernel, list(order)))
    assert changed_bytes(cubin.data, patched.data) <= allowed_bytes(kernel)
    inverse = [order.index(i) for i in range(len(order))]
    again = patched.kernel(kernel.name)
    assert patched.with_words(again, *permuted(again, inverse)) == cubin


def test_a_schedule_of_another_length_is_refused(one_of_each: Cubin) -> None:
    kernel = one_of_each.kernel("plain")
    short = (*kernel.words[:-1], kernel.words[-1][:-1])
    for words in (kernel.words[:-1], (*kernel.words, kernel.words[0]), short):
        with pytest.raises(CuasmrlError, match=r"kernel plain: a schedule must keep its \d+ 16-byte words"):
            one_of_each.with_words(kernel, words, {})


@pytest.mark.parametrize("new", [-16, 8, 1 << 20, 1 << 40])
def test_an_instruction_cannot_leave_the_code(one_of_each: Cubin, new: int) -> None:
    kernel = one_of_each.kernel("plain")
    old = next(iter(kernel.record_offsets().values()))
    with pytest.raises(CuasmrlError, match="cannot move to .* outside the code"):
        one_of_each.with_words(kernel, kernel.words, {old: new})


def test_a_kernel_of_another_cubin_is_refused(sample: Callable[[str], Cubin]) -> None:
    kernel = sample("cuda12-sm_80").kernel("plain")
    with pytest.raises(CuasmrlError, match="this kernel was read from another cubin"):
        sample("cuda13-sm_80").with_words(kernel, kernel.words, {})
