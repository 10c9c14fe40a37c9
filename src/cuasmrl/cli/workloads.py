"""The command that lists the kernels that come with cuasmrl, and compiles them."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from cuasmrl.cli.console import Json, console, print_json, progress
from cuasmrl.errors import CuasmrlError

if TYPE_CHECKING:
    from cuasmrl.workloads.corpus import Corpus


def workloads(
    build: Annotated[
        Path | None,
        typer.Option("--build", help="Compile them into this directory, each with its launch file."),
    ] = None,
    arch: Annotated[list[int] | None, typer.Option("--arch", help="Only these chips, e.g. 80.")] = None,
    name: Annotated[list[str] | None, typer.Option("--name", help="Only these workloads.")] = None,
    evidence: Annotated[
        Path | None,
        typer.Option(
            "--evidence", help="Compile into this directory the kernels that exist only to be mined."
        ),
    ] = None,
    ptxas: Annotated[
        list[Path] | None,
        typer.Option("--ptxas", help="With --evidence: another ptxas, or a toolkit that has one."),
    ] = None,
    jobs: Annotated[int, typer.Option("--jobs", help="Compiler processes.", min=1)] = 2,
    as_json: Json = False,
) -> None:
    """The kernels that come with cuasmrl; --build compiles them."""
    from cuasmrl import workloads as collection

    if evidence is not None:
        if build is not None or name:
            raise CuasmrlError("--evidence has kernels of its own; give it without --build and --name")
        _build_evidence(evidence, arch, ptxas or [], jobs, as_json)
        return
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
    _report(corpus, f"{len(corpus.built)} cubins in {directory}, each with its launch file", as_json)


def _build_evidence(
    directory: Path, archs: list[int] | None, assemblers: list[Path], jobs: int, as_json: bool
) -> None:
    from cuasmrl import workloads as collection

    with progress("compiling", as_json) as advance:
        corpus = collection.build_evidence(
            directory,
            archs or collection.ARCHS,
            assemblers,
            jobs,
            progress=lambda _, done, total: advance(done, total),
        )
    _report(corpus, f"{len(corpus.built)} cubins in {directory}", as_json)


def _report(corpus: Corpus, sentence: str, as_json: bool) -> None:
    if as_json:
        print_json({
            "built": [str(entry.path) for entry in corpus.built],
            "missing": [dataclasses.asdict(entry) | {"path": None} for entry in corpus.missing],
        })  # fmt: skip
        return
    console.print(sentence, markup=False)
    for entry in corpus.missing:
        console.print(
            f"  not built: {entry.workload} {entry.config} sm_{entry.arch}: {entry.reason}", markup=False
        )
