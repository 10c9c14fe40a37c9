"""Explanations and rules as text."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from cuasmrl.explain.moves.excerpts import Line
from cuasmrl.explain.moves.explain import ExplainedMove, Explanation
from cuasmrl.explain.moves.rules import Rule

_NAMES = {
    "Relocate": ("instruction", "moved"),
    "Replace": ("block", "rearranged as a whole"),
    "Retime": ("block", "retimed"),
    "SetReuse": ("edit", "of reuse flags"),
    "SetStall": ("edit", "of stall counts"),
    "SetYield": ("edit", "of yield hints"),
}
_REASONS = 3
_SMALL = 0.05
"""Reasons that change by less than this share of the largest are not shown."""
_LEAST = 0.05
"""Percent of a kernel's time that a rule has to make a difference of to be told."""


def print_explanation(console: Console, found: Explanation, in_full: bool = True) -> None:
    """Step by step, or only what came of it."""
    for line in story(found) if in_full else _head(found):
        console.print(line, markup=False)


def print_rules(console: Console, rules: Sequence[Rule], runs: int) -> None:
    for line in lesson(rules, runs):
        console.print(line, markup=False)


def story(found: Explanation) -> list[str]:
    """The lines of one explanation."""
    lines = _head(found)
    for number, move in enumerate(found.moves, 1):
        lines += ["", *_move(number, move)]
    if found.moves:
        lines += ["", f"in sum {found.saved:,.1f} {found.unit} saved"]
    return lines


def lesson(rules: Sequence[Rule], runs: int) -> list[str]:
    """The lines of a summary; percents are of the time of a kernel."""
    shown = [rule for rule in rules if abs(rule.saved) >= _LEAST]
    lines = [f"what {'the run has' if runs == 1 else f'{runs} runs have'} learned"]
    lines += [f"  {rule.text}" for rule in shown] or ["  nothing that is faster"]
    if len(shown) < len(rules):
        lines.append(f"  and {len(rules) - len(shown)} more that matter less than {_LEAST} %")
    return lines


def _head(found: Explanation) -> list[str]:
    changes = ", ".join(_counted(name, count) for name, count in found.changes) or "nothing changed"
    share = 100 * (found.original / found.minimal - 1)
    gain = found.gain
    lines = [
        f"{found.kernel} {found.config} on {found.device}, {found.unit}",
        f"original {found.original:,.1f}, winner {found.winner:,.1f}: {changes}",
    ]
    if not found.moves:
        return [*lines, "under other seeds it is not faster beyond the noise: there is nothing to explain"]
    lines += [
        f"{_steps(len(found.moves))} it: {found.minimal:,.1f} ({share:+.2f} %), "
        f"within {found.tolerance:.1f} of the winner ({found.tried} selections tried)",
        f"confirmed: {100 * gain.nominal:+.2f} %, over the ranges of the chip's numbers "
        f"{100 * gain.median:+.2f} % ({100 * gain.low:+.2f} to {100 * gain.high:+.2f} %)",
    ]
    if found.replaced:
        blocks = "one block" if found.replaced == 1 else f"{found.replaced} blocks"
        lines.append(f"{blocks} could not be taken apart into single legal moves")
    return lines


def _steps(count: int) -> str:
    return "one step does" if count == 1 else f"{count} steps do"


def _counted(name: str, count: int) -> str:
    noun, participle = _NAMES[name]
    return f"{count} {noun}{'s' if count > 1 else ''} {participle}"


def _move(number: int, move: ExplainedMove) -> list[str]:
    lines = [f"{number}. {move.deed}"]
    here = f"{'saves' if move.in_order >= 0 else 'costs'} {abs(move.in_order):,.1f} here"
    parts = [here, f"{move.share:,.1f} in the mean over orders"]
    parts.append("not legal alone" if move.alone is None else f"{move.alone:,.1f} alone")
    if move.without is not None:
        needed = f" (with {move.needed_by} that need it)" if move.needed_by else ""
        parts.append(f"{move.without:,.1f} lost without it{needed}")
    lines.append(f"   {', '.join(parts)}")
    if move.reasons:
        largest = abs(move.reasons[0].change)
        shown = [reason for reason in move.reasons[:_REASONS] if abs(reason.change) >= _SMALL * largest]
        lines.append("   " + ", ".join(f"{reason.reason} {reason.change:+,.1f}" for reason in shown))
    lines += [f"   {sentence}" for sentence in move.effects]
    if move.in_order <= 0 and move.share > 0:
        lines.append("   it gains by what comes with other steps")
    return lines + [f"     {_line(line)}" for line in move.lines]


def _line(line: Line | None) -> str:
    if line is None:
        return "  ..."
    return f"{line.mark} {line.address:04x}  {line.control}  {line.text}"
