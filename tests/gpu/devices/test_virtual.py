"""The virtual GPU as a timer."""

from statistics import mean, stdev

from cuasmrl.gpu.devices import VirtualTimer
from cuasmrl.gpu.devices.virtual import PICKING_SEEDS, SEARCH_SEEDS, UNSEEN_SEEDS
from cuasmrl.gpu.timing import Reason
from cuasmrl.gpu.timing.uncertainty import compare, draw, measure
from tests.traced_kernels import rescheduled, traced


def test_a_timer_gives_the_mean_over_its_seeds() -> None:
    kernel = traced("softmax")
    single = [VirtualTimer(kernel, seeds=(seed,)).time(kernel.original) for seed in (1, 2)]
    assert VirtualTimer(kernel, seeds=(1, 2)).time(kernel.original) == sum(single) / 2


def test_enough_iterations_are_the_whole_kernel() -> None:
    kernel = traced("gemm_leaky_relu")
    whole = VirtualTimer(kernel, iterations=1000, seeds=(0,)).time(kernel.original)
    assert whole == kernel.model.simulate(kernel.original, 0, kernel.model.resident).cycles
    assert VirtualTimer(kernel, iterations=2, seeds=(0,)).time(kernel.original) < whole


def test_a_profile_accounts_for_every_cycle_of_the_warps() -> None:
    kernel = traced("gemm_leaky_relu")
    timer = VirtualTimer(kernel, seeds=(1,))
    schedule = rescheduled("gemm_leaky_relu")
    profile = timer.profile(schedule)
    replay = timer.part.simulate(schedule, 1, timer.part.resident)
    assert profile.executions.sum() == replay.instructions
    assert profile.executions.sum() + profile.waits.sum() == replay.warp_reasons.sum()
    assert not profile.waits[:, Reason.ISSUED].any()


def test_a_schedule_gains_nothing_over_itself() -> None:
    kernel = traced("softmax")
    gain = VirtualTimer(kernel, members=3).confirm(kernel.original, kernel.original)
    assert gain.members == (0.0, 0.0, 0.0)
    assert gain.share_above_zero == 0


def test_the_pick_is_the_one_that_gains_most_where_the_search_has_not_looked() -> None:
    kernel = traced("gemm_leaky_relu")
    timer = VirtualTimer(kernel)
    candidates = [rescheduled("gemm_leaky_relu", seed=seed) for seed in range(3)]
    assert timer.pick(kernel.original, candidates[:1]) is candidates[0]
    members = draw(kernel.model.parameters, 5, seed=1)
    gains = [
        compare(kernel.model, kernel.original, schedule, PICKING_SEEDS, members) for schedule in candidates
    ]
    best = max(zip(gains, candidates, strict=True), key=lambda pair: pair[0].nominal + pair[0].median)
    assert timer.pick(kernel.original, candidates) is best[1]


def test_of_many_the_fastest_come_to_the_ensemble() -> None:
    kernel = traced("softmax")
    timer = VirtualTimer(kernel)
    candidates = [rescheduled("softmax", seed=seed) for seed in range(30)]
    times = [measure(kernel.model, schedule, PICKING_SEEDS, timer._blocks).value for schedule in candidates]
    short = [schedule for _, schedule in sorted(zip(times, candidates, strict=True), key=lambda p: p[0])[:12]]
    assert timer.pick(kernel.original, candidates) is timer.pick(kernel.original, short)


def test_nobody_sees_the_seeds_of_another() -> None:
    assert not set(PICKING_SEEDS) & {*SEARCH_SEEDS, *UNSEEN_SEEDS}


def test_a_timer_takes_as_many_seeds_as_the_kernel_needs() -> None:
    kernel = traced("gemm_leaky_relu")
    chosen = VirtualTimer(kernel).seeds
    assert chosen == VirtualTimer(kernel).seeds
    assert 2 <= len(chosen) <= len(SEARCH_SEEDS)
    times = [VirtualTimer(kernel, seeds=(seed,)).time(kernel.original) for seed in SEARCH_SEEDS]
    if len(chosen) < len(SEARCH_SEEDS):
        assert stdev(times) / mean(times) / len(chosen) ** 0.5 <= 0.003
