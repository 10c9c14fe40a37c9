"""What must hold before a stored cubin takes the place of one that a compiler has just made.

The certificate says that the optimised cubin was proved. Here it is made sure that it is a certificate for
these bytes by the rules of today, and once more, by other means, that they are a rearrangement and no more.
"""

from __future__ import annotations

from cuasmrl.checker import VERSION
from cuasmrl.deploy.store.code import INFO, TEXT, Code, read_code
from cuasmrl.deploy.store.packing import DamagedError, OutdatedError, Packed
from cuasmrl.errors import CuasmrlError

_WORD = 16
# Bits 105 to 125 of a word decide when it issues, not what it does.
_KEPT = bytes((0xFF,) * 13 + (0x01, 0x00, 0xC0))


def check_contract(packed: Packed, key: str) -> Code:
    """The code of the stored original; raises if the entry must not be used for code of that key."""
    try:
        code = read_code(packed.original)
    except CuasmrlError as error:
        raise DamagedError(f"its original is {error}") from None
    facts = packed.facts
    if code.key != key:
        raise DamagedError("its original is not the code it stands for")
    if facts.get("arch") != code.arch or facts.get("kernels") != code.kernels:
        raise DamagedError(f"it does not speak of the sm_{code.arch} kernels in its original")
    _check_certificate(facts["certificate"], packed, code)
    _check_rearranged(packed.original, packed.optimised, code)
    return code


def substituted(cubin: bytes, code: Code, packed: Packed, stored: Code) -> bytes:
    """The compiler's cubin with the optimised code; its symbols and all that debuggers read stay."""
    made = bytearray(cubin)
    for name, (place, size) in stored.sections.items():
        new = packed.optimised[place : place + size]
        if new != packed.original[place : place + size]:
            here, _ = code.sections[name]
            made[here : here + size] = new
    if len(made) != len(cubin):
        raise DamagedError("its sections have other sizes")
    return bytes(made)


def _check_certificate(certificate: dict[str, object], packed: Packed, code: Code) -> None:
    if certificate.get("checker") != VERSION:
        raise OutdatedError(
            f"it was proved by rules {certificate.get('checker')}, but those of today are {VERSION}; "
            "run `cuasmrl store verify` to prove it again"
        )
    if certificate.get("original") != packed.facts["original"]["sha256"]:
        raise DamagedError("its certificate is for another original")
    if certificate.get("candidate") != packed.facts["optimised"]["sha256"]:
        raise DamagedError("its certificate is for another optimised cubin")
    if certificate.get("certified") is not True or certificate.get("arch") != code.arch:
        raise DamagedError(f"its certificate is not one for sm_{code.arch}")
    kernels = certificate.get("kernels")
    if not isinstance(kernels, list) or sorted(kernels) != code.kernels:
        raise DamagedError("its certificate does not speak of the kernels in its original")


def _check_rearranged(original: bytes, optimised: bytes, code: Code) -> None:
    """Same words up to control bits, records follow the words they name, no other byte differs."""
    if len(original) != len(optimised):
        raise DamagedError("its optimised cubin has another size than its original")
    spans = [
        code.sections[prefix + kernel]
        for kernel in code.kernels
        for prefix in (TEXT, INFO)
        if prefix + kernel in code.sections
    ]
    done = 0
    for place, size in [*sorted(spans), (len(original), 0)]:
        if place < done or original[done:place] != optimised[done:place]:
            raise DamagedError("its optimised cubin differs outside the code")
        done = place + size
    for kernel in code.kernels:
        place, size = code.sections[TEXT + kernel]
        before, after = _bare(original[place : place + size]), _bare(optimised[place : place + size])
        moved = [(x, y) for x, y in zip(before, after, strict=True) if x != y]
        if sorted(x for x, _ in moved) != sorted(y for _, y in moved):
            raise DamagedError(f"kernel {kernel} of its optimised cubin has other instructions")
        if INFO + kernel in code.sections:
            _check_records(original, optimised, code.sections[INFO + kernel], before, after)


def _bare(text: bytes) -> list[bytes]:
    """Words without control bits."""
    if len(text) % _WORD:
        raise DamagedError("its code does not consist of words")
    mask = int.from_bytes(_KEPT * (len(text) // _WORD), "little")
    plain = (int.from_bytes(text, "little") & mask).to_bytes(len(text), "little")
    return [plain[i : i + _WORD] for i in range(0, len(text), _WORD)]


def _check_records(
    original: bytes, optimised: bytes, info: tuple[int, int], before: list[bytes], after: list[bytes]
) -> None:
    """Whatever differs in the records is the offset of an instruction that is now elsewhere."""
    place, size = info
    if original[place : place + size] == optimised[place : place + size]:
        return
    offsets = range(0, _WORD * len(before), _WORD)
    for slot in range(place, place + size, 4):
        end = min(slot + 4, place + size)
        if original[slot:end] != optimised[slot:end]:
            old = int.from_bytes(original[slot:end], "little")
            new = int.from_bytes(optimised[slot:end], "little")
            if old not in offsets or new not in offsets or before[old // _WORD] != after[new // _WORD]:
                raise DamagedError("a record of its optimised cubin names another instruction")
