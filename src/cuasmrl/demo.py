"""The tour: one real kernel is compiled, read, rescheduled, proved, and a broken schedule refused."""

import random
from dataclasses import replace
from pathlib import Path

import numpy as np
from rich.console import Console

from cuasmrl import workloads
from cuasmrl.checker import Checker, Refusal
from cuasmrl.cubin import Cubin
from cuasmrl.emulator import Emulator
from cuasmrl.lint import lint
from cuasmrl.sass import Hazard, Listing, disassemble
from cuasmrl.schedule import Block, Board, Schedule
from cuasmrl.workloads import BuiltKernel, Workload

WORKLOAD, CONFIG, ARCH = "gemm_leaky_relu", "m128n128k32_w4_s3", 80
_MOVES = 300
_SHOWN = 12
_SIZES = {"M": 256, "N": 256, "K": 512}


def run(console: Console, folder: Path, seed: int = 0) -> None:
    workload = workloads.get(WORKLOAD)
    config = workload.config(CONFIG)
    console.print(
        f"1. Compile {workload.name} ({workload.title}; config {CONFIG}) for sm_{ARCH}", markup=False
    )
    built = workload.build(config, ARCH)
    cubin = Cubin.parse(built.cubin, f"{WORKLOAD}.cubin")
    listing = disassemble(cubin)[built.kernel]
    board = Board(listing)
    loop = _main_loop(board)
    console.print(
        f"   {built.compiler}: {len(board.code)} instructions in {len(board.blocks)} blocks\n", markup=False
    )

    console.print(f"2. The head of its main loop ({len(loop)} instructions), with control codes")
    _show(console, Schedule.original(listing), loop)

    findings = lint(listing)
    hazards = sum(finding.is_hazard for finding in findings)
    console.print(
        f"\n3. Lint: {hazards} hazards, {len(findings) - hazards} notes, "
        f"{sum(finding.cycles for finding in findings)} stall cycles nothing known requires"
    )

    reachable = sum(len(board.reach(i)) - 1 for i in range(len(board.code)))
    console.print(f"\n4. Legal moves: {len(board.legal_swaps())} exchanges of neighbours as they are,")
    console.print(f"   {reachable} places to take an instruction to when stalls are recomputed")

    rng = random.Random(seed)
    played = 0
    while played < _MOVES:
        i = rng.randrange(len(board.code))
        played += board.move(i, rng.choice(board.reach(i)))
    schedule = board.schedule()
    candidate = schedule.apply(cubin)
    console.print(f"\n5. After {_MOVES} random legal moves (seed {seed}) the loop begins")
    _show(console, schedule, loop)

    checker = Checker(cubin, {built.kernel: listing})
    certificate = checker.check(candidate)
    facts = ", ".join(f"{n} {what}" for what, n in certificate.proved[built.kernel].items())
    console.print(f"\n6. Certified as safe as the original: {facts}", markup=False)
    folder.mkdir(parents=True, exist_ok=True)
    cubin.save(folder / "original.cubin")
    candidate.save(folder / "rescheduled.cubin")
    console.print(f"   try: cuasmrl check {folder}/original.cubin {folder}/rescheduled.cubin", markup=False)

    same, size = _same_results(workload, built, cubin, candidate)
    verdict = "the same bits" if same else "DIFFERENT results"
    console.print(f"\n7. Both executed on the virtual GPU ({size}): {verdict}", markup=False)

    console.print("\n8. One stall count shortened below what the hardware needs:")
    try:
        checker.check(_broken(listing, schedule, board).apply(cubin))
    except Refusal as refusal:
        console.print(f"   refused: {refusal}", markup=False)


def _same_results(
    workload: Workload, built: BuiltKernel, original: Cubin, candidate: Cubin
) -> tuple[bool, str]:
    """Run both cubins on the same inputs; the size in words for the reader."""
    results = []
    for cubin in (original, Cubin.parse(candidate.data)):
        inputs = workload.inputs(_SIZES, seed=0)
        Emulator(cubin, built.kernel).run(workload.launch(built, inputs, _SIZES))
        results.append(
            b"".join(np.asarray(inputs[name]).tobytes() for name in workload.reference(inputs, _SIZES))
        )
    return results[0] == results[1], ", ".join(f"{name} = {size}" for name, size in _SIZES.items())


def _main_loop(board: Board) -> Block:
    """The longest block that jumps back to itself or upward."""
    loops = [block for block in board.blocks if any(s <= block.number for s in block.successors)]
    return max(loops or board.blocks, key=len)


def _show(console: Console, schedule: Schedule, block: Block) -> None:
    for place in range(block.start, min(block.end, block.start + _SHOWN)):
        i = schedule.order[place]
        moved = f"  // was at {16 * i:#06x}" if i != place else ""
        text = schedule.listing.instructions[i].text
        if not schedule.controls[i].reuse:
            text = text.replace(".reuse", "")
        console.print(f"   {16 * place:#06x}  {schedule.controls[i]}  {text}{moved}", markup=False)
    console.print("   ...")


def _broken(listing: Listing, schedule: Schedule, board: Board) -> Schedule:
    """The first result that is read by the very next instruction, one cycle too soon."""
    controls = list(schedule.controls)
    for first, second in zip(schedule.order, schedule.order[1:], strict=False):
        producer, consumer = listing.instructions[first], listing.instructions[second]
        for result in producer.defs:
            for use in consumer.uses:
                need = board.table.required(
                    Hazard.RAW, producer, consumer, result.register, result.role, use.role
                )
                if (
                    result.register == use.register
                    and need == controls[first].stall
                    and not producer.is_variable
                ):
                    controls[first] = replace(controls[first], stall=need - 1, yield_=False)
                    return replace(schedule, controls=tuple(controls))
    return schedule
