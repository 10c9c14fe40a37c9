"""The commands that make a run again, and look at it further."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from cuasmrl.optimize import BY_HAND
from cuasmrl.optimize.gate import Standard
from cuasmrl.optimize.runs import RunConfig


def command_of(config: RunConfig) -> str:
    """What makes the same run again; of a cubin, from inside its run directory. What was played by hand can
    be opened again, from there as well."""
    if config.agent == BY_HAND:
        return "cuasmrl play --from ."
    return shlex.join(["cuasmrl", "optimize", *_words(config)])


def _words(config: RunConfig) -> Iterator[str]:
    source = config.source
    if "workload" in source:
        yield str(source["workload"])
        yield from ("--config", str(source["config"]))
        for name, size in dict(source["sizes"]).items():
            yield from ("--set", f"{name}={size}")
    else:
        yield from ("original.cubin", "--launch", "launch.json", "--kernel", config.kernel)
    yield from ("--device", config.device, "--agent", config.agent)
    yield from ("--budget", str(config.budget), "--seed", str(config.seed))
    yield from ("--objective", config.objective, "--l2", config.l2)
    if config.scoreboards != "kept":
        yield from ("--scoreboards", config.scoreboards)
    if config.min_gain != Standard.min_gain:
        yield from ("--min-gain", f"{100 * config.min_gain:g}")
    if config.min_faster != Standard.min_faster:
        yield from ("--min-faster", f"{config.min_faster:g}")


def settings_of(config: RunConfig) -> str:
    """Of the agent, in one line."""
    return ", ".join(_settings(config.settings))


def _settings(settings: Mapping[str, Any], of: str = "") -> Iterator[str]:
    for name, value in settings.items():
        if isinstance(value, Mapping):
            yield from _settings(value, f"{of}{name}.")
        else:
            yield f"{of}{name} {value}"
