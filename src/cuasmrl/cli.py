"""The command line. Each command prints what a person wants to see, or JSON with --json."""

import csv
import dataclasses
import io
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from cuasmrl import __version__
from cuasmrl.checker import Checker, Refusal
from cuasmrl.cubin import Cubin
from cuasmrl.errors import CuasmrlError
from cuasmrl.lint import Finding, Rule, lint
from cuasmrl.sass import Instruction, disassemble
from cuasmrl.sass.distances import COLUMNS
from cuasmrl.schedule.mining import mine

app = typer.Typer(no_args_is_help=True, add_completion=False, rich_markup_mode=None, help=__doc__)
# Piped output is read by programs and in logs: no reason to fold it at 80 columns.
console = Console(highlight=False, soft_wrap=True, width=None if sys.stdout.isatty() else 160)
problems = Console(stderr=True, highlight=False, soft_wrap=True)

Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
CubinFile = Annotated[Path, typer.Argument(help="A cubin file.", show_default=False)]
KernelName = Annotated[str | None, typer.Option("--kernel", help="Only this kernel.", show_default=False)]


def main() -> None:
    """Entry point: every expected failure is one sentence and exit status 2."""
    try:
        app()
    except CuasmrlError as error:
        problems.print(f"error: {error}", markup=False)
        sys.exit(2)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(0)


