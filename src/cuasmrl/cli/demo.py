"""The command that shows everything once: a real kernel is compiled, made faster, proved and explained."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from cuasmrl.cli.console import Json, console, print_json
from cuasmrl.cli.display import display
from cuasmrl.cli.report import report_of

if TYPE_CHECKING:
    from cuasmrl.binary.cubin import Cubin
    from cuasmrl.binary.sass import Listing
    from cuasmrl.optimize import Optimized, Watch
    from cuasmrl.schedule import Block, Board, Schedule

WORKLOAD, CONFIG, ARCH = "gemm_leaky_relu", "m128n128k32_w4_s3", 80
AGENT = "twin"
BUDGET = 1500
_SHOWN = 12
_RULES = 6


def demo(
    output: Annotated[Path, typer.Option("-o", "--output", help="Where the run goes.")] = Path("demo"),
    seed: Annotated[int, typer.Option("--seed", help="Of the player.")] = 0,
    budget: Annotated[int, typer.Option("--budget", help="Evaluations.", min=1)] = BUDGET,
    as_json: Json = False,
) -> None:
    """See everything once, from compiler to explanation.

    A kernel is compiled, made faster, proved and explained, and a broken schedule of it is refused.
    """
    from cuasmrl.optimize import Watch

    with display(as_json) as shown:
        watch = Watch(shown.stage, shown.choosing, shown.prepared, shown.played)
        found = _Tour(Console(quiet=True) if as_json else console).go(output, seed, budget, watch)
    if as_json:
        print_json(found)


@dataclass(frozen=True)
class _Compiled:
    compiler: str
    cubin: Cubin
    listing: Listing
    board: Board
    loop: Block

    def as_dict(self) -> dict[str, Any]:
        return {
            "workload": WORKLOAD,
            "config": CONFIG,
            "arch": ARCH,
            "compiler": self.compiler,
            "instructions": len(self.board.code),
            "blocks": len(self.board.blocks),
        }


class _Tour:
    """Each step is told as it is done, and returns what it found."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def go(self, folder: Path, seed: int, budget: int, watch: Watch) -> dict[str, Any]:
        from cuasmrl.schedule import Schedule

        kernel = self._compile()
        self._say(f"2. The head of its main loop ({len(kernel.loop)} instructions), with control codes")
        before = self._show(Schedule.original(kernel.listing), kernel.loop)
        findings = self._lint(kernel.listing)
        moves = self._moves(kernel.board)
        played = self._play(folder, seed, budget, watch)
        schedule = _result(played, kernel.listing)
        self._say("\n6. The loop now begins")
        after = self._show(schedule, kernel.loop)
        self._say(f"   try: cuasmrl check {played.run}/original.cubin {played.run}/result.cubin")
        compared = f"--compare original {played.run}/result.cubin"
        self._say(f"        cuasmrl simulate {WORKLOAD} --config {CONFIG} {compared}")
        rules = self._explain(played.run)
        refusal = self._refuse(kernel, schedule)
        page = report_of(played)
        if page is not None:
            self._say(f"\nAll of it as a page: {page}")
        self._say(f"To move instructions yourself: cuasmrl play --from {played.run}")
        return {
            "compiled": kernel.as_dict(),
            "loop": {"instructions": len(kernel.loop), "before": before, "after": after},
            "lint": findings,
            "moves": moves,
            "optimized": played.as_dict(),
            "rules": rules,
            "refusal": refusal,
            "report": str(page) if page else None,
        }

    def _say(self, text: str) -> None:
        self._console.print(text, markup=False)

    def _compile(self) -> _Compiled:
        from cuasmrl import workloads
        from cuasmrl.binary.cubin import Cubin
        from cuasmrl.binary.sass import disassemble
        from cuasmrl.schedule import Board

        workload = workloads.get(WORKLOAD)
        self._say(f"1. Compile {workload.name} ({workload.title}; config {CONFIG}) for sm_{ARCH}")
        built = workload.build(workload.config(CONFIG), ARCH)
        cubin = Cubin.parse(built.cubin, f"{WORKLOAD}.cubin")
        listing = disassemble(cubin)[built.kernel]
        board = Board(listing)
        self._say(
            f"   {built.compiler}: {len(board.code)} instructions in {len(board.blocks)} basic blocks\n"
        )
        return _Compiled(built.compiler, cubin, listing, board, _main_loop(board))

    def _show(self, schedule: Schedule, block: Block) -> list[str]:
        lines = [
            _line(schedule, position) for position in range(block.start, min(block.end, block.start + _SHOWN))
        ]
        for line in (*lines, "..."):
            self._say(f"   {line}")
        return lines

    def _lint(self, listing: Listing) -> dict[str, int]:
        from cuasmrl.schedule.lint import lint

        findings = lint(listing)
        hazards = sum(finding.is_hazard for finding in findings)
        wasted = sum(finding.cycles for finding in findings)
        self._say(
            f"\n3. Lint: {hazards} hazards, {len(findings) - hazards} notes, "
            f"{wasted} stall cycles nothing known requires"
        )
        return {"hazards": hazards, "notes": len(findings) - hazards, "wasted_cycles": wasted}

    def _moves(self, board: Board) -> dict[str, int]:
        swaps = len(board.legal_swaps())
        reachable = sum(len(board.reach(i)) - 1 for i in range(len(board.code)))
        self._say(f"\n4. Legal moves: {swaps} exchanges of neighbours as they are,")
        self._say(f"   {reachable} positions to take an instruction to when stalls are recomputed")
        return {"exchanges": swaps, "positions": reachable}

    def _play(self, folder: Path, seed: int, budget: int, watch: Watch) -> Optimized:
        from cuasmrl.optimize import Request, optimize
        from cuasmrl.optimize.runs.directory import vacant

        self._say(f"\n5. Play: {AGENT}, {budget:,} evaluations on the virtual A100, seed {seed}")
        request = Request(WORKLOAD, CONFIG, agent=AGENT, budget=budget, seed=seed)
        found = optimize(request, vacant(folder / "run"), watch=watch)
        for line in (*found.verdict.lines(), found.verdict.sentence):
            self._say(f"   {line}")
        return found

    def _explain(self, run: Path) -> list[dict[str, Any]]:
        from cuasmrl.explain.moves import explain_run, rules_of

        self._say(f"\n7. What was learned (move by move: cuasmrl replay {run} --all)")
        explained = explain_run(run).explanation
        rules = rules_of([explained] if explained is not None else [])
        for rule in rules[:_RULES]:
            self._say(f"   {rule.text}")
        return [rule.as_dict() for rule in rules]

    def _refuse(self, kernel: _Compiled, schedule: Schedule) -> dict[str, Any] | None:
        from cuasmrl.checker import Checker, Refusal

        checker = Checker(kernel.cubin, {kernel.listing.kernel.name: kernel.listing})
        self._say("\n8. One stall count shortened below what the hardware needs:")
        try:
            checker.check(_broken(kernel.listing, schedule, kernel.board).apply(kernel.cubin))
        except Refusal as refusal:
            self._say(f"   refused: {refusal}")
            return refusal.as_dict()
        return None


def _main_loop(board: Board) -> Block:
    """The longest block that jumps back to itself or upward."""
    loops = [block for block in board.blocks if any(s <= block.number for s in block.successors)]
    return max(loops or board.blocks, key=len)


def _line(schedule: Schedule, position: int) -> str:
    i = schedule.order[position]
    moved = f"  // was at {16 * i:#06x}" if i != position else ""
    text = schedule.listing.instructions[i].text
    if not schedule.controls[i].reuse:
        text = text.replace(".reuse", "")
    return f"{16 * position:#06x}  {schedule.controls[i]}  {text}{moved}"


def _result(played: Optimized, listing: Listing) -> Schedule:
    """The schedule in the new cubin, or the original where that is kept."""
    from cuasmrl.optimize.runs import RunDirectory
    from cuasmrl.schedule import Schedule

    if played.verdict.accepted:
        return RunDirectory.open(played.run).best(listing)
    return Schedule.original(listing)


def _broken(listing: Listing, schedule: Schedule, board: Board) -> Schedule:
    """The first result that is read by the very next instruction, one cycle too soon."""
    from cuasmrl.binary.sass import Hazard

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
                    return schedule.replaced(controls=controls)
    return schedule
