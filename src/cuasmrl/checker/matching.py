"""Which original instruction stands at each position of the candidate: words, pins, padding and records."""

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator

from cuasmrl.binary.cubin import WORD_BYTES
from cuasmrl.binary.sass import without_control
from cuasmrl.checker.program import Arrangement, Program
from cuasmrl.checker.verdict import Fault, Rule

_PADDED_SLOTS = 4
"""ptxas fills up to four slots of the shared-memory queue before a LDGSTS or MEMBAR."""


def match_words(program: Program, words: list[bytes]) -> list[int] | Fault:
    """order[position] = instruction, if every region holds the same words up to control bits.

    Equal words are matched in order. Another choice would prove no more: equal words write the same
    register or the same memory, whose order is kept, or they do nothing that could be told apart.
    """
    known = program.words
    bare = [without_control(word) for word in words]
    for start, _, pinned in program.regions:
        if pinned and bare[start] != program.bare[start]:
            return _misplaced(start, bare[start] in known, Rule.PINNED)
    order: list[int] = []
    for start, end, _ in program.regions:
        waiting: dict[bytes, deque[int]] = defaultdict(deque)
        for i in range(start, end):
            waiting[program.bare[i]].append(i)
        for position in range(start, end):
            if not waiting[bare[position]]:
                return _misplaced(position, bare[position] in known, Rule.BLOCK)
            order.append(waiting[bare[position]].popleft())
    return order


def _misplaced(position: int, is_known: bool, rule: Rule) -> Fault:
    where = f"at {WORD_BYTES * position:#06x}"
    if not is_known:
        message = f"the word {where} is no instruction of the original; {{c}} stood there"
        return Fault(Rule.WORD, position, message)
    if rule is Rule.PINNED:
        return Fault(rule, position, f"{{c}} must keep its place, but another instruction stands {where}")
    message = f"the instruction {where} came from another block or across a pinned one; {{c}} stood there"
    return Fault(rule, position, message)


def padding_faults(program: Program, candidate: Arrangement) -> Iterator[Fault]:
    """Dummy loads stay in front of what followed them, with the same company in the shared-memory queue."""
    position = candidate.position
    for dummy in program.instructions[:-1]:
        padded = dummy.index + 1
        number = program.block_of[padded]
        if not dummy.is_dummy_load or program.block_of[dummy.index] != number:
            continue
        if position[padded] != position[dummy.index] + 1:
            yield Fault(Rule.PADDING, padded, "{p} must stay directly in front of {c}", dummy.index)
        elif not program.instructions[padded].is_dummy_load:
            start = program.blocks[number].start
            before = _queue_before(program, range(padded - 1, start - 1, -1))
            moved = range(position[padded] - 1, start - 1, -1)
            if before != _queue_before(program, (candidate.order[place] for place in moved)):
                message = f"the slots in front of {{c}} must be {' '.join(before)}"
                yield Fault(Rule.PADDING, padded, message, dummy.index)


def _queue_before(program: Program, backwards: Iterable[int]) -> list[str]:
    queue = []
    for i in backwards:
        declaration = program.instructions[i].declaration
        if declaration is not None and declaration.queue == "shared":
            queue.append(program.instructions[i].opcode)
            if len(queue) == _PADDED_SLOTS:
                break
    return queue[::-1]


def record_faults(program: Program, candidate: Arrangement, data: bytes) -> Iterator[Fault]:
    """Every offset that names an instruction has followed it."""
    kernel = program.kernel
    changed = next((i for position, i in enumerate(candidate.order) if position != i), None)
    if changed is not None and (kernel.unknown_records() or kernel.has_relocations):
        what = "relocations" if kernel.has_relocations else "records of unknown meaning"
        yield Fault(Rule.RECORD, changed, f"{{c}} moved, but the kernel has {what} that may name it")
    if program.leaves_kernel is not None:
        for i in program.instructions:
            if candidate.position[i.index] != i.index or candidate.controls[i.index] != i.control:
                message = "{c} changed, but {p} leads to code outside this kernel, where nothing is known"
                yield Fault(Rule.RECORD, i.index, message, program.leaves_kernel)
    for slot, old in kernel.record_offsets().items():
        index = old // WORD_BYTES
        needed = WORD_BYTES * candidate.position[index]
        found = int.from_bytes(data[slot : slot + 4], "little")
        if found != needed:
            message = f"the record at file offset {slot:#x} must name {{c}}: {needed:#06x}, not {found:#06x}"
            yield Fault(Rule.RECORD, index, message, needed=needed, found=found)
