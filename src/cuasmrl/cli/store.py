"""The commands on the store of results."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cuasmrl.cli.console import Json, console, print_json, progress
from cuasmrl.deploy.store import Store
from cuasmrl.deploy.store.allowed import is_modelled, measured_on
from cuasmrl.deploy.store.entry import FIGURES
from cuasmrl.errors import CuasmrlError

if TYPE_CHECKING:
    from cuasmrl.deploy.store import Entry

app = typer.Typer(
    no_args_is_help=True, add_completion=False, rich_markup_mode=None,
    help="Results that compilers are given: list, look at, pass on, prove again.",
)  # fmt: skip

Root = Annotated[
    Path | None,
    typer.Option(
        "--store", help="Its directory; by default $CUASMRL_STORE or one in the cache.", show_default=False
    ),
]
Keys = Annotated[
    list[str] | None, typer.Argument(metavar="[KEY]...", help="Or their first digits.", show_default=False)
]
_SHORT = 12


@app.command("ls")
def list_(root: Root = None, as_json: Json = False) -> None:
    """All entries, and how many recorded kernels wait to be optimised."""
    store = Store(root)
    entries, waiting = list(store.entries()), store.recorded()
    if as_json:
        print_json({
            "store": str(store.root),
            "epoch": store.epoch,
            "entries": [_summary(entry) for entry in entries],
            "recorded": [
                {"key": cubin.key, "kernels": cubin.kernels, "launches": len(cubin.launches),
                 "origin": cubin.origin}
                for cubin in waiting
            ],
        })  # fmt: skip
        return
    for entry in entries:
        console.print(_line(entry), markup=False)
    size = sum(len(entry.original) + len(entry.optimised) for entry in entries)
    console.print(
        f"{store.root}: {_count(len(entries), 'entry', 'entries')}, {size / 1e6:.1f} MB, epoch {store.epoch}",
        markup=False,
    )
    if waiting:
        kernels = sum(len(cubin.kernels) for cubin in waiting)
        names = _count(kernels, "recorded kernel waits", "recorded kernels wait")
        console.print(f"{names} for `cuasmrl optimize --recorded`")


@app.command()
def show(
    key: Annotated[str, typer.Argument(help="Or its first digits.", show_default=False)],
    root: Root = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Write both cubins and the certificate to this directory."),
    ] = None,
    as_json: Json = False,
) -> None:
    """One entry in full; with -o its cubins as files."""
    store = Store(root)
    entry = store.examined(store.resolve(key))
    if entry is None:
        raise CuasmrlError(f"entry {key} of the store {store.root} is gone")
    if output is not None:
        _unpack(entry, output)
    if as_json:
        print_json({**entry.facts(), "schema": entry.schema})
        return
    facts = {**entry.facts(), "measurement": _measurement(entry)}
    console.print(_line(entry), markup=False)
    console.print(f"key          {entry.key}", markup=False)
    for name in ("measurement", "provenance", "certificate"):
        for field, value in facts[name].items():
            console.print(f"{name:12} {field}: {value}", markup=False)
    if output is not None:
        console.print(f"cubins       {output / 'original.cubin'}, {output / 'optimised.cubin'}", markup=False)


@app.command()
def export(
    file: Annotated[Path, typer.Argument(help="The file to write.", show_default=False)],
    keys: Keys = None,
    root: Root = None,
    as_json: Json = False,
) -> None:
    """Write entries, by default all, to one file for another store."""
    store = Store(root)
    chosen = [store.resolve(key) for key in keys] if keys else None
    count = store.export(file, chosen)
    if as_json:
        print_json({"file": str(file), "entries": count})
    else:
        console.print(f"{_count(count, 'entry', 'entries')} in {file}", markup=False)


@app.command("import")
def import_(
    file: Annotated[Path, typer.Argument(help="Written by `store export`.", show_default=False)],
    replace: Annotated[bool, typer.Option("--replace", help="Also entries that are here already.")] = False,
    root: Root = None,
    as_json: Json = False,
) -> None:
    """Prove the entries of a file and keep them; nothing is kept if one of them fails."""
    store = Store(root)
    with progress("proving", as_json) as advance:
        found = store.import_(file, replace, advance)
    if as_json:
        print_json({"added": found.added, "replaced": found.replaced, "kept": found.kept})
        return
    console.print(
        f"{len(found.added)} added, {len(found.replaced)} replaced, {len(found.kept)} kept as they were in "
        f"{store.root}",
        markup=False,
    )


@app.command()
def rm(
    keys: Keys = None,
    every: Annotated[bool, typer.Option("--all", help="All of them.")] = False,
    recorded: Annotated[
        bool, typer.Option("--recorded", help="Not entries, but recorded kernels that wait.")
    ] = False,
    root: Root = None,
    as_json: Json = False,
) -> None:
    """Remove entries, or recorded kernels that are not to be optimised."""
    store = Store(root)
    if bool(keys) == every:
        raise CuasmrlError("name the keys to remove, or say --all")
    if recorded:
        there = [kernel.key for kernel in store.recorded()]
        chosen = there if every else [_only(there, key) for key in keys or ()]
        removed = [key for key in chosen if store.forget_recorded(key)]
    else:
        chosen = store.keys() if every else [store.resolve(key) for key in keys or ()]
        removed = [key for key in chosen if store.remove(key)]
    if as_json:
        print_json({"removed": removed, "epoch": store.epoch})
    else:
        console.print(f"{len(removed)} removed from {store.root}", markup=False)


@app.command()
def verify(root: Root = None, as_json: Json = False) -> None:
    """Prove every entry again; damaged ones are set aside. Exit status 1 if any is not good."""
    store = Store(root)
    with progress("proving", as_json) as advance:
        found = store.verify(advance)
    if as_json:
        print_json([{"key": one.key, "good": one.good, "sentence": one.sentence} for one in found])
    else:
        for one in found:
            console.print(f"{one.key[:_SHORT]}  {one.sentence}", markup=False)
        good = sum(one.good for one in found)
        console.print(
            f"{good} of {_count(len(found), 'entry', 'entries')} of {store.root} proved", markup=False
        )
    if not all(one.good for one in found):
        raise typer.Exit(1)


def _summary(entry: Entry) -> dict[str, Any]:
    return {
        "key": entry.key,
        "arch": entry.arch,
        "kernels": entry.kernels,
        "gain": entry.gain,
        "modelled": is_modelled(entry.measurement),
        "measurement": entry.measurement,
        "origin": entry.provenance.get("origin"),
    }


def _line(entry: Entry) -> str:
    more = f" and {len(entry.kernels) - 1} more" if len(entry.kernels) > 1 else ""
    return (
        f"{entry.key[:_SHORT]}  sm_{entry.arch}  {entry.kernels[0]}{more}  {_gain(entry)} in "
        f"{entry.measurement['unit']} on {_device(entry)}"
    )


def _gain(entry: Entry) -> str:
    low, high = entry.measurement["interval"]
    return f"{100 * entry.gain:+.2f} % ({100 * low:+.2f} to {100 * high:+.2f} %)"


def _device(entry: Entry) -> str:
    gpu = measured_on(entry.measurement)
    return f"{entry.measurement['device']}, {gpu}" if gpu else str(entry.measurement["device"])


def _measurement(entry: Entry) -> dict[str, Any]:
    """Its fields for people: the gain as it was confirmed, and times that say what they are times of."""
    figures = entry.measurement
    modelled = is_modelled(figures)
    said = {
        "device": _device(entry),
        "gain": f"{_gain(entry)}, the median over {'the ensemble' if modelled else 'the rounds'}",
        "on the nominal chip" if modelled else "times": (
            f"{figures['original']:,.2f} {figures['unit']} before, {figures['optimised']:,.2f} after"
        ),
    }
    others = {name: value for name, value in figures.items() if name not in (*FIGURES, "gpu")}
    return said | others


def _unpack(entry: Entry, folder: Path) -> None:
    import json

    parts = {
        "original.cubin": entry.original,
        "optimised.cubin": entry.optimised,
        "certificate.json": (json.dumps(entry.facts()["certificate"], indent=1) + "\n").encode(),
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in parts.items():
            (folder / name).write_bytes(content)
    except OSError as error:
        raise CuasmrlError(f"cannot write to {folder}: {error.strerror}; choose a writable place") from error


def _only(keys: list[str], start: str) -> str:
    found = [key for key in keys if key.startswith(start)]
    if len(found) != 1:
        raise CuasmrlError(
            f"{len(found) or 'no'} recorded kernels begin with {start}; see `cuasmrl store ls --json`"
        )
    return found[0]


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"
