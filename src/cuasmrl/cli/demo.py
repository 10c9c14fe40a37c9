"""The tour: a real kernel is compiled, made faster, proved, explained, and a broken schedule refused."""

from dataclasses import replace
from pathlib import Path

from rich.console import Console

from cuasmrl import workloads
from cuasmrl.binary.cubin import Cubin
from cuasmrl.binary.sass import Hazard, Listing, disassemble
from cuasmrl.checker import Checker, Refusal
from cuasmrl.explain.moves import explain_run, rules_of
from cuasmrl.optimize import Request, Watch, optimize
from cuasmrl.optimize.runs import RunDirectory
from cuasmrl.optimize.runs.directory import vacant
from cuasmrl.schedule import Block, Board, Schedule
from cuasmrl.schedule.lint import lint

WORKLOAD, CONFIG, ARCH = "gemm_leaky_relu", "m128n128k32_w4_s3", 80
AGENT = "greedy"
BUDGET = 1500
_SHOWN = 12
_RULES = 6


def tour(
    console: Console, folder: Path, seed: int = 0, watch: Watch | None = None, budget: int = BUDGET
) -> None:
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
    console.print(f"   {reachable} positions to take an instruction to when stalls are recomputed")

    run = vacant(folder / "run")
    console.print(f"\n5. Play: {AGENT}, {budget:,} evaluations on the virtual A100, seed {seed}")
    request = Request(WORKLOAD, CONFIG, agent=AGENT, budget=budget, seed=seed)
    found = optimize(request, run, watch=watch)
    verdict = found.verdict
    for line in verdict.lines():
        console.print(f"   {line}", markup=False)
    console.print(f"   {verdict.sentence}", markup=False)

    console.print("\n6. The loop now begins")
    schedule = RunDirectory.open(run).best(listing) if verdict.accepted else Schedule.original(listing)
    _show(console, schedule, loop)
    console.print(
        f"   try: cuasmrl check {run}/original.cubin {run}/result.cubin\n"
        f"        cuasmrl simulate {WORKLOAD} --config {CONFIG} --compare original {run}/result.cubin",
        markup=False,
    )

    console.print("\n7. What was learned (cuasmrl replay tells it move by move)")
    explained = explain_run(run).explanation
    for rule in rules_of([explained] if explained is not None else [])[:_RULES]:
        console.print(f"   {rule.text}", markup=False)

    checker = Checker(cubin, {built.kernel: listing})
    console.print("\n8. One stall count shortened below what the hardware needs:")
    try:
        checker.check(_broken(listing, schedule, board).apply(cubin))
    except Refusal as refusal:
        console.print(f"   refused: {refusal}", markup=False)


def _main_loop(board: Board) -> Block:
    """The longest block that jumps back to itself or upward."""
    loops = [block for block in board.blocks if any(s <= block.number for s in block.successors)]
    return max(loops or board.blocks, key=len)


def _show(console: Console, schedule: Schedule, block: Block) -> None:
    for position in range(block.start, min(block.end, block.start + _SHOWN)):
        i = schedule.order[position]
        moved = f"  // was at {16 * i:#06x}" if i != position else ""
        text = schedule.listing.instructions[i].text
        if not schedule.controls[i].reuse:
            text = text.replace(".reuse", "")
        console.print(f"   {16 * position:#06x}  {schedule.controls[i]}  {text}{moved}", markup=False)
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
