"""What the campaign found in the kernels of one wheel for one chip."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

from cuasmrl.bench.vendor.examination import Examined

_EXAMPLES = 3
"""Sentences kept of each kind."""


@dataclass(frozen=True)
class Row:
    wheel: str
    arch: int
    effort: str
    """How the row was made, in words."""
    cubins: int
    kernels: int
    """Examined to the end."""
    instructions: int
    """Of these kernels."""
    changed: int
    """Kernels whose cubin, written unchanged, has other bytes."""
    refused: int
    """Kernels that the checker refuses as their own original."""
    unexplained: int
    hazards: dict[str, int]
    """By rule of lint."""
    unknown: dict[str, int]
    """By opcode."""
    moves: int
    schedules: int
    refused_schedules: int
    too_close: int
    """Pairs in these schedules that stand closer than five places in libraries show."""
    slow: list[str]
    failed: list[str]
    too_large: int
    """Kernels of the wheel that were left out for their size."""
    skipped: int
    """Cubins and files of the wheel that could not be read."""
    examples: dict[str, list[str]]
    """First sentences by kind: refused, refused schedule, too close, and the hazards."""
    seconds: float = field(compare=False)

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def key(self) -> tuple[str, int, str]:
        return self.wheel, self.arch, self.effort


def row(
    wheel: str,
    arch: int,
    effort: str,
    examined: dict[str, list[Examined]],
    failed: list[str],
    too_large: int,
    skipped: int,
    seconds: float,
) -> Row:
    """Sums over what was examined, by cubin; `failed` are cubins that could not be listed."""
    pairs = [(cubin, each) for cubin, kernels in examined.items() for each in kernels]
    every = [each for _, each in pairs]
    whole = [each for each in every if each.stage == "done"]
    return Row(
        wheel=wheel,
        arch=arch,
        effort=effort,
        cubins=len(examined),
        kernels=len(whole),
        instructions=sum(each.instructions for each in whole),
        changed=sum(not each.unchanged for each in every),
        refused=sum(bool(each.refused) for each in every),
        unexplained=sum(each.unexplained for each in every),
        hazards=dict(sorted(Counter(h.rule.value for each in every for h in each.hazards).items())),
        unknown=dict(sorted(sum((each.unknown for each in every), Counter[str]()).items())),
        moves=sum(each.moves for each in every),
        schedules=sum(each.schedules for each in every),
        refused_schedules=sum(len(each.refused_schedules) for each in every),
        too_close=sum(len(each.too_close) for each in every),
        slow=[_slow(cubin, each) for cubin, each in pairs if each.slow],
        failed=[
            *failed,
            *(f"{cubin}, kernel {e.kernel}, {e.stage}: {e.failed}" for cubin, e in pairs if e.failed),
        ],
        too_large=too_large,
        skipped=skipped,
        examples=_examples(pairs),
        seconds=round(seconds, 1),
    )


def _slow(cubin: str, each: Examined) -> str:
    return f"{each.instructions} instructions, stopped in {each.stage}: {cubin}, kernel {each.kernel}"


def _examples(pairs: Iterable[tuple[str, Examined]]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for cubin, each in pairs:
        sentences = [("refused", each.refused)] if each.refused else []
        sentences += [("refused schedule", sentence) for sentence in each.refused_schedules]
        sentences += [("too close", f"kernel {each.kernel}: {text}") for text in each.too_close]
        sentences += [(h.rule.value, f"kernel {h.kernel}: {h.sentence}") for h in each.hazards]
        for kind, sentence in sentences:
            kept = found.setdefault(kind, [])
            if len(kept) < _EXAMPLES:
                kept.append(f"{cubin}, {sentence}")
    return found
