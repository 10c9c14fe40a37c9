"""Commands on cubins that nothing is executed for: disassembly, proof, lint, mining."""

import csv
import dataclasses
import io
from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import typer

from cuasmrl.binary.cubin import Cubin
from cuasmrl.binary.sass import Instruction, disassemble
from cuasmrl.binary.sass.distances import COLUMNS
from cuasmrl.checker import Checker, Refusal
from cuasmrl.cli.console import CubinFile, Json, KernelName, console, print_json, progress
from cuasmrl.files import write_text
from cuasmrl.schedule import mining
from cuasmrl.schedule.lint import Finding, Rule
from cuasmrl.schedule.lint import lint as findings_of


def disasm(cubin: CubinFile, kernel: KernelName = None, as_json: Json = False) -> None:
    """SASS with control codes."""
    loaded = Cubin.load(cubin)
    chosen = [loaded.kernel(kernel)] if kernel else loaded.kernels
    listings = disassemble(loaded)
    if as_json:
        print_json([
            {"kernel": k.name, "arch": k.arch, "registers": k.registers, "shared_bytes": k.shared_bytes,
             "parameters": [dataclasses.asdict(p) for p in k.parameters],
             "instructions": [_instruction_json(i) for i in listings[k.name].instructions]}
            for k in chosen
        ])  # fmt: skip
        return
    for k in chosen:
        console.print(
            f"// {k.name}: sm_{k.arch}, {len(k.words)} instructions, {k.registers} registers, "
            f"{k.shared_bytes} bytes of static shared memory, {len(k.parameters)} parameters",
            markup=False,
        )
        targets = {i.target for i in listings[k.name].instructions if i.target is not None}
        for i in listings[k.name].instructions:
            mark = ">" if i.address in targets else " "
            unknown = "  // unknown opcode: never moved" if i.declaration is None else ""
            console.print(f"{mark}{i.address:05x}  {i.control}  {i.text}{unknown}", markup=False)


def _instruction_json(i: Instruction) -> dict[str, Any]:
    return {
        "address": i.address,
        "text": i.text,
        "word": i.word.hex(),
        "control": dataclasses.asdict(i.control),
        "known": i.declaration is not None,
    }


def check(
    original: Annotated[Path, typer.Argument(help="The cubin as compiled.", show_default=False)],
    candidate: Annotated[Path, typer.Argument(help="The rescheduled cubin.", show_default=False)],
    as_json: Json = False,
) -> None:
    """Certify that a rescheduled cubin is as safe as the original; exit status 1 if it is not."""
    try:
        certificate = Checker(Cubin.load(original)).check(Cubin.load(candidate))
    except Refusal as refusal:
        if as_json:
            print_json(refusal.as_dict())
        else:
            console.print(f"refused ({refusal.rule}): {refusal}", markup=False)
        raise typer.Exit(1) from None
    if as_json:
        print_json(certificate.as_dict())
        return
    console.print(f"certified: {candidate} is as safe as {original}", markup=False)
    for name, proved in certificate.proved.items():
        facts = ", ".join(f"{count} {kind}" for kind, count in proved.items())
        console.print(f"  {name}: {facts}", markup=False)


def lint(
    cubin: CubinFile,
    kernel: KernelName = None,
    show: Annotated[int, typer.Option("--show", help="Findings of each kind to print; 0 for all.")] = 5,
    as_json: Json = False,
) -> None:
    """Hazards (exit status 1 if there are any), wasted stalls and fillers in a cubin."""
    loaded = Cubin.load(cubin)
    listings = disassemble(loaded)
    chosen = [loaded.kernel(kernel)] if kernel else loaded.kernels
    found = [finding for k in chosen for finding in findings_of(listings[k.name])]
    if as_json:
        print_json([finding.as_dict() for finding in found])
    else:
        for k in chosen:
            _print_findings(k.name, [f for f in found if f.kernel == k.name], show)
    if any(finding.is_hazard for finding in found):
        raise typer.Exit(1)


def _print_findings(name: str, found: list[Finding], show: int) -> None:
    counts = Counter(finding.rule for finding in found)
    hazards = sum(finding.is_hazard for finding in found)
    wasted = sum(finding.cycles for finding in found)
    console.print(
        f"{name}: {hazards} hazards, {len(found) - hazards} notes, {wasted} stall cycles more than needed"
    )
    for rule in Rule:
        of_rule = [finding for finding in found if finding.rule is rule]
        for finding in of_rule[: show or None]:
            console.print(f"  {rule}: {finding.sentence}", markup=False)
        if show and counts[rule] > show:
            console.print(f"  {rule}: and {counts[rule] - show} more")


def mine(
    directory: Annotated[Path, typer.Argument(help="Searched for *.cubin.", show_default=False)],
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Write the table there.")] = None,
    jobs: Annotated[int, typer.Option("--jobs", help="Processes.")] = 2,
    as_json: Json = False,
) -> None:
    """Learn minimum issue distances from compiled kernels, with their witnesses, as CSV."""
    with progress("mining", as_json or output is None) as advance:
        mined = mining.mine(directory, jobs, advance)
    if as_json:
        print_json([dataclasses.asdict(row) for row in mined.rows])
        return
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows([getattr(row, column) for column in COLUMNS] for row in mined.rows)
    if output is None:
        console.out(text.getvalue(), end="")
        return
    write_text(output, text.getvalue())
    console.print(
        f"{len(mined.rows)} rows from {mined.instructions} instructions of {mined.cubins} cubins in {output}"
    )
