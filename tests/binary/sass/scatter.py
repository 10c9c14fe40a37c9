"""Instructions whose operands stand far apart, so that the width of each one shows by itself.

A compiler likes to place operands next to each other: a group taken one register too wide then hides behind
its neighbour, and even an exact oracle cannot tell. So the register fields of real words are set to numbers
with room between them. Nothing runs such code; nvdisasm and we just have to read it in the same way.
"""

from cuasmrl.binary.cubin import Cubin
from cuasmrl.binary.sass import File, Instruction, Listing

_FIELDS = ((16, 32, 8), (24, 96, 16), (32, 160, 32), (64, 224, 48))
"""First bit of a register field, and the R and UR number that it gets."""
_JUMPY = ("BRA", "BSSY", "BSYNC", "CALL", "RET", "BRX", "LEPC", "WARPSYNC", "BREAK", "BMOV", "RPCMOV", "EXIT")


def scattered(cubin: Cubin, listings: dict[str, Listing]) -> Cubin:
    """The cubin with its operands moved apart, and 254 registers in every kernel."""
    data = bytearray(cubin.data)
    for listing in listings.values():
        text = listing.kernel.text
        words = b"".join(scattered_word(i) for i in listing.instructions)
        data[text.offset : text.offset + text.size] = words
        for record in listing.kernel.file_records:
            if record.name == "REGCOUNT":
                data[record.position + 4 : record.position + 8] = (254).to_bytes(4, "little")
    return Cubin.parse(bytes(data), cubin.source)


def scattered_word(instruction: Instruction) -> bytes:
    if instruction.opcode in _JUMPY or instruction.declaration is None or "GMMA" in instruction.opcode:
        return instruction.word
    vector, uniform = (_numbers(instruction, file) for file in (File.R, File.UR))
    uniform_bits = 8 if instruction.arch >= 100 else 6
    word = int.from_bytes(instruction.word, "little")
    for shift, vector_number, uniform_number in _FIELDS:
        as_vector, as_uniform = word >> shift & 255, word >> shift & (1 << uniform_bits) - 1
        # A field belongs to a register when nvdisasm prints its value as that register's number.
        if as_vector in vector and as_uniform not in uniform:
            word = word & ~(255 << shift) | vector_number << shift
        elif as_uniform in uniform and as_vector not in vector:
            word = word & ~((1 << uniform_bits) - 1 << shift) | uniform_number << shift
    return word.to_bytes(16, "little")


def _numbers(instruction: Instruction, file: File) -> set[int]:
    parts = [r for o in instruction.operands for r in (o.register, o.uniform, o.descriptor) if r is not None]
    return {r.index for r in parts if r.file is file and r.index is not None}
