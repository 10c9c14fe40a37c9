"""One instruction as its semantics sees it: typed readers of its sources, writers of its results.

Semantics ask a `Form` for what they need while a kernel is loaded. The form notes which modifiers and
operands were asked for; whatever nobody asked for is something the emulator does not understand, and the
kernel is refused instead of being executed wrongly.
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from cuasmrl.binary.sass import File, Instruction, Kind, Operand, Register
from cuasmrl.gpu.emulator.faults import UnsupportedError
from cuasmrl.gpu.emulator.values import TRUE, ZERO, Array, Long, Mask, Value, constant, high, join, low
from cuasmrl.gpu.emulator.warps import Warps

Step: TypeAlias = Callable[[Warps], None]
"""What an instruction does to the warps that execute it."""
Read: TypeAlias = Callable[[Warps], Value]
ReadLong: TypeAlias = Callable[[Warps], Long]
ReadMask: TypeAlias = Callable[[Warps], Mask]
ReadFloat: TypeAlias = Callable[[Warps], npt.NDArray[np.float32]]
ReadDouble: TypeAlias = Callable[[Warps], npt.NDArray[np.float64]]
Write: TypeAlias = Callable[[Warps, Value], None]
WriteLong: TypeAlias = Callable[[Warps, Long], None]
WriteMask: TypeAlias = Callable[[Warps, Mask], None]

_SIGN = np.uint32(0x8000_0000)
_MAGNITUDE = np.uint32(0x7FFF_FFFF)
# Says which operands the register cache keeps; no value depends on it.
_WITHOUT_MEANING = frozenset(("reuse",))


class Form:
    def __init__(self, instruction: Instruction, labels: Mapping[str, int] | None = None) -> None:
        count = instruction.destinations
        self.instruction = instruction
        self.labels = labels or {}
        """Code offsets of the functions in the kernel, by name."""
        self.opcode = instruction.opcode
        self.arch = instruction.arch
        self.modifiers = instruction.modifiers
        self.destinations = instruction.operands[:count]
        self.sources = instruction.operands[count:]
        self._asked_modifiers: set[str] = set()
        self._asked_operands: set[int] = set()

    # modifiers

    def has(self, modifier: str) -> bool:
        """Is the modifier there? Asking makes it understood."""
        self._asked_modifiers.add(modifier)
        return modifier in self.modifiers

    def choose(self, *modifiers: str, default: str | None = None) -> str:
        """The one of these modifiers that is there."""
        found = [m for m in modifiers if self.has(m)]
        if len(found) == 1:
            return found[0]
        if found or default is None:
            raise UnsupportedError(f"needs one of .{', .'.join(modifiers)}")
        return default

    def ignore(self, *modifiers: str) -> None:
        """These change no value: cache hints, memory order of one instruction at a time."""
        self._asked_modifiers.update(modifiers)

    # sources

    def operand(self, k: int) -> Operand:
        """Source k, marked as understood; negative k counts from the end."""
        k = range(len(self.sources))[k] if -len(self.sources) <= k < len(self.sources) else -1
        if k < 0:
            raise UnsupportedError("has fewer operands than expected")
        self._asked_operands.add(k)
        return self.sources[k]

    def immediate(self, k: int) -> int:
        operand = self.operand(k)
        if operand.kind is not Kind.IMMEDIATE or not isinstance(operand.value, int):
            raise UnsupportedError(f"expects a number instead of {operand.text}")
        return operand.value

    def known(self, k: int) -> int | None:
        """The number source k always is: that of an immediate, of RZ, of PT (1) and of !PT (0)."""
        operand = self.operand(k)
        if operand.kind is Kind.IMMEDIATE and isinstance(operand.value, int):
            return operand.value & 0xFFFF_FFFF
        register = operand.register
        if operand.kind is not Kind.REGISTER or register is None or register.index is not None:
            return None
        if operand.is_predicate:
            return 0 if operand.inverted else 1
        return 0xFFFF_FFFF if operand.inverted else 0

    def word(self, k: int, word: int = 0) -> Read:
        """Word `word` of source k without its sign: who asks looks at `negated` and `inverted`."""
        operand = self.operand(k)
        _refuse_suffixes(operand, "64")
        if operand.absolute:
            raise UnsupportedError(f"operand {operand.text}")
        return raw(operand, word, lambda number: _whole(number) >> 32 * word)

    def integer(self, k: int) -> Read:
        """32 bits; `-` negates in two's complement, `~` inverts."""
        operand = self.operand(k)
        _refuse_suffixes(operand)
        read = raw(operand, 0, _integer_bits)
        if operand.kind is Kind.IMMEDIATE:
            return read
        if operand.negated:
            return lambda w: np.negative(read(w))
        if operand.inverted:
            return lambda w: ~read(w)
        return read

    def long(self, k: int) -> ReadLong:
        """64 bits: a pair of registers, eight bytes of a constant bank or a number."""
        operand = self.operand(k)
        _refuse_suffixes(operand, "64")
        if operand.kind is Kind.IMMEDIATE:
            number = np.full((1, 1, 1), _whole(operand) & (1 << 64) - 1, np.uint64)
            return lambda w: number
        first, second = raw(operand, 0), raw(operand, 1)
        if operand.negated:
            return lambda w: np.negative(join(first(w), second(w)))
        if operand.inverted:
            return lambda w: ~join(first(w), second(w))
        return lambda w: join(first(w), second(w))

    def single(self, k: int) -> ReadFloat:
        """A float32 with its sign and magnitude modifiers applied."""
        operand = self.operand(k)
        _refuse_suffixes(operand)
        read = raw(operand, 0, _single_bits)
        if operand.kind is Kind.IMMEDIATE:
            return lambda w: read(w).view(np.float32)
        return lambda w: signed(operand, read(w)).view(np.float32)

    def double(self, k: int) -> ReadDouble:
        operand = self.operand(k)
        _refuse_suffixes(operand)
        if operand.kind is Kind.IMMEDIATE:
            number = np.full((1, 1, 1), _float(operand), np.float64)
            return lambda w: number
        first, second = raw(operand, 0), raw(operand, 1)
        return lambda w: join(first(w), signed(operand, second(w))).view(np.float64)

    def predicate(self, k: int) -> ReadMask:
        operand = self.operand(k)
        if not operand.is_predicate:
            raise UnsupportedError(f"expects a predicate instead of {operand.text}")
        return mask_reader(operand)

    def optional_predicate(self, k: int, default: Mask) -> ReadMask:
        """Source k if there is one: a carry-in, which nvdisasm leaves out when it is constant."""
        if k < len(self.sources):
            return self.predicate(k)
        return lambda w: default

    def registers(self, k: int, count: int) -> Callable[[Warps], tuple[Value, ...]]:
        """`count` consecutive registers starting at source k, as they are."""
        operand = self.operand(k)
        if operand.kind is not Kind.REGISTER or operand.negated or operand.inverted or operand.absolute:
            raise UnsupportedError(f"expects registers instead of {operand.text}")
        reads = [raw(operand, i) for i in range(count)]
        return lambda w: tuple(read(w) for read in reads)

    # results

    def result(self) -> Write:
        """The register that takes the result."""
        return register_writer(self._result_register(), 0)

    def result_long(self) -> WriteLong:
        """The pair of registers that takes a 64-bit result."""
        write_low, write_high = self.result_words(2)

        def write(w: Warps, value: Long) -> None:
            write_low(w, low(value))
            write_high(w, high(value))

        return write

    def result_words(self, count: int) -> list[Write]:
        """Consecutive registers that take the result."""
        register = self._result_register()
        return [register_writer(register, i) for i in range(count)]

    def result_predicate(self, k: int) -> WriteMask | None:
        """Destination predicate k, counting predicates only; None when absent or PT."""
        predicates = [d for d in self.destinations if d.is_predicate]
        return mask_writer(predicates[k]) if k < len(predicates) else None

    def compute(self, function: Callable[..., Value], *reads: Callable[[Warps], Array]) -> Step:
        """A step that writes function(sources) to the result register."""
        write = self.result()
        match reads:
            case (a,):
                return lambda w: write(w, function(a(w)))
            case (a, b):
                return lambda w: write(w, function(a(w), b(w)))
            case (a, b, c):
                return lambda w: write(w, function(a(w), b(w), c(w)))
        return lambda w: write(w, function(*(read(w) for read in reads)))

    def refuse_leftovers(self) -> None:
        """Raise if a modifier or an operand was never asked for."""
        modifiers = [m for m in self.modifiers if m not in self._asked_modifiers]
        if modifiers:
            raise UnsupportedError(f"modifier .{', .'.join(modifiers)}")
        operands = [o.text for k, o in enumerate(self.sources) if k not in self._asked_operands]
        if operands:
            raise UnsupportedError(f"operand {', '.join(operands)}")

    def _result_register(self) -> Register:
        for operand in self.destinations:
            if operand.register is not None and not operand.is_predicate:
                return operand.register
        raise UnsupportedError("has no result register")


