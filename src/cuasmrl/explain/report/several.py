"""The page that compares runs: agents, seeds, chips, compilers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

from cuasmrl.errors import CuasmrlError
from cuasmrl.explain.report.codes import CodeDifference, code_difference
from cuasmrl.explain.report.commands import command_of, settings_of
from cuasmrl.explain.report.facts import FORMAT, Facts
from cuasmrl.explain.report.headline import headline
from cuasmrl.explain.report.page import WIDE, both, render
from cuasmrl.explain.report.palette import series_class
from cuasmrl.explain.report.pictures import (
    gain_of,
    gains_chart,
    search_chart,
    search_of,
    stacks_chart,
    stacks_of,
)
from cuasmrl.explain.report.search import floor_of
from cuasmrl.explain.report.stacks import Stack, reasons_in

_MOST_PAIRS = 3
_NOTHING = "\N{EN DASH}"


def comparison_page(runs: Sequence[Facts]) -> str:
    """Two runs or more on one page."""
    if len(runs) < 2:
        raise CuasmrlError("a comparison needs two runs at least")
    named = [replace(facts, name=name) for facts, name in zip(runs, _names(runs), strict=True)]
    pairs = _pairs(named)
    data = {
        "format": FORMAT,
        "runs": [facts.as_dict(brief=True) for facts in named],
        "codes": [{"first": a.name, "second": b.name, **found.as_dict()} for a, b, found in pairs],
    }
    gains = [gain for facts in named if (gain := gain_of(facts))]
    searches = [search for facts in named if (search := search_of(facts))]
    stacks = _stacks(named)
    return render(
        "comparison.html",
        f"{len(named)} runs compared",
        data,
        runs=[(facts, headline(facts), series_class(k)) for k, facts in enumerate(named)],
        gains=both(lambda w: gains_chart(gains, w)) if gains else None,
        search=both(lambda w: search_chart(searches, w, 340 if w == WIDE else 300)) if searches else None,
        search_floor=floor_of(searches) if searches else None,
        stacks=both(lambda w: stacks_chart(stacks, w)) if stacks else None,
        reasons=reasons_in(stacks),
        differences=differences(named),
        pairs=pairs,
        rules=rules_by_run(named),
        commands=[(facts.name, command_of(facts.config)) for facts in named if facts.config],
    )


def _names(runs: Sequence[Facts]) -> list[str]:
    """Of the directories; those that occur twice are numbered."""
    names = [facts.name for facts in runs]
    return [name if names.count(name) == 1 else f"{name} ({k})" for k, name in enumerate(names, 1)]


def _pairs(runs: Sequence[Facts]) -> list[tuple[Facts, Facts, CodeDifference]]:
    """Runs of one kernel from different code; of many only the first few pairs."""
    found = ((a, b, code_difference(a, b)) for a, b in combinations(runs, 2))
    return [(a, b, code) for a, b, code in found if code is not None][:_MOST_PAIRS]


def _stacks(runs: Sequence[Facts]) -> list[Stack]:
    """What runs have in common, the original, once."""
    found: list[Stack] = []
    seen: set[tuple[str, str, str, str]] = set()
    for facts in runs:
        before, *after = stacks_of(facts) or (None,)
        if before is None or facts.config is None:
            continue
        config = facts.config
        key = config.cubin, config.problem, config.device, config.l2
        if key not in seen:
            many = any((c.cubin, c.problem, c.device, c.l2) != key for other in runs if (c := other.config))
            found.append(replace(before, name=f"{facts.name}, as compiled" if many else "as compiled"))
        seen.add(key)
        found += [replace(stack, name=facts.name) for stack in after]
    return found


def differences(runs: Sequence[Facts]) -> list[tuple[str, list[str]]]:
    """What runs were asked for, and by what: the rows that are not the same in all of them."""
    rows = [_row(facts) for facts in runs]
    names = dict.fromkeys(name for row in rows for name in row)
    table = [(name, [row.get(name, _NOTHING) for row in rows]) for name in names]
    return [(name, values) for name, values in table if len(set(values)) > 1]


def _row(facts: Facts) -> dict[str, str]:
    if facts.config is None:
        return {}
    config = facts.config
    row = {
        "kernel": config.kernel,
        "config": str(config.source.get("config", _NOTHING)),
        "problem": config.problem,
        "cubin": config.cubin[:12],
        "device": config.device,
        "L2": config.l2,
        "objective": config.objective,
        "agent": config.agent,
        "seed": str(config.seed),
        "budget": f"{config.budget:,}",
        "scoreboards": config.scoreboards,
        "settings": settings_of(config),
        **{f"{name} (version)": version for name, version in config.versions.items()},
    }
    if facts.analysis is not None:
        row["written by"] = facts.analysis.subject.tool or _NOTHING
        row["instructions"] = f"{facts.analysis.subject.instructions:,}"
    return row


def rules_by_run(runs: Sequence[Facts]) -> list[tuple[str, list[str | None]]]:
    """Where the data says what each pattern saves in each run; those that most runs share first."""
    places: dict[str, list[str | None]] = {}
    saved: dict[str, list[float]] = {}
    for k, facts in enumerate(runs):
        for n, rule in enumerate((facts.explanation or {}).get("rules", ())):
            name = _pattern(rule)
            places.setdefault(name, [None] * len(runs))[k] = f"/runs/{k}/explanation/rules/{n}/saved"
            saved.setdefault(name, []).append(float(rule["saved"]))
    order = sorted(places, key=lambda name: (-len(saved[name]), -sum(saved[name]), name))
    return [(name, places[name]) for name in order]


def _pattern(rule: Mapping[str, Any]) -> str:
    return f"{rule['pattern']['what']}, {rule['pattern']['where']}"
