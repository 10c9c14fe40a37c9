"""The gate: what is faster and right passes, everything else keeps the original."""

import json
from dataclasses import replace

from cuasmrl import workloads
from cuasmrl.gpu.devices import VirtualTimer
from cuasmrl.gpu.timing.uncertainty import Gain
from cuasmrl.gpu.traced import TracedKernel
from cuasmrl.optimize.gate import (
    Outcome,
    Problems,
    Standard,
    Verdict,
    judge,
    no_improvement,
    problems_of_workload,
)
from cuasmrl.schedule import Schedule
from tests.climbing import CONFIG, NAME, SIZES, faster, kernel

MEMBERS = 4


def problems() -> Problems:
    workload = workloads.get(NAME)
    config = workload.config(CONFIG)
    return problems_of_workload(workload, config, workload.build(config, 80, SIZES), SIZES)


def timer(of: TracedKernel, launch: object = None) -> VirtualTimer:
    return VirtualTimer(of, members=MEMBERS)


def judged(schedule: Schedule) -> Verdict:
    return judge(kernel(), schedule, problems(), timer(kernel()), timer)


def outcomes(verdict: Verdict) -> dict[str, Outcome]:
    return {check.name: check.outcome for check in verdict.checks}


def test_a_faster_schedule_passes() -> None:
    verdict = judged(faster())
    assert verdict.accepted, verdict.lines()
    assert set(outcomes(verdict).values()) == {Outcome.PASSED}
    assert verdict.before is not None
    assert verdict.after is not None
    assert verdict.after < verdict.before
    assert verdict.gain is not None
    assert verdict.gain.median > 0.005
    assert "confirmed gain in modelled cycles: +" in verdict.sentence
    sizes = verdict.checks[-1].sentence
    assert "M=128 N=128 K=128" in sizes
    assert "M=128 N=128 K=384" in sizes
    found = json.loads(json.dumps(verdict.as_dict()))
    assert found["accepted"]
    assert found["certificate"]["certified"]
    assert all(line.split()[0] for line in verdict.lines())


def test_the_original_gains_nothing() -> None:
    verdict = judged(kernel().original)
    assert outcomes(verdict)["gain"] is Outcome.FAILED
    assert outcomes(verdict)["other sizes"] is Outcome.LEFT_OUT
    assert not verdict.accepted
    assert verdict.sentence == "no gain: the original is kept"


def test_a_slower_schedule_keeps_the_original() -> None:
    slow = tuple(replace(c, stall=15, yield_=True, reuse=0) for c in kernel().original.controls)
    verdict = judged(kernel().original.replaced(controls=slow))
    assert not verdict.accepted
    assert verdict.before is not None
    assert verdict.after is not None
    assert verdict.after > verdict.before


def test_a_wrong_schedule_never_reaches_a_device() -> None:
    class Untouched:
        device, unit = "cuda:0", "us"

        def time(self, schedule: Schedule) -> float:
            raise AssertionError

        def confirm(self, old: Schedule, new: Schedule) -> Gain:
            raise AssertionError

    schedule = faster()
    order = list(schedule.order)
    loads = [p for p, i in enumerate(order) if schedule.listing.instructions[i].opcode == "HMMA"]
    order[loads[0]], order[loads[0] - 1] = order[loads[0] - 1], order[loads[0]]
    wrong = schedule.replaced(order=order)
    device = Untouched()
    verdict = judge(kernel(), wrong, problems(), device, lambda of, launch: device)  # type: ignore[arg-type, return-value]
    assert outcomes(verdict)["certificate"] is Outcome.FAILED
    assert outcomes(verdict)["gain"] is Outcome.LEFT_OUT
    assert not verdict.accepted
    assert verdict.certificate is None


def test_a_register_that_is_read_too_early_is_a_hazard() -> None:
    """The emulator knows no time, so nothing but proof and hazards can see it."""
    hasty = tuple(replace(c, stall=max(1, c.stall // 3), yield_=False) for c in kernel().original.controls)
    verdict = judged(kernel().original.replaced(controls=hasty))
    assert outcomes(verdict)["certificate"] is Outcome.FAILED
    assert outcomes(verdict)["results"] is Outcome.PASSED
    assert outcomes(verdict)["hazards"] is Outcome.FAILED
    assert outcomes(verdict)["gain"] is Outcome.LEFT_OUT
    assert not verdict.accepted


def test_a_gain_must_show_at_other_sizes() -> None:
    class Doubtful(VirtualTimer):
        def confirm(self, old: Schedule, new: Schedule) -> Gain:
            return super().confirm(new, old)

    verdict = judge(
        kernel(), faster(), problems(), timer(kernel()), lambda of, launch: Doubtful(of, members=MEMBERS)
    )
    assert outcomes(verdict)["gain"] is Outcome.PASSED
    assert outcomes(verdict)["other sizes"] is Outcome.FAILED
    assert not verdict.accepted


def test_a_coin_flip_is_no_gain() -> None:
    class Flips(VirtualTimer):
        def confirm(self, old: Schedule, new: Schedule) -> Gain:
            members = (0.02, *(0.01,) * 8, *(-0.01,) * 7)
            return Gain(0.02, 0.0041, -0.149, 0.099, 9 / 16, members)

    verdict = judge(kernel(), faster(), problems(), Flips(kernel()), timer)
    gain = next(check for check in verdict.checks if check.name == "gain")
    assert gain.outcome is Outcome.FAILED
    assert "faster on 9 of 16 chips, at least 14 are needed" in gain.sentence
    assert "the median is +0.41 %, at least 0.50 % is needed" in gain.sentence
    assert not verdict.accepted
    lenient = Standard(min_faster=0.5, min_gain=0.004)
    verdict = judge(kernel(), faster(), problems(), Flips(kernel()), timer, standard=lenient)
    assert verdict.accepted
    assert verdict.as_dict()["standard"] == {"min_faster": 0.5, "min_gain": 0.004}


def test_nothing_found() -> None:
    verdict = no_improvement(kernel(), timer(kernel()))
    assert not verdict.accepted
    assert verdict.before == verdict.after
    assert verdict.as_dict()["certificate"] is None


def test_one_size_is_enough_where_no_other_is_known() -> None:
    alone = Problems(problems().main)
    verdict = judge(kernel(), faster(), alone, timer(kernel()), timer)
    assert outcomes(verdict)["other sizes"] is Outcome.LEFT_OUT
    assert verdict.accepted