def signed(operand: Operand, bits: Value) -> Value:
    """Apply |..| and - to the sign bit of a float."""
    if operand.absolute:
        bits = bits & _MAGNITUDE
    if operand.negated:
        bits = bits ^ _SIGN
    return bits


def raw(operand: Operand, word: int, immediate: Callable[[Operand], int] | None = None) -> Read:
    """Word `word` of an operand without its modifiers; `immediate` gives the bits of a number."""
    if operand.kind is Kind.REGISTER and operand.register is not None:
        return register_reader(operand.register, word)
    if operand.kind is Kind.CONSTANT and operand.bank is not None and operand.register is None:
        if operand.uniform is not None or operand.descriptor is not None:
            raise UnsupportedError(f"reads {operand.text}")
        bank, offset = operand.bank, operand.offset + 4 * word
        return lambda w: w.constant(bank, offset)
    if operand.kind is Kind.IMMEDIATE and immediate is not None:
        number = constant(immediate(operand))
        return lambda w: number
    raise UnsupportedError(f"cannot read {operand.text}")


def register_reader(register: Register, word: int) -> Read:
    if register.index is None:
        return lambda w: ZERO
    index = register.index + word
    if register.file is File.R:
        return lambda w: w.registers.general[index]
    if register.file is File.UR:
        return lambda w: w.registers.uniform[index]
    raise UnsupportedError(f"reads {register.file}{index} as a number")


