"""Commands on kernels that come with cuasmrl: which there are, and executing them."""

import dataclasses
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from cuasmrl.cli.console import Json, Settings, console, print_json, progress
from cuasmrl.errors import CuasmrlError


def workloads(
    build: Annotated[
        Path | None,
        typer.Option("--build", help="Compile them into this directory, each with its launch file."),
    ] = None,
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
        print_json([
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
    from cuasmrl.gpu.launches import save
    from cuasmrl.workloads.tracing import corpus_launches

    with progress("compiling", as_json) as advance:
        corpus = collection.build_corpus(
            directory,
            archs or collection.ARCHS,
            names,
            jobs=jobs,
            progress=lambda _, done, total: advance(done, total),
        )
    with progress("writing launch files", as_json) as advance:
        for done, (path, record) in enumerate(corpus_launches(corpus.built), 1):
            save(path.with_suffix(".launch.json"), record)
            advance(done, len(corpus.built))
    if as_json:
        print_json({
            "built": [str(entry.path) for entry in corpus.built],
            "missing": [dataclasses.asdict(entry) | {"path": None} for entry in corpus.missing],
        })  # fmt: skip
        return
    console.print(f"{len(corpus.built)} cubins in {directory}, each with its launch file", markup=False)
    for entry in corpus.missing:
        console.print(
            f"  not built: {entry.workload} {entry.config} sm_{entry.arch}: {entry.reason}", markup=False
        )


def emulate(
    workload: Annotated[str, typer.Argument(help="A workload, see `cuasmrl workloads`.", show_default=False)],
    config: Annotated[str | None, typer.Option("--config", help="One config instead of all.")] = None,
    arch: Annotated[int, typer.Option("--arch", help="Chip to compile for: 75, 80, 86, 89, 90, 120.")] = 80,
    settings: Settings = None,
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
    from cuasmrl import workloads as collection
    from cuasmrl.cli.tables import print_outcomes
    from cuasmrl.gpu.emulator import DEFAULT_BUDGET
    from cuasmrl.workloads import emulation

    chosen = collection.get(workload)
    sizes = {**chosen.sizes, **sizes_of(settings or [], set(chosen.sizes), chosen.name)}
    chosen_blocks = _ranges(blocks)
    configs = (
        [chosen.config(config)] if config else [c for c in chosen.configs if chosen.supports(c, arch) is None]
    )
    outcomes = []
    for one in configs:
        with progress(f"{chosen.name} {one.name}", as_json) as advance:
            outcomes.append(
                emulation.emulate(
                    chosen, one, arch, sizes, seed, chosen_blocks, budget or DEFAULT_BUDGET, progress=advance
                )
            )
    if not outcomes:
        raise CuasmrlError(f"{chosen.name} has no config for sm_{arch}; choose another chip")
    if as_json:
        print_json([outcome.as_dict() for outcome in outcomes])
    else:
        print_outcomes(console, outcomes)
    if not all(outcome.passed for outcome in outcomes):
        raise typer.Exit(1)


def sizes_of(settings: list[str], known: set[str], workload: str) -> dict[str, int]:
    """`M=512` and the like as numbers."""
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


def sizes_given(
    kernel_of: str | None, launch: Path | None, settings: list[str] | None
) -> dict[str, int] | None:
    """The sizes of a workload where --set changes any."""
    if not settings:
        return None
    if kernel_of is None or launch is not None or Path(kernel_of).suffix == ".cubin":
        raise CuasmrlError("--set gives the sizes of a workload, and none is named; leave it out")
    from cuasmrl import workloads as collection

    workload = collection.get(kernel_of)
    return {**workload.sizes, **sizes_of(settings, set(workload.sizes), workload.name)}


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
