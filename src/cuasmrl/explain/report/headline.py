"""What came of a run, in one sentence: the first thing a report says."""

from __future__ import annotations

from dataclasses import dataclass

from cuasmrl.explain.report.axes import percent
from cuasmrl.explain.report.facts import Facts
from cuasmrl.explain.report.judgement import Judgement


@dataclass(frozen=True)
class Headline:
    kind: str
    """`confirmed`, `refused`, `unfinished` or `damaged`."""
    title: str
    sentence: str


def headline(facts: Facts) -> Headline:
    if facts.config is None:
        return Headline("damaged", "This run cannot be read", f"{facts.problems[0]}.")
    if facts.judgement is not None:
        return _judged(facts.judgement)
    if any("verdict.json" in problem for problem in facts.problems):
        return Headline(
            "damaged", "This run is damaged", "Its verdict cannot be read, so nothing is confirmed."
        )
    return _unfinished(facts)


def _judged(judged: Judgement) -> Headline:
    if judged.accepted and judged.gain is not None:
        title = f"{percent(judged.gain['median'])} faster, confirmed"
        return Headline("confirmed", title, f"{_capital(judged.sentence)}. No check of the gate failed.")
    failed = "; ".join(f"{check.name}: {check.sentence}" for check in judged.failed)
    return Headline("refused", "No gain: the original is kept", f"{_capital(failed or judged.sentence)}.")


def _unfinished(facts: Facts) -> Headline:
    assert facts.config is not None
    played = facts.curve.evaluations if facts.curve else 0
    title = f"Not finished: {played:,} of {facts.config.budget:,} evaluations"
    if facts.curve is None or not facts.curve.final:
        return Headline("unfinished", title, "Nothing faster than the original has been found so far.")
    best = percent(facts.curve.final)
    return Headline("unfinished", title, f"The best so far is {best} in the search. Nothing is confirmed.")


def _capital(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]
