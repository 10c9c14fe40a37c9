"""Explanations and rules as text."""

from __future__ import annotations

import textwrap
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
"""Percent of a kernel's time that a rule or a move has to make a difference of to be told."""
_MOST = 5
"""Rules and moves of a summary."""


def print_explanation(console: Console, found: Explanation, in_full: bool = True) -> None:
    """Move by move, or only what came of it."""
    print_lines(console, story(found) if in_full else _head(found))


def print_rules(console: Console, rules: Sequence[Rule], runs: int) -> None:
    print_lines(console, lesson(rules, runs))


def print_summary(console: Console, found: Explanation, rules: Sequence[Rule]) -> None:
    """What came of it, and of rules and moves those that matter most."""
    print_lines(console, summary(found, rules))


def print_lines(console: Console, lines: Sequence[str]) -> None:
    """A terminal gets no line that is longer than itself."""
    for line in lines:
        for part in _folded(line, console.width) if console.is_terminal else [line]:
            console.print(part, markup=False)


def _folded(line: str, width: int) -> list[str]:
    indent = len(line) - len(line.lstrip())
    return textwrap.wrap(line, width, subsequent_indent=" " * (indent + 3)) or [""]


def summary(found: Explanation, rules: Sequence[Rule]) -> list[str]:
    lines = _head(found)
    if not found.moves:
        return lines
    lines += ["", *lesson(rules, 1, _MOST), "", "the moves that matter most"]
    telling = [pair for pair in enumerate(found.moves, 1) if pair[1].share >= _least(found)]
    shown = sorted(telling, key=lambda pair: -pair[1].share)[:_MOST]
    for number, move in shown:
        lines += [f"  {number}. {move.deed}", f"     {_saving(move, found)}", *_opinion(move, "     ")]
    more = len(found.moves) - len(shown)
    rest = f"and {more} more {_moves(more)}; " if more else ""
    return [*lines, "", f"{rest}--all shows every move with its lines of SASS"]


def story(found: Explanation) -> list[str]:
    """The lines of one explanation in full."""
    lines = _head(found)
    for number, move in enumerate(found.moves, 1):
        if not _is_idle(move, found):
            lines += ["", *_move(number, move)]
    idle = sum(_is_idle(move, found) for move in found.moves)
    if idle == 1:
        lines += ["", "1 move saves nothing by itself, but others need it"]
    elif idle:
        lines += ["", f"{idle} moves save nothing by themselves, but others need them"]
    if found.moves:
        lines += ["", f"in sum {found.saved:,.1f} {found.unit} saved"]
    return lines


def lesson(rules: Sequence[Rule], runs: int, most: int | None = None) -> list[str]:
    """The lines about rules; percents are of the time of a kernel."""
    telling = [rule for rule in rules if abs(rule.saved) >= _LEAST]
    shown = telling[:most]
    lines = [f"what {'the run has' if runs == 1 else f'{runs} runs have'} learned"]
    lines += [f"  {rule.text}" for rule in shown] or ["  nothing that is faster"]
    if len(shown) < len(telling):
        lines.append(f"  and {len(telling) - len(shown)} more; --all shows them")
    elif len(shown) < len(rules):
        lines.append(f"  and {len(rules) - len(shown)} more that matter less than {_LEAST} %")
    return lines


def _head(found: Explanation) -> list[str]:
    changes = ", ".join(_counted(name, count) for name, count in found.changes) or "nothing changed"
    share = 100 * (found.original / found.minimal - 1)
    count = len(found.moves)
    verb, whom = ("does", "it") if count == 1 else ("do", "them")
    gain = found.gain
    lines = [
        f"{found.kernel} {found.config} on {found.device}, {found.unit}",
        f"original {found.original:,.1f}, winner {found.winner:,.1f}: {changes}",
    ]
    if not found.moves:
        return [*lines, "under other seeds it is not faster beyond the noise: there is nothing to explain"]
    lines += [
        f"{count} {_moves(count)} {verb} it: {found.minimal:,.1f} ({share:+.2f} %), "
        f"within {found.tolerance:.1f} of the winner ({found.tried} selections tried)",
        f"confirmed for {whom}: {100 * gain.median:+.2f} % over the ranges of the chip's numbers "
        f"({100 * gain.low:+.2f} to {100 * gain.high:+.2f} %); nominal chip {100 * gain.nominal:+.2f} %",
    ]
    if found.replaced:
        blocks = "one block" if found.replaced == 1 else f"{found.replaced} blocks"
        lines.append(f"{blocks} could not be taken apart into single legal moves")
    return lines


def _moves(count: int) -> str:
    return "move" if count == 1 else "moves"


def _least(found: Explanation) -> float:
    return _LEAST / 100 * found.original


def _is_idle(move: ExplainedMove, found: Explanation) -> bool:
    """Whether it only helps others: it saves nothing at its place, nor in the mean over orders, nor alone."""
    return all(abs(saved) < _least(found) for saved in (move.in_order, move.share, move.alone or 0.0))


def _saving(move: ExplainedMove, found: Explanation) -> str:
    """What a move saves in the mean over orders, and the reason to wait that shrinks most where it stands."""
    text = f"saves {move.share:,.1f} {found.unit}, {100 * move.share / found.saved:.0f} % of the gain"
    least = min(move.reasons, key=lambda reason: (reason.change, reason.reason), default=None)
    return text if least is None or least.change >= 0 else f"{text} (less {least.reason})"


def _opinion(move: ExplainedMove, indent: str) -> list[str]:
    if move.policy is None:
        return []
    known = "the policy, which has seen other kernels only,"
    return [f"{indent}{known} ranks it above {100 * move.policy:.0f} % of the moves from there"]


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
    lines += _opinion(move, "   ")
    lines += [f"   {sentence}" for sentence in move.effects]
    if move.in_order <= 0 and move.share > 0:
        lines.append("   it gains by what comes with other steps")
    return lines + [f"     {_line(line)}" for line in move.lines]


def _line(line: Line | None) -> str:
    if line is None:
        return "  ..."
    return f"{line.mark} {line.address:04x}  {line.control}  {line.text}"
