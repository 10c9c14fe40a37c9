"""Any bytes at all: a cubin or one clear error, in little time and memory."""

import struct
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from random import Random

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from cuasmrl.binary.cubin import WORD_BYTES, Cubin
from cuasmrl.errors import CuasmrlError
from tests.binary.cubin.forge import SYMBOL_BYTES, edited, mutate, with_section_field

SAMPLES = ("cuda12-sm_75", "cuda12-sm_80", "cuda13-sm_90", "cuda13-sm_120")
# Far above what a sample needs, on a busy machine too; a file that multiplied the work would take minutes.
SECONDS = 3.0
MEMORY_PER_FILE_BYTE = 200
FUZZ = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def exercise(data: bytes) -> bool:
    """Read everything there is to read and patch every kernel; False where the file was refused."""
    try:
        cubin = Cubin.parse(data, "fuzz")
        kernels = cubin.kernels
    except CuasmrlError as error:
        return refused_clearly(error)
    for kernel in kernels:
        kernel.unknown_records()
        count = len(kernel.words)
        moved = {i * WORD_BYTES: (count - 1 - i) * WORD_BYTES for i in range(count)}
        patched = cubin.with_words(kernel, kernel.words[::-1], moved)
        assert untouched(cubin, kernel.name, patched)
        assert Cubin.parse(patched.data, "fuzz") == patched
        again = patched.kernel(kernel.name)
        assert again.words == kernel.words[::-1]
        assert patched.with_words(again, again.words[::-1], moved) == cubin
    return True


def refused_clearly(error: CuasmrlError) -> bool:
    assert str(error).startswith("fuzz")
    assert str(error).isprintable()
    return False


def untouched(cubin: Cubin, name: str, patched: Cubin) -> bool:
    """Whether the two files agree outside the code and the record slots of that kernel."""
    kernel = cubin.kernel(name)
    masked = []
    for data in (bytearray(cubin.data), bytearray(patched.data)):
        data[kernel.text.offset : kernel.text.offset + kernel.text.size] = bytes(kernel.text.size)
        for slot in kernel.record_offsets():
            data[slot : slot + 4] = bytes(4)
        masked.append(data)
    return masked[0] == masked[1]


def measured(data: bytes) -> tuple[bool, float, int]:
    """(accepted, CPU seconds, peak bytes)."""
    tracemalloc.start()
    start = time.process_time()
    try:
        accepted = exercise(data)
        return accepted, time.process_time() - start, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def check(data: bytes, file_bytes: int) -> None:
    _, seconds, memory = measured(data)
    assert seconds < SECONDS
    assert memory < MEMORY_PER_FILE_BYTE * file_bytes


@FUZZ
@given(st.binary(max_size=2000))
@example(b"\x7fELF")
def test_any_bytes(data: bytes) -> None:
    check(data, 1 << 16)


@FUZZ
@given(random=st.randoms(use_true_random=False), name=st.sampled_from(SAMPLES))
def test_damaged_cubins(random: Random, name: str, sample: Callable[[str], Cubin]) -> None:
    data = sample(name).data
    check(mutate(data, random), len(data))


@FUZZ
@given(length=st.integers(min_value=0), name=st.sampled_from(SAMPLES))
def test_truncated_cubins(length: int, name: str, sample: Callable[[str], Cubin]) -> None:
    data = sample(name).data
    accepted, _, _ = measured(data[: length % len(data)])
    assert not accepted


@pytest.mark.slow
@pytest.mark.parametrize("name", SAMPLES)
def test_campaign(name: str, sample: Callable[[str], Cubin]) -> None:
    data = sample(name).data
    random = Random(name)
    accepted = 0
    for _ in range(10_000):
        start = time.process_time()
        accepted += exercise(mutate(data, random))
        assert time.process_time() - start < SECONDS
    # Were every mutant refused, the campaign would exercise nothing but the first checks.
    assert accepted > 500


def test_a_section_count_of_zero_does_not_move_the_count_into_the_table(one_of_each: Cubin) -> None:
    # By the ELF specification the count is then the size of section 0: here 2**64 - 1.
    (table,) = struct.unpack_from("<Q", one_of_each.data, 40)
    data = edited(edited(one_of_each.data, 60, bytes(2)), table + 32, b"\xff" * 8)
    check(data, len(data))


def test_sections_all_over_the_same_bytes_cost_no_more(one_of_each: Cubin) -> None:
    # 60,000 times the same records, were they not refused.
    data = bytearray(one_of_each.data)
    (table,) = struct.unpack_from("<Q", data, 40)
    info = one_of_each.section(".nv.info.plain")
    assert info is not None
    header = bytes(data[table + info.index * 64 :][:64])
    forged = bytes(data) + header * 60_000
    forged = edited(forged, 40, len(data).to_bytes(8, "little"))
    forged = edited(forged, 60, (60_000).to_bytes(2, "little"))
    check(forged, len(forged))


def test_overlapping_names_cost_no_more_than_the_file(one_of_each: Cubin) -> None:
    # Every symbol is called by a tail of one endless name: quadratic in the file, were it not limited.
    cubin, count = one_of_each, 20_000
    names = b"x" * (count * SYMBOL_BYTES) + b"\0"
    symbols = b"".join(struct.pack("<IBBHQQ", i, 2, 0, 1, 0, 0) for i in range(count))
    grown = replace(cubin, data=cubin.data + symbols + names)
    for section, offset, size in (
        (".symtab", len(cubin.data), len(symbols)),
        (".strtab", len(cubin.data) + len(symbols), len(names)),
    ):
        grown = replace(grown, data=with_section_field(grown, section, "sh_offset", offset))
        grown = replace(grown, data=with_section_field(grown, section, "sh_size", size))
    forged = grown.data
    with pytest.raises(CuasmrlError, match="its names overlap without end"):
        Cubin.parse(forged)
    check(forged, len(forged))
