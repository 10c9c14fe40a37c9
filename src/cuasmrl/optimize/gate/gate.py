"""The gate: proof, execution, hazards, and a gain that holds where no search has looked."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

from cuasmrl.binary.cubin import Cubin
from cuasmrl.checker import Certificate, Checker, Refusal
from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.devices import Timer
from cuasmrl.gpu.devices.objective import UNSEEN_SEEDS
from cuasmrl.gpu.emulator import Emulator
from cuasmrl.gpu.launches.launch import Launch
from cuasmrl.gpu.timing import trace_share
from cuasmrl.gpu.timing.memory_system import L2
from cuasmrl.gpu.timing.uncertainty import Gain, measure
from cuasmrl.gpu.traced import LaunchedKernel, TracedKernel, UntracedKernel
from cuasmrl.optimize.gate.hazards import SEEDS, new_hazards
from cuasmrl.optimize.gate.on_device import FRESH_SEEDS, SEEDS_OF_MAIN, results_on_device
from cuasmrl.optimize.gate.problems import TRACED_SEED, Problem, Problems
from cuasmrl.optimize.gate.results import compare_results
from cuasmrl.optimize.gate.standard import Standard
from cuasmrl.optimize.gate.verdict import Check, Outcome, Verdict, in_words
from cuasmrl.schedule import Schedule

OpenTimer: TypeAlias = Callable[[Any, Callable[[], Launch]], Timer]
"""Gives the timer of a kernel, traced or not; the launch it was traced with can be made again."""

_UNTRACED = 2
"""Other sizes of a kernel of which nobody can say how much they have to do."""
_FASTER = Standard(min_faster=0, min_gain=0)
"""At other sizes a gain need not be large."""


def judge(
    kernel: TracedKernel | UntracedKernel,
    schedule: Schedule,
    problems: Problems,
    timer: Timer,
    open_timer: OpenTimer,
    stage: Callable[[str], None] = lambda what: None,
    standard: Standard | None = None,
) -> Verdict:
    """Judge a schedule; `timer` is that of the main problem, `open_timer` gives those of others."""
    standard = standard or Standard()
    candidate = schedule.apply(kernel.cubin)
    stage("proving the schedule")
    certificate, proof = _prove(kernel.cubin, candidate)
    stage("comparing results")
    if isinstance(kernel, UntracedKernel):
        checks = [proof, results_on_device(kernel, schedule, problems, open_timer, certificate is not None)]
        checks.append(Check("hazards", Outcome.LEFT_OUT, f"nothing can replay it: {kernel.refusal}"))
    else:
        checks = [proof, _results(kernel, candidate, problems)]
        stage("looking for hazards")
        checks.append(_hazards(kernel, schedule))
    gain: Gain | None = None
    if any(check.outcome is Outcome.FAILED for check in checks):
        # What is not known to be right must not reach a device.
        checks.append(Check("gain", Outcome.LEFT_OUT, "the schedule is not known to be right"))
    else:
        stage("confirming the gain")
        gain = timer.confirm(kernel.original, schedule)
        checks.append(_gain_check("gain", [("", gain)], standard))
    if gain is not None and not standard.missed(gain):
        stage("confirming the gain at other sizes")
        checks.append(_other_sizes(kernel, schedule, problems, open_timer))
    else:
        checks.append(Check("other sizes", Outcome.LEFT_OUT, "there is no gain to confirm"))
    verdict = _verdict(kernel, schedule, timer, tuple(checks), gain, certificate)
    return replace(verdict, standard=standard)


def no_improvement(kernel: LaunchedKernel, timer: Timer) -> Verdict:
    """When nothing faster than the original was found there is nothing to judge."""
    check = Check("gain", Outcome.FAILED, "no schedule was faster than the original")
    return _verdict(kernel, kernel.original, timer, (check,), None, None)


def _verdict(
    kernel: LaunchedKernel,
    schedule: Schedule,
    timer: Timer,
    checks: tuple[Check, ...],
    gain: Gain | None,
    certificate: Certificate | None,
) -> Verdict:
    before = after = None
    if isinstance(kernel, TracedKernel):
        before = measure(kernel.model, kernel.original, UNSEEN_SEEDS).value
        after = measure(kernel.model, schedule, UNSEEN_SEEDS).value
    return Verdict(
        kernel.listing.kernel.name,
        timer.device,
        timer.unit,
        schedule.key.hex(),
        checks,
        before,
        after,
        gain,
        certificate,
    )


def _prove(original: Cubin, candidate: Cubin) -> tuple[Certificate | None, Check]:
    name = "certificate"
    try:
        certificate = Checker(original).check(candidate)
    except Refusal as refusal:
        return None, Check(name, Outcome.FAILED, str(refusal))
    facts = sum(sum(proved.values()) for proved in certificate.proved.values())
    return certificate, Check(name, Outcome.PASSED, f"as safe as the original, {facts:,} facts proved")


def _results(kernel: TracedKernel, candidate: Cubin, problems: Problems) -> Check:
    name = kernel.listing.kernel.name
    old = _emulator(kernel)
    # Read back from its bytes: what is delivered is what is executed.
    new = Emulator(Cubin.parse(candidate.data, "the candidate"), name, kernel.chip)
    rounds = [problems.main] * SEEDS_OF_MAIN + list(problems.shapes)
    found = [compare_results(old, new, p, seed) for p, seed in zip(rounds, FRESH_SEEDS, strict=False)]
    for one in found:
        if one.difference is not None:
            return Check("results", Outcome.FAILED, f"{one.problem}: {one.difference}")
    if found[0].refused:
        return Check("results", Outcome.FAILED, f"the original itself fails: {found[0].refused}")
    run = [one for one in found if one.refused is None]
    sentence = (
        f"bit by bit those of the original on {len(run)} fresh inputs, {sum(one.blocks for one in run)} "
        f"blocks, {sum(one.bytes for one in run):,} bytes ({_named(one.problem for one in run)})"
    )
    return Check("results", Outcome.PASSED, sentence)


def _hazards(kernel: TracedKernel, schedule: Schedule) -> Check:
    found = new_hazards(kernel.model, kernel.original, schedule)
    if found:
        more = f" ({len(found)} pairs in all)" if len(found) > 1 else ""
        return Check("hazards", Outcome.FAILED, f"{found[0]}{more}")
    return Check("hazards", Outcome.PASSED, f"none in {len(SEEDS)} replays of all warps of an SM")


def _named(problems: Iterable[str]) -> str:
    return "; ".join(dict.fromkeys(problems))


def _other_sizes(
    kernel: TracedKernel | UntracedKernel,
    schedule: Schedule,
    problems: Problems,
    open_timer: OpenTimer,
) -> Check:
    is_traced = isinstance(kernel, TracedKernel)
    chosen = _other_lengths(_emulator(kernel), problems) if is_traced else list(problems.lengths[:_UNTRACED])
    if not chosen:
        return Check("other sizes", Outcome.LEFT_OUT, "this cubin is known to run one size only")
    gains = []
    for problem in chosen:
        again = (
            _traced_again(kernel, problem)
            if isinstance(kernel, TracedKernel)
            else replace(kernel, sizes=problem.sizes)
        )
        timer = open_timer(again, partial(problem.launch, TRACED_SEED))
        gains.append((problem.name, timer.confirm(kernel.original, schedule)))
    return _gain_check("other sizes", gains, _FASTER)


def _other_lengths(emulator: Emulator, problems: Problems) -> list[Problem]:
    """One that a block has less to do for, and one with more; of equal work, if there are no others."""
    own = _work(emulator, problems.main)
    first: dict[int, Problem] = {}
    for problem in problems.lengths:
        work = _work(emulator, problem)
        if work:
            first.setdefault((work > own) - (work < own), problem)
        if {-1, 1} <= first.keys():
            break
    return [first[sign] for sign in (-1, 1) if sign in first] or list(first.values())


def _work(emulator: Emulator, problem: Problem) -> int:
    """Instructions of the last block, which in triangular problems has most to do; 0 if it cannot run."""
    launch = problem.launch(TRACED_SEED)
    try:
        return emulator.run(launch, [launch.blocks - 1]).warp_instructions
    except CuasmrlError:
        return 0


def _traced_again(kernel: TracedKernel, problem: Problem) -> TracedKernel:
    trace = trace_share(problem.launch(TRACED_SEED), _emulator(kernel))
    # Another size may be larger than L2.
    l2 = L2.AGAIN if kernel.l2 is L2.WARM else kernel.l2
    return replace(kernel, sizes=problem.sizes, trace=trace, l2=l2)


def _emulator(kernel: LaunchedKernel) -> Emulator:
    return Emulator(kernel.cubin, kernel.listing.kernel.name, kernel.chip, kernel.listing)


def _gain_check(name: str, gains: list[tuple[str, Gain]], standard: Standard) -> Check:
    words, passed = [], True
    for size, gain in gains:
        missed = standard.missed(gain)
        passed &= not missed
        said = in_words(gain) + (f" (not enough: {'; '.join(missed)})" if missed else "")
        words.append(f"{size}: {said}" if size else said)
    return Check(name, Outcome.PASSED if passed else Outcome.FAILED, "; ".join(words))
