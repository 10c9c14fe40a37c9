"""The text that printf makes, against that of the C library."""

import ctypes
import struct

import pytest

from cuasmrl.gpu.emulator.faults import UnsupportedError
from cuasmrl.gpu.emulator.printing import formatted

DOUBLES = (0.0, -0.0, 1.5, -2.25e-7, 6.02e23, float("inf"), float("-inf"), float("nan"), 1 / 3)
INTEGERS = (0, 1, -1, 255, 123456, -(2**31), 2**31 - 1)


def c_text(template: str, *arguments: object) -> str:
    room = ctypes.create_string_buffer(500)
    ctypes.CDLL(None).snprintf(room, ctypes.c_size_t(500), template.encode(), *arguments)
    return room.value.decode()


def text_of(template: str, packed: bytes) -> str:
    return formatted(template, lambda offset, size: packed[offset : offset + size], lambda address: "")[0]


@pytest.mark.parametrize("template", ["%a", "%A", "<%12a>", "<%-12A>"])
@pytest.mark.parametrize("value", DOUBLES)
def test_hexadecimal_floats(template: str, value: float) -> None:
    assert text_of(template, struct.pack("<d", value)) == c_text(template, ctypes.c_double(value))


@pytest.mark.parametrize("kind", "eEfFgG")
@pytest.mark.parametrize("layout", ["", "8", "-12", "+", " ", "012", ".3", "10.0", "#.0"])
@pytest.mark.parametrize("value", DOUBLES)
def test_floats(kind: str, layout: str, value: float) -> None:
    template = f"<%{layout}{kind}>"
    assert text_of(template, struct.pack("<d", value)) == c_text(template, ctypes.c_double(value))


@pytest.mark.parametrize("kind", "diouxX")
@pytest.mark.parametrize(
    "layout", ["", "5", "-7", "+", " ", "08", "#", "#10", "#010", ".4", "9.6", ".0", "+.3"]
)
@pytest.mark.parametrize("value", INTEGERS)
def test_integers(kind: str, layout: str, value: int) -> None:
    template = f"<%{layout}{kind}>"
    assert text_of(template, struct.pack("<i", value)) == c_text(template, ctypes.c_int(value))


@pytest.mark.parametrize(("size", "code"), [("l", "q"), ("ll", "q"), ("h", "i"), ("hh", "i"), ("z", "q")])
@pytest.mark.parametrize("value", [0, -1, 40000, -70000, 200])
def test_sizes(size: str, code: str, value: int) -> None:
    for kind in "du":
        template = f"%{size}{kind}"
        number = ctypes.c_int64(value) if code == "q" else ctypes.c_int(value)
        assert text_of(template, struct.pack("<" + code, value)) == c_text(template, number)


def test_arguments_are_aligned_to_their_sizes() -> None:
    packed = struct.pack("<i4xdi4xq", 7, 2.5, -3, 1 << 40)
    text, count = formatted("%d %.1f %d %lld%%", lambda o, n: packed[o : o + n], lambda address: "")
    assert (text, count) == ("7 2.5 -3 1099511627776%", 4)


def test_texts_characters_pointers_and_widths_from_arguments() -> None:
    packed = struct.pack("<Qiii4xQ", 0x100, ord("x"), 6, 42, 0xABC)
    text, count = formatted("%5s|%c|%*d|%p", lambda o, n: packed[o : o + n], {0x100: "abc"}.__getitem__)
    assert (text, count) == ("  abc|x|    42|0xabc", 5)


def test_what_is_not_known_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="printf with %n"):
        text_of("%n", bytes(8))
