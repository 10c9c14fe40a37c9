"""All workloads on all chips with timing data: no hazard in compiler output, every cycle has a name."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from importlib import resources

import numpy as np
import pytest

from cuasmrl import workloads
from cuasmrl.bench.latencies import table_rows
from cuasmrl.binary.cubin import Cubin
from cuasmrl.binary.sass import distances
from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.chips import CHIPS, Chip, chip_of_arch
from cuasmrl.gpu.emulator import Emulator, Trace
from cuasmrl.gpu.timing import Finding, Model, Reason, Result, hazards_of, load_parameters, sanitize
from cuasmrl.gpu.timing.code import Code
from cuasmrl.gpu.timing.comparison import Pair, compare
from cuasmrl.gpu.timing.records import Note
from cuasmrl.schedule import Board, Schedule
from cuasmrl.workloads import Config, Workload
from tests.gpu.timing.falsified import claimed_pairs, pairs_of, retimed
from tests.gpu.timing.hazard_oracle import matters
from tests.gpu.timing.plants import PLANTS
from tests.schedule.campaign import random_move

TIMING_DATA = resources.files("cuasmrl.gpu.timing") / "chips"
MODELLED = [chip for chip in CHIPS.values() if (TIMING_DATA / f"{chip.key}.csv").is_file()]
ARCHS = sorted({chip.arch for chip in MODELLED})
SAMPLED = 12
"""Kernels of an architecture in which hazards are planted."""
PLANTED = 5
FALSIFIED = 15
"""Rows of the table that are made wrong for a kernel, one at a time."""
LOGGED = 1500


def variants(arch: int) -> list[tuple[Workload, Config]]:
    return [(workload, config) for workload, config, _ in workloads.variants([arch])]


def traced(workload: Workload, config: Config, chip: Chip) -> tuple[Schedule, Trace]:
    """Two blocks of a workload that come to the first SM of a chip."""
    built = workload.build(config, chip.arch)
    cubin = Cubin.parse(built.cubin, f"{workload.name} {config.name}")
    emulator = Emulator(cubin, built.kernel, chip)
    Code(emulator.listing, load_parameters(chip.key))  # refuses what the model cannot time
    launch = workload.launch(built, workload.inputs())
    blocks = list(range(0, launch.blocks, chip.sm_count))[:2]
    return Schedule.original(emulator.listing), emulator.trace(launch, blocks=blocks)


def refusal(error: CuasmrlError) -> str:
    """In short where products in tensor memory are the reason, which nothing here has."""
    products = sorted(set(re.findall(r"\bUTC[A-Z]MMA", str(error))))
    return f"refused for {', '.join(products)}" if products else f"refused: {error}"


def births(model: Model, result: Result) -> np.ndarray:
    """When the first warp of each block could first issue: a block takes the seat of one that is done."""
    ends = np.sort(result.block_end)[: len(result.block_end) - model.resident]
    return np.concatenate([np.zeros(model.resident, np.int64), ends - 1 + model.machine.block_start])


def unnamed_cycles(model: Model, result: Result) -> int:
    """Cycles of warps and sub-cores without a name, or with two."""
    log = result.log
    warps = log[:, Note.BLOCK] * (log[:, Note.WARP].max() + 1) + log[:, Note.WARP]
    # The last row of each warp in the log, which is in the order of time.
    last = log[len(log) - 1 - np.unique(warps[::-1], return_index=True)[1]]
    born = births(model, result)[last[:, Note.BLOCK]] + last[:, Note.WARP] * model.machine.warp_start
    lives = last[:, Note.CYCLE] + 1 - born
    wrong = abs(int(result.warp_reasons.sum() - lives.sum()))
    wrong += int(abs(result.row_reasons.sum(axis=0) - result.warp_reasons).sum())
    wrong += int(abs(result.core_reasons.sum(axis=1) - result.cycles).sum())
    return wrong + abs(int(result.warp_reasons[Reason.ISSUED]) - len(log))


@pytest.mark.slow
@pytest.mark.parametrize("arch", ARCHS)
def test_compiler_output(arch: int, capsys: pytest.CaptureFixture[str]) -> None:
    """One wave of blocks and one block more."""
    tally: Counter[str] = Counter()
    for workload, config in variants(arch):
        try:
            schedule, trace = traced(workload, config, chip_of_arch(arch))
        except CuasmrlError as error:
            tally[refusal(error)] += 1
            continue
        for number, chip in enumerate(chip for chip in MODELLED if chip.arch == arch):
            model = Model(schedule, trace, chip)
            blocks = min(model.blocks, model.resident + 1)
            issues = model.simulate(schedule, number, blocks).instructions
            result = model.simulate(schedule, number, blocks, logged=issues)
            where = f"{workload.name} {config.name} on {chip.key}"
            assert [str(finding) for finding in sanitize(schedule, result)] == [], where
            assert unnamed_cycles(model, result) == 0, where
            tally["kernels on a chip"] += 1
            tally["issues"] += issues
    with capsys.disabled():
        print(f"\nsm_{arch}: {', '.join(f'{count} {what}' for what, count in tally.items())}", end="")
    assert tally["kernels on a chip"] > 40
    assert not [what for what in tally if what.startswith("refused: ")]


def sample(arch: int, rng: random.Random) -> Iterator[tuple[Schedule, Model]]:
    shuffled = variants(arch)
    rng.shuffle(shuffled)
    chip, given = chip_of_arch(arch), 0
    for workload, config in shuffled:
        if given == SAMPLED:
            return
        try:
            schedule, trace = traced(workload, config, chip)
        except CuasmrlError:
            continue
        given += 1
        yield schedule, Model(schedule, trace, chip)


@pytest.mark.slow
@pytest.mark.parametrize("arch", ARCHS)
def test_planted_hazards(arch: int, capsys: pytest.CaptureFixture[str]) -> None:
    """The sanitizer finds what matters in the time of a replay, all of it and nothing else."""
    rng = random.Random(arch)
    tally: Counter[str] = Counter()
    for original, model in sample(arch, rng):
        for plant in (plant for plant in PLANTS for _ in range(PLANTED)):
            schedule = plant(original, rng)
            result = model.simulate(schedule, rng.randrange(100), blocks=1, logged=LOGGED)
            wanted = {pair: (len(m.rows), m.missing) for pair, m in matters(schedule, result).items()}
            assert wanted == {
                (f.hazard, f.first.index, f.second.index): (f.times, f.missing)
                for f in sanitize(schedule, result)
            }
            tally[f"{plant.__name__} {'found' if wanted else 'without effect'}"] += 1
    with capsys.disabled():
        print(f"\nsm_{arch}: {', '.join(f'{count} {what}' for what, count in sorted(tally.items()))}", end="")
    assert all(tally[f"{plant.__name__} found"] for plant in PLANTS)


def is_known(finding: Finding) -> bool:
    """Is it one of the pairs for which the table answers less than the chip needs?"""
    return not known_errors(finding.first.arch).isdisjoint(pairs_of(finding.first, finding.second))


@cache
def known_errors(arch: int) -> frozenset[Pair]:
    return frozenset(found.pair for one in compare(distances(arch), table_rows()) for found in one.below)


@pytest.mark.slow
@pytest.mark.parametrize("arch", ARCHS)
def test_legal_moves(arch: int, capsys: pytest.CaptureFixture[str]) -> None:
    """What the board allows, which is what the checker certifies, is no hazard in time.

    Unless the table is known to answer less than the chip needs.
    """
    rng = random.Random(arch)
    moves = 0
    for original, model in sample(arch, rng):
        board = Board(original.listing)
        for seed in range(4):
            moves += sum(random_move(board, rng) is not None for _ in range(300))
            blocks = min(model.blocks, 2)
            assert [
                str(f) for f in hazards_of(model, board.schedule(), seed, blocks) if not is_known(f)
            ] == []
    with capsys.disabled():
        print(f"\nsm_{arch}: {moves} legal moves in {4 * SAMPLED} schedules", end="")
    assert moves > 1000


@pytest.mark.slow
@pytest.mark.parametrize("arch", ARCHS)
def test_falsified_rows(arch: int, capsys: pytest.CaptureFixture[str]) -> None:
    """A row of the table says less than the chip needs: what the board makes of it is found, or harmless."""
    rng = random.Random(arch)
    tally: Counter[str] = Counter()
    for original, model in sample(arch, rng):
        listing, blocks = original.listing, min(model.blocks, 2)
        claims = sorted(claimed_pairs(listing))
        honest = retimed(listing, {})
        assert all(is_known(found) for found in hazards_of(model, honest, blocks=blocks))
        for pair, latency in rng.sample(claims, min(FALSIFIED, len(claims))):
            schedule = retimed(listing, {pair: rng.randrange(1, latency)})
            hazards = () if schedule == honest else hazards_of(model, schedule, blocks=blocks)
            found = [hazard for hazard in hazards if not is_known(hazard)]
            assert all(pair in pairs_of(f.first, f.second) for f in found)
            tally["found" if found else "the same schedule" if schedule == honest else "without effect"] += 1
    with capsys.disabled():
        print(f"\nsm_{arch}: {', '.join(f'{count} {what}' for what, count in sorted(tally.items()))}", end="")
    assert tally["found"] > 20
