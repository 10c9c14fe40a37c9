"""Results of a kernel that only a GPU can run: fresh inputs, launched and compared there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.devices import CandidateError, Timer
from cuasmrl.gpu.launches.launch import Launch
from cuasmrl.gpu.traced import UntracedKernel
from cuasmrl.optimize.gate.problems import Problems
from cuasmrl.optimize.gate.verdict import Check, Outcome
from cuasmrl.schedule import Schedule

FRESH_SEEDS = range(1001, 1100)
"""Of inputs: tracing and everything before the gate uses others."""
SEEDS_OF_MAIN = 2
_NAME = "results"


def results_on_device(
    kernel: UntracedKernel,
    schedule: Schedule,
    problems: Problems,
    open_timer: Callable[[UntracedKernel, Callable[[], Launch]], Timer],
    is_proved: bool,
) -> Check:
    """A device compares a schedule's outputs with the original's before it times it."""
    if not is_proved:
        return Check(_NAME, Outcome.LEFT_OUT, "what is not proved must not reach a device")
    rounds = [problems.main] * SEEDS_OF_MAIN + list(problems.shapes)
    done, refused = [], ""
    for problem, seed in zip(rounds, FRESH_SEEDS, strict=False):
        try:
            timer = open_timer(replace(kernel, sizes=problem.sizes), partial(problem.launch, seed))
            timer.time(schedule)
        except CandidateError as error:
            return Check(_NAME, Outcome.FAILED, f"{problem.name}: {error}")
        except CuasmrlError as error:
            # The original itself does not run this.
            refused = refused or f"{problem.name}: {error}"
            continue
        done.append(problem.name)
    if not done:
        return Check(_NAME, Outcome.FAILED, f"the original itself fails: {refused}")
    names = "; ".join(dict.fromkeys(done))
    return Check(
        _NAME, Outcome.PASSED, f"those of the original on {len(done)} fresh inputs on the GPU ({names})"
    )
