"""The 21 control bits: decode and encode are inverse, and nothing else of the word is touched."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuasmrl.binary.sass import MAX_STALL, Control, without_control
from cuasmrl.binary.sass.control import CONTROL_MASK

words = st.binary(min_size=16, max_size=16)
controls = st.builds(
    Control,
    stall=st.integers(0, MAX_STALL),
    yield_=st.booleans(),
    write_barrier=st.none() | st.integers(0, 6),
    read_barrier=st.none() | st.integers(0, 6),
    wait_mask=st.integers(0, 63),
    reuse=st.integers(0, 15),
)


@given(words)
def test_encoding_what_was_decoded_gives_the_word_back(word: bytes) -> None:
    assert Control.decode(word).encode(word) == word


@given(words, st.integers(0, (1 << 21) - 1))
def test_all_patterns_survive(word: bytes, pattern: int) -> None:
    value = int.from_bytes(word, "little") & ~CONTROL_MASK | pattern << 105
    changed = value.to_bytes(16, "little")
    assert Control.decode(changed).encode(word) == changed


@given(words, controls)
def test_decoding_what_was_encoded_gives_the_bits_back(word: bytes, control: Control) -> None:
    changed = control.encode(word)
    assert Control.decode(changed) == control
    assert without_control(changed) == without_control(word)


@pytest.mark.parametrize("pattern", [0, 1, 7, 8, 15])
def test_each_field_stands_where_the_facts_say(pattern: int) -> None:
    blank = bytes(16)
    at_stall = Control.decode((pattern << 105).to_bytes(16, "little"))
    assert at_stall.stall == pattern
    assert Control.decode((pattern << 122).to_bytes(16, "little")).reuse == pattern
    assert Control.decode((pattern << 116).to_bytes(16, "little")).wait_mask == pattern
    assert not Control.decode((1 << 109).to_bytes(16, "little")).yield_
    assert Control.decode(blank).yield_
    assert Control.decode((7 << 110).to_bytes(16, "little")).write_barrier is None
    assert Control.decode((7 << 113).to_bytes(16, "little")).read_barrier is None


@pytest.mark.parametrize(
    ("control", "fault"),
    [
        (Control(12, False, None, None, 0, 0), "above 11"),
        (Control(0, False, None, None, 0, 0), "stall 0"),
        (Control(4, True, None, None, 0, 1), "reuse"),
        (Control(1, False, 6, None, 0, 0), "write barrier 6"),
        (Control(1, False, None, 6, 0, 0), "read barrier 6"),
    ],
)
def test_bits_that_no_compiler_emits(control: Control, fault: str) -> None:
    found = control.encoding_fault()
    assert found is not None
    assert fault in found


def test_printed_as_others_print_it() -> None:
    assert str(Control(4, True, 1, None, 0b001001, 0)) == "B0--3--:R-:W1:Y:S04"
    assert Control(1, False, 2, 2, 0, 0).sets == (2,)
    assert Control(1, False, None, None, 0b100001, 0).waits == (0, 5)
