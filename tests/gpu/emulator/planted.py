"""Exchange two neighbours that depend on each other, and see whether anybody notices."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from cuasmrl.binary.cubin import Cubin
from cuasmrl.binary.sass import Instruction, Listing, Order, Space
from cuasmrl.checker import Checker, Refusal
from cuasmrl.gpu.emulator import Emulator, Fault
from cuasmrl.schedule import Schedule, control_flow

Run = Callable[[Emulator], bytes]
"""Launches on fresh inputs; gives the bytes of all outputs."""


@dataclass
class Tally:
    planted: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    """By the rule of the checker."""
    effects: Counter[str] = field(default_factory=Counter)
    certified: list[str] = field(default_factory=list)
    """Planted exchanges that the checker lets pass."""
    certified_and_seen: list[str] = field(default_factory=list)
    """Of those, the ones that change what the kernel computes."""

    @property
    def seen(self) -> int:
        return self.planted - self.effects["nothing"]

    def __str__(self) -> str:
        effects = ", ".join(f"{count} {effect}" for effect, count in self.effects.most_common())
        return (
            f"{self.planted} planted: {effects}; {sum(self.refused.values())} refused "
            f"({', '.join(f'{rule} {count}' for rule, count in self.refused.most_common())})"
        )


def neighbours(listing: Listing) -> Iterator[tuple[int, str]]:
    """Position p and why p + 1 must stay behind it: a register, or memory and those who guard it."""
    code = listing.instructions
    for block in control_flow(listing):
        for p in range(block.start, block.end - 1):
            first, second = code[p], code[p + 1]
            if any(i.declaration is None or i.declaration.jumps or i.never_executes for i in (first, second)):
                continue
            if _registers(first.defs) & _registers(second.uses):
                yield p, "register"
            elif _guards_shared(first, second) or _guards_shared(second, first):
                yield p, "memory"


def _registers(accesses: tuple[object, ...]) -> set[object]:
    return {getattr(access, "register") for access in accesses}  # noqa: B009  (of either kind of access)


def _guards_shared(guard: Instruction, access: Instruction) -> bool:
    declaration = access.declaration
    assert declaration is not None
    touches = Space.SHARED in (declaration.reads, declaration.writes)
    return touches and (guard.opcode in ("BAR", "LDGDEPBAR", "DEPBAR") or guard.order is Order.SYNC)


def plant(cubin: Cubin, listing: Listing, run: Run, most: int, tally: Tally) -> None:
    """Exchange up to `most` pairs, one at a time, spread over the kernel."""
    kernel, checker = listing.kernel, Checker(cubin)
    wanted = run(Emulator(cubin, kernel.name, listing=listing))
    found = sorted(neighbours(listing), key=lambda pair: pair[1] != "memory")
    for p, _ in found[:: max(1, len(found) // most)][:most]:
        order = list(range(len(kernel.words)))
        order[p], order[p + 1] = order[p + 1], order[p]
        words = tuple(kernel.words[i] for i in order)
        candidate = cubin.with_words(kernel, words, {16 * p: 16 * p + 16, 16 * p + 16: 16 * p})
        # The same as disassembling it, but quicker.
        arranged = Schedule(listing, tuple(order), tuple(i.control for i in listing.instructions)).arranged()
        assert tuple(i.word for i in arranged.instructions) == words
        effect = effect_of(Emulator(Cubin.parse(candidate.data), kernel.name, listing=arranged), run, wanted)
        tally.planted += 1
        tally.effects[effect] += 1
        try:
            checker.check(candidate)
        except Refusal as refusal:
            tally.refused[refusal.rule] += 1
        else:
            what = f"{kernel.name}: {listing.instructions[p].text} / {listing.instructions[p + 1].text}"
            tally.certified.append(what)
            tally.certified_and_seen += [what] if effect != "nothing" else []


def effect_of(emulator: Emulator, run: Run, wanted: bytes) -> str:
    try:
        found = run(emulator)
    except Fault:
        return "fault"
    return "other output" if found != wanted else "nothing"
