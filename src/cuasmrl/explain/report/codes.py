"""Two compilers' code for one kernel: what differs in the schedule, and what it is worth."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from difflib import SequenceMatcher
from typing import Any

from cuasmrl.errors import CuasmrlError
from cuasmrl.explain.comparison import Comparison, compare_replays
from cuasmrl.explain.report.analysis import Analysis
from cuasmrl.explain.report.facts import Facts
from cuasmrl.explain.waits.replays import replays_of

_OPCODES = 12


@dataclass(frozen=True)
class CodeDifference:
    """Of the second compiler's code against the first's, both as compiled."""

    instructions: tuple[int, int]
    loop: tuple[int, int]
    """Instructions of the hot loop."""
    in_order: int
    """Instructions of the hot loop that are in both, in the same order, by opcode and modifiers."""
    opcodes: Mapping[str, tuple[int, int]]
    """Those that do not occur equally often in the whole kernel, the largest difference first."""
    cycles: tuple[float, float]
    """Of the kernel as compiled."""
    optimised: tuple[float, float]
    """Of the best schedule of each."""
    comparison: Comparison | None
    """Why the second is faster or slower, if it is the same instructions in another order."""

    @property
    def worth(self) -> float:
        """Gain of the second compiler's code over the first's, as compiled."""
        return self.cycles[0] / self.cycles[1] - 1

    @property
    def worth_optimised(self) -> float:
        return self.optimised[0] / self.optimised[1] - 1

    def as_dict(self) -> dict[str, Any]:
        found = {**asdict(self), "worth": self.worth, "worth_optimised": self.worth_optimised}
        same = self.comparison
        found["comparison"] = None
        if same is not None:
            found["comparison"] = {
                "moved": same.moved,
                "edited": same.edited,
                "sentences": list(same.sentences),
            }
        return found


def code_difference(one: Facts, other: Facts) -> CodeDifference | None:
    """None unless the two are runs of one kernel on one chip, with the same work, from different code."""
    first, second = one.analysis, other.analysis
    if first is None or second is None or one.config is None or other.config is None:
        return None
    same = [
        (facts.config.kernel, facts.config.device, facts.config.l2, analysis.subject.sizes)
        for facts, analysis in ((one, first), (other, second))
        if facts.config
    ]
    if same[0] != same[1] or one.config.cubin == other.config.cubin:
        return None
    return CodeDifference(
        (first.subject.instructions, second.subject.instructions),
        (len(first.loop.before.rows), len(second.loop.before.rows)),
        _in_order(first, second),
        _opcodes(first, second),
        (first.cycles.before.mean_cycles, second.cycles.before.mean_cycles),
        (first.cycles.after.mean_cycles, second.cycles.after.mean_cycles),
        _rescheduled(first, second),
    )


def _in_order(first: Analysis, second: Analysis) -> int:
    one, other = ([_mnemonic(row.text) for row in a.loop.before.rows] for a in (first, second))
    blocks = SequenceMatcher(None, one, other, autojunk=False).get_matching_blocks()
    return sum(block.size for block in blocks)


def _mnemonic(text: str) -> str:
    """Opcode and modifiers; registers are named at the compiler's pleasure."""
    words = text.split()
    return words[1] if words[0].startswith("@") and len(words) > 1 else words[0]


def _opcodes(first: Analysis, second: Analysis) -> dict[str, tuple[int, int]]:
    counts = [Counter(i.opcode for i in a.kernel.listing.instructions) for a in (first, second)]
    names = [name for name in {**counts[0], **counts[1]} if counts[0][name] != counts[1][name]]
    names.sort(key=lambda name: (-abs(counts[1][name] - counts[0][name]), name))
    return {name: (counts[0][name], counts[1][name]) for name in names[:_OPCODES]}


def _rescheduled(first: Analysis, second: Analysis) -> Comparison | None:
    kernel = first.kernel
    try:
        schedule = kernel.schedule_in(second.kernel.cubin)
    except CuasmrlError:
        # Other instructions, or registers: not a schedule of the same code.
        return None
    old, new = (replays_of(kernel.model, s) for s in (kernel.original, schedule))
    return compare_replays(kernel.chip.name, old, new)