@app.callback(invoke_without_command=True)
def root(version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    if version:
        console.print(f"cuasmrl {__version__}")
        raise typer.Exit


@app.command()
def demo(
    output: Annotated[Path, typer.Option("-o", "--output", help="Where the cubins go.")] = Path("demo"),
    seed: Annotated[int, typer.Option("--seed", help="Of the random moves.")] = 0,
) -> None:
    """Compile a kernel, read it, reschedule it, prove the result, and see a broken one refused."""
    from cuasmrl import demo as tour

    tour.run(console, output, seed)


@app.command()
def disasm(cubin: CubinFile, kernel: KernelName = None, as_json: Json = False) -> None:
    """SASS with control codes."""
    loaded = Cubin.load(cubin)
    chosen = [loaded.kernel(kernel)] if kernel else loaded.kernels
    listings = disassemble(loaded)
    if as_json:
        _print_json([
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


@app.command()
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
            _print_json(refusal.as_dict())
        else:
            console.print(f"refused ({refusal.rule}): {refusal}", markup=False)
        raise typer.Exit(1) from None
    if as_json:
        _print_json(certificate.as_dict())
        return
    console.print(f"certified: {candidate} is as safe as {original}", markup=False)
    for name, proved in certificate.proved.items():
        facts = ", ".join(f"{count} {kind}" for kind, count in proved.items())
        console.print(f"  {name}: {facts}", markup=False)


@app.command(name="lint")
def lint_command(
    cubin: CubinFile,
    kernel: KernelName = None,
    show: Annotated[int, typer.Option("--show", help="Findings of each kind to print; 0 for all.")] = 5,
    as_json: Json = False,
) -> None:
    """Hazards (exit status 1 if there are any), wasted stalls and fillers in a cubin."""
    loaded = Cubin.load(cubin)
    listings = disassemble(loaded)
    chosen = [loaded.kernel(kernel)] if kernel else loaded.kernels
    found = [finding for k in chosen for finding in lint(listings[k.name])]
    if as_json:
        _print_json([finding.as_dict() for finding in found])
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


@app.command(name="mine")
def mine_command(
    directory: Annotated[Path, typer.Argument(help="Searched for *.cubin.", show_default=False)],
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Write the table there.")] = None,
    jobs: Annotated[int, typer.Option("--jobs", help="Processes.")] = 2,
    as_json: Json = False,
) -> None:
    """Learn minimum issue distances from compiled kernels, with their witnesses, as CSV."""
    with _progress("mining", as_json or output is None) as advance:
        mined = mine(directory, jobs, advance)
    if as_json:
        _print_json([dataclasses.asdict(row) for row in mined.rows])
        return
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows([getattr(row, column) for column in COLUMNS] for row in mined.rows)
    if output is None:
        console.out(text.getvalue(), end="")
        return
    _write(output, text.getvalue())
    console.print(
        f"{len(mined.rows)} rows from {mined.instructions} instructions of {mined.cubins} cubins in {output}"
    )


@app.command()
def workloads(
    build: Annotated[Path | None, typer.Option("--build", help="Compile them into this directory.")] = None,
    arch: Annotated[list[int] | None, typer.Option("--arch", help="Only these chips, e.g. 80.")] = None,
    name: Annotated[list[str] | None, typer.Option("--name", help="Only these workloads.")] = None,
    jobs: Annotated[int, typer.Option("--jobs", help="Compiler processes.")] = 2,
    as_json: Json = False,
) -> None:
    """The kernels that come with cuasmrl, their configs and shapes; --build compiles them."""
    from cuasmrl import workloads as collection

    chosen = [collection.get(n) for n in name] if name else collection.all()
    if build is not None:
        _build(build, arch, [w.name for w in chosen], jobs, as_json)
        return
    if as_json:
        _print_json([
            {"name": w.name, "title": w.title, "language": w.language, "published": w.published,
             "sizes": dict(w.sizes), "configs": [c.name for c in w.configs]}
            for w in chosen
        ])  # fmt: skip
        return
    table = Table(box=None, pad_edge=False)
    for column in ("workload", "language", "default shape", "configs", "what it is"):
        table.add_column(column, overflow="fold")
    for w in chosen:
        star = "*" if w.published else ""
        shape = " ".join(f"{k}={v}" for k, v in w.sizes.items())
        table.add_row(w.name + star, w.language, shape, str(len(w.configs)), w.title)
    console.print(table)
    console.print("* one of the six kernels of the CuAsmRL evaluation")


def _build(directory: Path, archs: list[int] | None, names: list[str], jobs: int, as_json: bool) -> None:
    from cuasmrl import workloads as collection

    with _progress("compiling", as_json) as advance:
        corpus = collection.build_corpus(
            directory,
            archs or collection.ARCHS,
            names,
            jobs=jobs,
            progress=lambda _, done, total: advance(done, total),
        )
    if as_json:
        _print_json({
            "built": [str(entry.path) for entry in corpus.built],
            "missing": [dataclasses.asdict(entry) | {"path": None} for entry in corpus.missing],
        })  # fmt: skip
        return
    console.print(f"{len(corpus.built)} cubins in {directory}")
    for entry in corpus.missing:
        console.print(
            f"  not built: {entry.workload} {entry.config} sm_{entry.arch}: {entry.reason}", markup=False
        )


@app.command(name="emulate")
def emulate_command(
    workload: Annotated[str, typer.Argument(help="A workload, see `cuasmrl workloads`.", show_default=False)],
    config: Annotated[str | None, typer.Option("--config", help="One config instead of all.")] = None,
    arch: Annotated[int, typer.Option("--arch", help="Chip to compile for: 75, 80, 86, 89, 90, 120.")] = 80,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="A size such as M=512; repeat for several.")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Of the random inputs.")] = 0,
    blocks: Annotated[
        str | None, typer.Option("--blocks", help="Execute only these: 5 or 0-3,17 (linear indices).")
    ] = None,
    budget: Annotated[
        int | None,
        typer.Option("--budget", help="Instructions a warp may execute before it counts as endless."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Execute a workload on the virtual GPU and compare with its reference; exit status 1 if it differs."""
    from cuasmrl import workloads
    from cuasmrl.emulate import emulate
    from cuasmrl.emulator import DEFAULT_BUDGET
    from cuasmrl.tables import print_outcomes

    chosen = workloads.get(workload)
    sizes = {**chosen.sizes, **_sizes(settings or [], set(chosen.sizes), chosen.name)}
    configs = (
        [chosen.config(config)] if config else [c for c in chosen.configs if chosen.supports(c, arch) is None]
    )
    outcomes = []
    for one in configs:
        with _progress(f"{chosen.name} {one.name}", as_json) as advance:
            outcomes.append(
                emulate(
                    chosen,
                    one,
                    arch,
                    sizes,
                    seed,
                    _ranges(blocks),
                    budget or DEFAULT_BUDGET,
                    progress=advance,
                )
            )
    if not outcomes:
        raise CuasmrlError(f"{chosen.name} has no config for sm_{arch}; choose another chip")
    if as_json:
        _print_json([outcome.as_dict() for outcome in outcomes])
    else:
        print_outcomes(console, outcomes)
    if not all(outcome.passed for outcome in outcomes):
        raise typer.Exit(1)


def _sizes(settings: list[str], known: set[str], workload: str) -> dict[str, int]:
    sizes = {}
    for setting in settings:
        name, _, number = setting.partition("=")
        if name not in known or not number.isdecimal() or int(number) < 1:
            raise CuasmrlError(
                f"--set {setting} is not understood; {workload} is sized by {', '.join(sorted(known))}, "
                "for example --set " + f"{min(known)}=64"
            )
        sizes[name] = int(number)
    return sizes


def _ranges(text: str | None) -> list[int] | None:
    """`0-3,17` as numbers."""
    if text is None:
        return None
    numbers: list[int] = []
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            raise CuasmrlError(f"--blocks {text} is not understood; write for example 0-3,17")
        numbers += range(int(first), int(last if dash else first) + 1)
    return numbers


@app.command(name="simulate")
def simulate_command(
    workload: Annotated[str, typer.Argument(help="A workload, see `cuasmrl workloads`.", show_default=False)],
    config: Annotated[str | None, typer.Option("--config", help="One config instead of the first.")] = None,
    chip: Annotated[
        str, typer.Option("--chip", help="A chip with timing data, such as a100 or rtx4090.")
    ] = "a100",
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="A size such as M=512; repeat for several.")
    ] = None,
    seeds: Annotated[int, typer.Option("--seeds", help="Replays with other latency jitter.", min=1)] = 3,
    as_json: Json = False,
) -> None:
    """Modelled cycles of a workload as the compiler scheduled it, and where each went."""
    from cuasmrl import workloads
    from cuasmrl.chips import chip as chip_named
    from cuasmrl.simulate import simulate
    from cuasmrl.tables import print_simulation

    chosen = workloads.get(workload)
    sizes = {**chosen.sizes, **_sizes(settings or [], set(chosen.sizes), chosen.name)}
    one = chosen.config(config) if config else chosen.configs[0]
    result = simulate(chosen, one, chip_named(chip), sizes, seeds)
    if as_json:
        _print_json(result.as_dict())
    else:
        print_simulation(console, result)


@app.command()
def bench(
    what: Annotated[
        str,
        typer.Argument(
            help="schedule: reading, moving, checking. emulator: beside Triton's interpreter. "
            "timing: the SM model beside published measurements."
        ),
    ] = "schedule",
    as_json: Json = False,
) -> None:
    """Measure on this machine, and print the table."""
    from cuasmrl.bench.emulator import emulator
    from cuasmrl.bench.schedule import schedule
    from cuasmrl.bench.timing import timing
    from cuasmrl.tables import emulator_table, schedule_table, timing_table

    benchmarks: dict[str, tuple[Callable[..., list[Any]], Callable[[list[Any]], Table]]] = {
        "schedule": (schedule, schedule_table),
        "emulator": (emulator, emulator_table),
        "timing": (timing, timing_table),
    }
    if what not in benchmarks:
        raise CuasmrlError(f"there is no benchmark {what!r}; choose {' or '.join(benchmarks)}")
    measure, tabulate = benchmarks[what]
    with _progress("measuring", as_json) as advance:
        figures = measure(advance)
    if as_json:
        _print_json([figure.as_dict() for figure in figures])
    else:
        console.print(tabulate(figures))


def _write(path: Path, text: str) -> None:
    scratch = path.with_name(path.name + ".partial")
    try:
        scratch.write_text(text, encoding="utf-8")
        scratch.replace(path)
    except OSError as error:
        raise CuasmrlError(f"cannot write {path}: {error.strerror}; choose a writable place") from error


def _instruction_json(i: Instruction) -> dict[str, Any]:
    return {
        "address": i.address,
        "text": i.text,
        "word": i.word.hex(),
        "control": dataclasses.asdict(i.control),
        "known": i.declaration is not None,
    }


def _print_json(value: Any) -> None:
    json.dump(value, sys.stdout, indent=1, default=str)
    sys.stdout.write("\n")


@contextmanager
def _progress(what: str, quiet: bool) -> Iterator[Callable[[int, int], None]]:
    """A bar on a terminal, a line every tenth elsewhere, nothing where output is data."""
    if quiet:
        yield lambda done, total: None
    elif problems.is_terminal:
        columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        with Progress(*columns, console=problems, transient=True) as bar:
            task = bar.add_task(what, total=None)
            yield lambda done, total: bar.update(task, completed=done, total=total)
    else:
        shown = -1

        def line(done: int, total: int) -> None:
            nonlocal shown
            tenth = 10 * done // total
            if tenth != shown:
                shown = tenth
                problems.print(f"{what}: {done} of {total}")

        yield line


if __name__ == "__main__":
    main()
