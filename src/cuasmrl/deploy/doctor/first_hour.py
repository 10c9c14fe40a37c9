"""The first hour with a real GPU: everything that play on it needs, from the driver to a gain of nothing.

What follows from a failed check is not tried.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import numpy as np

from cuasmrl import workloads
from cuasmrl.deploy.doctor.findings import Finding, Level
from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.chips import Chip, chip_of_arch
from cuasmrl.gpu.devices.cuda import CudaTimer, find
from cuasmrl.gpu.devices.driver import Gpu
from cuasmrl.gpu.devices.loading import load
from cuasmrl.gpu.devices.monitor import Conditions
from cuasmrl.gpu.devices.rounds import MeasuredGain
from cuasmrl.gpu.devices.worker import Connect
from cuasmrl.gpu.timing.uncertainty import measure
from cuasmrl.gpu.traced import TracedKernel
from cuasmrl.schedule import Board, Schedule
from cuasmrl.workloads.tracing import trace_workload

TOPIC = "first hour"
_WORKLOAD, _SIZES = "vector_add", {"n": 1 << 17}
_EXTRA = "pip install 'cuasmrl[gpu]'"
_MOVES = 20
_SEEDS = (1, 2, 3)


def examine(ordinal: int, connect: Connect = load, lock_clocks: bool = False) -> Iterator[Finding]:
    """Findings as each check is done; it ends with the first that the others need."""
    try:
        gpu = find(ordinal, connect)
        chip = chip_of_arch(gpu.arch)
    except CuasmrlError as error:
        yield Finding(TOPIC, f"cuda:{ordinal}", Level.ACTION, str(error))
        return
    yield _gpu(gpu, chip)
    yield from _instruments(gpu, connect, lock_clocks)
    try:
        workload = workloads.get(_WORKLOAD)
        kernel = trace_workload(workload, workload.configs[0], chip, _SIZES)
    except CuasmrlError as error:
        yield Finding(TOPIC, "kernel", Level.ACTION, str(error), "pip install 'cuasmrl[triton]'")
        return
    try:
        yield from _played(kernel, ordinal, connect)
    except CuasmrlError as error:
        yield Finding(
            TOPIC, "launches", Level.ACTION, str(error), "look at nvidia-smi, and keep others off the GPU"
        )


def _gpu(gpu: Gpu, chip: Chip) -> Finding:
    major, minor = divmod(gpu.driver_version // 10, 100)
    text = f"{gpu.name}, sm_{gpu.arch}, {gpu.sm_count} SMs, driver for CUDA {major}.{minor}"
    if chip.name == gpu.name:
        return Finding(TOPIC, f"cuda:{gpu.ordinal}", Level.OK, f"{text}; the model knows it as {chip.key}")
    return Finding(
        TOPIC, f"cuda:{gpu.ordinal}", Level.NOTE,
        f"{text}; {chip.key} stands for it in the model ({chip.sm_count} SMs)",
        "measured times are right all the same; only what the model says is that of the other chip",
    )  # fmt: skip


def _instruments(gpu: Gpu, connect: Connect, lock_clocks: bool) -> Iterator[Finding]:
    driver = connect()
    monitor = driver.monitor(gpu)
    if monitor is None:
        yield Finding(
            TOPIC, "clocks", Level.NOTE, "nobody can be asked for them, so throttling goes unnoticed",
            f"{_EXTRA}, which has nvidia-ml-py",
        )  # fmt: skip
    else:
        if lock_clocks:
            try:
                text = f"locked at {monitor.lock()} MHz"
                yield Finding(TOPIC, "locked", Level.OK, text, "nvidia-smi -rgc, as root, lets them go again")
            except CuasmrlError as error:
                yield Finding(TOPIC, "locked", Level.ACTION, str(error))
        reading = monitor.read()
        conditions = Conditions.of([reading])
        assert conditions is not None
        slow = f"; slowed down: {', '.join(reading.throttle)}" if reading.throttle else ""
        level = Level.ACTION if reading.throttle else Level.OK
        yield Finding(TOPIC, "clocks", level, f"{conditions.sentence}{slow}, without load")


def _played(kernel: TracedKernel, ordinal: int, connect: Connect) -> Iterator[Finding]:
    workload = workloads.get(kernel.name)
    config = workload.config(kernel.config)
    built, inputs = workload.build(config, kernel.chip.arch, kernel.sizes), workload.inputs(kernel.sizes)
    launch = workload.launch(built, inputs, kernel.sizes)
    timer = CudaTimer(kernel, ordinal, launch, connect)
    try:
        yield _instrument(timer)
        expected = workload.reference(inputs, kernel.sizes)
        for number, content in timer.outputs().items():
            buffer = launch.arguments[number]
            assert isinstance(buffer, np.ndarray)
            np.copyto(buffer, content.view(buffer.dtype).reshape(buffer.shape))
        wrong = [what for name, one in expected.items() if (what := one.failure(np.asarray(inputs[name])))]
        yield _results(wrong)
        if wrong:
            return
        yield _steady(timer)
        gain = timer.confirm(kernel.original, kernel.original)
        yield _equal(gain)
        yield _times(timer, kernel, gain)
        yield _candidate(timer, kernel)
    finally:
        timer.close()
    yield Finding(
        TOPIC, "next", Level.NOTE, "everything that play needs has been tried",
        f"cuasmrl optimize gemm_leaky_relu --device cuda:{ordinal}; and for the model "
        f"cuasmrl bench timing --device cuda:{ordinal} --calibration my-gpu.json",
    )  # fmt: skip


def _instrument(timer: CudaTimer) -> Finding:
    if timer.ready.by_activity:
        return Finding(TOPIC, "timing", Level.OK, "CUPTI gives the GPU's own record of every kernel")
    return Finding(
        TOPIC, "timing", Level.NOTE, "by events, which hold the cost of starting a kernel too",
        f"{_EXTRA}, which has cupti-python; if it is there, end other profilers and see "
        "NVreg_RestrictProfilingToAdminUsers of the driver",
    )  # fmt: skip


def _results(wrong: list[str]) -> Finding:
    if wrong:
        return Finding(
            TOPIC, "results", Level.ACTION, f"{_WORKLOAD} does not compute its reference: {'; '.join(wrong)}",
            "play nothing on this GPU, and report this with the output of nvidia-smi",
        )  # fmt: skip
    return Finding(TOPIC, "results", Level.OK, f"{_WORKLOAD} computes its reference")


def _steady(timer: CudaTimer) -> Finding:
    if timer.ready.is_steady:
        return Finding(TOPIC, "warm", Level.OK, "times settle under load")
    return Finding(
        TOPIC, "warm", Level.ACTION, "times do not settle within five seconds of load",
        "keep others off the GPU, and lock the clocks: cuasmrl doctor --gpu --lock-clocks",
    )  # fmt: skip


def _equal(gain: MeasuredGain) -> Finding:
    """Two copies of one cubin must not gain over each other."""
    told = f"one cubin against itself: {gain.low:+.2%} to {gain.high:+.2%}"
    if gain.conditions is not None:
        told += f"; under load {gain.conditions.sentence}"
    slowed = gain.conditions.refusal if gain.conditions else None
    if slowed:
        return Finding(TOPIC, "no gain", Level.ACTION, told, slowed)
    if not gain.low <= 0 <= gain.high:
        return Finding(
            TOPIC, "no gain", Level.ACTION, f"{told}, which should hold zero",
            "run it again; if it stays so, no gain on this GPU can be believed",
        )  # fmt: skip
    if gain.conditions is not None and gain.conditions.is_wandering:
        return Finding(
            TOPIC, "no gain", Level.NOTE, told, "the SM clock wanders: cuasmrl doctor --gpu --lock-clocks"
        )
    return Finding(TOPIC, "no gain", Level.OK, told)


def _times(timer: CudaTimer, kernel: TracedKernel, gain: MeasuredGain) -> Finding:
    """Beside the model's, as far as the clock is known."""
    told = f"{_WORKLOAD} takes {gain.old_time:.2f} microseconds with a {gain.l2} L2"
    clocks = [mhz for mhz in gain.conditions.sm_mhz if mhz] if gain.conditions else []
    cycles = measure(kernel.model, kernel.original, _SEEDS).value
    if clocks:
        told += f", {gain.old_time * float(np.median(clocks)):,.0f} cycles"
    return Finding(TOPIC, "times", Level.OK, f"{told}; the model says {cycles:,.0f} cycles")


def _candidate(timer: CudaTimer, kernel: TracedKernel) -> Finding:
    schedule = _moved(kernel)
    time = timer.time(schedule)
    relative = time / timer.ready.time - 1
    return Finding(
        TOPIC, "candidate", Level.OK,
        f"one {_MOVES} legal moves away is certified, computes the same, and takes {relative:+.1%} time",
    )  # fmt: skip


def _moved(kernel: TracedKernel) -> Schedule:
    board, rng = Board(kernel.listing), random.Random(0)
    movable = [i for i in range(len(board.code)) if len(board.others(i))]
    for _ in range(_MOVES if movable else 0):
        i = rng.choice(movable)
        positions = board.others(i)
        if len(positions):
            board.move(i, int(rng.choice(positions)))
    return board.schedule()
