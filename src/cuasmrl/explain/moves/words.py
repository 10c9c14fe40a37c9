"""A step in plain sentences: what was done, what it saves, and who waits less."""

from __future__ import annotations

from collections.abc import Sequence

from cuasmrl.binary.sass import Listing
from cuasmrl.explain.comparison import Comparison, InstructionChange, ReasonChange
from cuasmrl.explain.moves.changes import Relocate, Replace, Retime
from cuasmrl.explain.moves.kinds import Kind
from cuasmrl.explain.moves.patterns import Scenery
from cuasmrl.explain.moves.story import Step
from cuasmrl.explain.waits.charges import BY_PREDECESSOR
from cuasmrl.gpu.timing import REASON_NAMES
from cuasmrl.schedule import SetReuse, SetStall, SetYield

_HOLDING_UP = {REASON_NAMES[reason] for reason in BY_PREDECESSOR}
_WORTH_TELLING = 0.3
"""What gets worse, as a share of what gets better."""
_LISTED = 3


def deed(step: Step, scenery: Scenery) -> str:
    """What a step does."""
    listing, where = step.before.listing, scenery.where(step.changes[0])
    match step.changes[0]:
        case Retime(number):
            block = scenery.board.blocks[number]
            inside = range(block.start, block.end)
            stalls = [sum(s.controls[i].stall for i in inside) for s in (step.before, step.after)]
            changed = sum(step.before.controls[i].stall != step.after.controls[i].stall for i in inside)
            text = (
                f"block {16 * block.start:#06x} {where}: {changed} stall counts brought to the smallest, "
                f"in sum {stalls[1]} instead of {stalls[0]}"
            )
        case Replace(number):
            block = scenery.board.blocks[number]
            text = f"block {16 * block.start:#06x} {where}: rearranged as a whole"
        case Relocate() as change:
            passage = scenery.passage(change, step)
            positions = abs(passage.end - passage.start)
            text = (
                f"{name(listing, passage.instruction)} {'up' if passage.is_up else 'down'} {positions} "
                f"position{'s' if positions > 1 else ''} past {_listed(passage.passed)}, {where}"
            )
            way = scenery.way(step)
            text += f": {way}" if way else ""
        case SetStall(instruction, stall):
            old = step.before.controls[instruction].stall
            text = f"{name(listing, instruction)} gets stall count {stall} instead of {old}, {where}"
        case SetYield(instruction, yields):
            text = f"{name(listing, instruction)} {'yields now' if yields else 'yields no more'}, {where}"
        case SetReuse(instruction, keep):
            text = f"{name(listing, instruction)} {'keeps' if keep else 'loses'} its reuse flags, {where}"
    others = len(step.changes) - 1
    return text + (f"; together with {others} more that it cannot do without" if others else "")


def effects(found: Comparison, listing: Listing) -> tuple[str, ...]:
    """Who waits less under the name that shrinks most; and who waits more, if that is not little."""
    if not found.reasons:
        return ()
    less = min(found.reasons, key=lambda reason: reason.change)
    more = max(found.reasons, key=lambda reason: reason.change)
    told = [reason for reason in (less,) if reason.change < 0]
    if more.change > 0 and more.change >= -_WORTH_TELLING * less.change:
        told.append(more)
    sentences = (_effect(reason, found.instructions, listing) for reason in told)
    return tuple(sentence for sentence in sentences if sentence is not None)


def name(listing: Listing, i: int) -> str:
    """By the address in the original, which stays the same throughout a story."""
    instruction = listing.instructions[i]
    return f"{instruction.opcode} at {instruction.address:#06x}"


def _effect(reason: ReasonChange, changes: Sequence[InstructionChange], listing: Listing) -> str | None:
    """The instruction at which most of a reason went or came, or else of any; None if there is none."""
    more = reason.change > 0
    same_way = [c for c in changes if (c.reason_change > 0) == more]
    if not same_way:
        return None
    # Cycles of warps that others hid have no part in the reason, but may be all that is left to tell.
    change = max(same_way, key=lambda c: (c.reason == reason.reason, abs(c.reason_change)))
    amount = f"{abs(change.reason_change):,.0f} warp cycles {'more' if more else 'less'}"
    subject = name(listing, change.index)
    if change.reason in _HOLDING_UP:
        return f"what follows {subject} waits {amount} ({change.reason})"
    causes = change.cause_before, change.cause_after
    # Where it waits longer shows best whom it waits for.
    cause = causes[more] if causes[more] is not None else causes[not more]
    whom = "" if cause is None or cause == change.index else f" for {name(listing, cause)}"
    return f"{subject} waits {amount}{whom} ({change.reason})"


def _listed(passed: Sequence[tuple[Kind, int]]) -> str:
    """The kinds that matter most, and how many others."""
    texts = [kind.counted(count) for kind, count in passed[:_LISTED]]
    others = sum(count for _, count in passed[_LISTED:])
    texts += [f"{others} other{'s' if others > 1 else ''}"] if others else []
    if not texts:
        return "nothing"
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"
