"""Copies by engines beside the warp, barriers in shared memory and the fences between: out of order."""

from cuasmrl.binary.sass import Instruction, Order, Space
from tests.checker.plants.products import exchanged


def _is_access(i: Instruction) -> bool:
    return i.order is Order.MEMORY


def _reads_shared(i: Instruction) -> bool:
    return i.declaration is not None and i.declaration.reads is Space.SHARED and not i.is_dummy_load


def _writes_shared(i: Instruction) -> bool:
    return i.declaration is not None and i.declaration.writes is Space.SHARED


def _is_copy(i: Instruction) -> bool:
    return i.opcode.startswith(("UTMALDG", "UTMASTG", "UTMAREDG", "UBLKCP", "UBLKRED"))


def _is_fence(i: Instruction) -> bool:
    return i.opcode in ("FENCE", "MEMBAR")


def _initialises(i: Instruction) -> bool:
    return i.opcode == "SYNCS" and "EXCH" in i.modifiers


def _arrives(i: Instruction) -> bool:
    return i.opcode == "SYNCS" and "ARRIVE" in i.modifiers


exchanged("barriers in shared memory exchanged", lambda p, c: p.opcode == c.opcode == "SYNCS")
exchanged(
    "initial value of a barrier behind a thread barrier", lambda p, c: _initialises(p) and c.opcode == "BAR"
)
exchanged("arrival in front of a read that it releases", lambda p, c: _reads_shared(p) and _arrives(c))
exchanged("arrival in front of a write that it announces", lambda p, c: _writes_shared(p) and _arrives(c))
exchanged("access in front of an arrival", lambda p, c: _arrives(p) and _is_access(c))
exchanged("copy in front of the bytes that are expected", lambda p, c: _arrives(p) and _is_copy(c))
exchanged("arrival in front of a copy", lambda p, c: _is_copy(p) and _arrives(c))
exchanged("copies exchanged", lambda p, c: _is_copy(p) and _is_copy(c))
exchanged("commit in front of a copy", lambda p, c: _is_copy(p) and c.opcode == "UTMACMDFLUSH")
exchanged(
    "wait for copies in front of their commit",
    lambda p, c: p.opcode == "UTMACMDFLUSH" and c.opcode == "DEPBAR",
)
exchanged("fence in front of a write that it publishes", lambda p, c: _writes_shared(p) and _is_fence(c))
exchanged(
    "fence in front of an access", lambda p, c: _is_access(p) and not _writes_shared(p) and _is_fence(c)
)
exchanged("access in front of a fence", lambda p, c: _is_fence(p) and _is_access(c))
exchanged("fences exchanged", lambda p, c: _is_fence(p) and _is_fence(c))
exchanged("thread barrier in front of a fence", lambda p, c: _is_fence(p) and c.opcode == "BAR")
exchanged("fence in front of a thread barrier", lambda p, c: p.opcode == "BAR" and _is_fence(c))