def mask_reader(operand: Operand) -> ReadMask:
    """A predicate, inverted where it is written with `!`."""
    register = operand.register
    if register is None or register.file not in (File.P, File.UP):
        raise UnsupportedError(f"expects a predicate instead of {operand.text}")
    if register.index is None:
        known = ~TRUE if operand.inverted else TRUE
        return lambda w: known
    index, inverted = register.index, operand.inverted
    if register.file is File.P:
        if inverted:
            return lambda w: ~w.registers.predicates[index]
        return lambda w: w.registers.predicates[index]
    if inverted:
        return lambda w: ~w.registers.uniform_predicates[index]
    return lambda w: w.registers.uniform_predicates[index]


def register_writer(register: Register, word: int) -> Write:
    if register.index is None:
        return lambda w, value: None
    index = register.index + word
    if register.file is File.R:
        return lambda w, value: w.set(index, value)
    if register.file is File.UR:
        return lambda w, value: w.set_uniform(index, value)
    raise UnsupportedError(f"writes {register.file}{index} as a number")


def mask_writer(operand: Operand) -> WriteMask | None:
    register = operand.register
    if register is None or register.index is None:
        return None
    index = register.index
    if register.file is File.P:
        return lambda w, value: w.set_predicate(index, value)
    return lambda w, value: w.set_uniform_predicate(index, value)


def _whole(operand: Operand) -> int:
    if not isinstance(operand.value, int):
        raise UnsupportedError(f"expects a whole number instead of {operand.text}")
    return operand.value


def _integer_bits(operand: Operand) -> int:
    return _whole(operand)


def _single_bits(operand: Operand) -> int:
    """`0x..` is a bit pattern, everything else a number, also without a point."""
    if operand.text.startswith("0x"):
        return _whole(operand)
    return int(np.float32(_float(operand)).view(np.uint32))


def _float(operand: Operand) -> float:
    if operand.text.startswith("0x") or operand.value is None:
        raise UnsupportedError(f"expects a floating-point number instead of {operand.text}")
    return float(operand.value)


def _refuse_suffixes(operand: Operand, *known: str) -> None:
    unknown: Any = set(operand.suffixes) - _WITHOUT_MEANING - set(known)
    if unknown:
        raise UnsupportedError(f"operand {operand.text}")
