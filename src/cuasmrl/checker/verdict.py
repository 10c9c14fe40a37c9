"""What the checker answers: a certificate, or a refusal that names the first broken rule."""

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from cuasmrl.binary.sass import Instruction, name_of


class Rule(StrEnum):
    """What a candidate can break, in the order in which it is examined."""

    CONTAINER = "container"
    WORD = "word"
    PINNED = "pinned"
    BLOCK = "block"
    RECORD = "record"
    PADDING = "padding"
    BARRIER = "barrier"
    ENCODING = "encoding"
    STALL = "stall"
    REUSE = "reuse"
    DATA_FLOW = "data flow"
    MEMORY_ORDER = "memory order"
    SYNC_ORDER = "synchronisation order"
    WARP_ORDER = "warp-wide order"
    PRODUCT = "products in flight"
    SCOREBOARD = "scoreboard"
    DISTANCE = "distance"
    RELEASE = "scoreboard release"
    SPACING = "spacing"


@dataclass(frozen=True)
class Fault:
    """One broken rule, before it is put into words; instructions are named by their original index."""

    rule: Rule
    consumer: int
    message: str
    """With {p} for the producer, {c} for the consumer."""
    producer: int | None = None
    register: int | None = None
    needed: int | None = None
    found: int | None = None


@dataclass(eq=False)
class Refusal(Exception):  # noqa: N818 - a verdict, not an error in the input
    rule: Rule
    kernel: str
    sentence: str
    producer: int | None = None
    """Index of the instruction in the original; so is `consumer`."""
    consumer: int | None = None
    producer_address: int | None = None
    """Code offset in the candidate; so is `consumer_address`."""
    consumer_address: int | None = None
    register: str | None = None
    needed: int | None = None
    found: int | None = None

    def __str__(self) -> str:
        return self.sentence

    def as_dict(self) -> dict[str, Any]:
        return {"certified": False, **asdict(self)}


@dataclass(frozen=True)
class Certificate:
    """The candidate is as safe as the original, by the rules of docs/checker.md."""

    original: str
    """sha256 of the file; so is `candidate`."""
    candidate: str
    arch: int
    kernels: tuple[str, ...]
    proved: dict[str, dict[str, int]]
    """Per kernel: how many facts of each kind were shown."""
    checker: str
    """Version of the rules."""
    distances: str
    """sha256 over the minimum distances that the proof relied on."""

    def as_dict(self) -> dict[str, Any]:
        return {"certified": True, **asdict(self)}


def refusal(kernel: str, fault: Fault, instructions: tuple[Instruction, ...], position: list[int]) -> Refusal:
    def named(index: int | None) -> str:
        if index is None:
            return ""
        moved = f", now {16 * position[index]:#06x}" if position[index] != index else ""
        return f"{instructions[index]}{moved}"

    def address(index: int | None) -> int | None:
        return None if index is None else 16 * position[index]

    register = None if fault.register is None else name_of(fault.register)
    sentence = fault.message.format(p=named(fault.producer), c=named(fault.consumer))
    return Refusal(
        fault.rule,
        kernel,
        f"kernel {kernel}: {sentence}" + (f" ({register})" if register else ""),
        fault.producer,
        fault.consumer,
        address(fault.producer),
        address(fault.consumer),
        register,
        fault.needed,
        fault.found,
    )
