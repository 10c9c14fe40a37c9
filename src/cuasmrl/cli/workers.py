"""The options that say who times schedules: processes of this machine, or a Ray cluster."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from cuasmrl.gpu.devices.pool import Crew

RAY = "ray"

Workers = Annotated[
    int | None,
    typer.Option(
        "--workers", help="Processes of this machine; with --on workers of the cluster.", show_default=False
    ),
]
On = Annotated[
    str | None,
    typer.Option(
        "--on",
        metavar="ray|ADDRESS",
        help="A Ray cluster instead: one of this machine, or the one at an address.",
        show_default=False,
    ),
]


def address_of(on: str) -> str | None:
    """None for a cluster of this machine."""
    return None if on == RAY else on


@contextmanager
def crew_of(workers: int | None, on: str | None, device: str | None) -> Iterator[Crew | None]:
    """None if nobody was asked for: then this process uses its own cores.

    What cannot be is refused here, before anything is played.
    """
    if workers is None and on is None:
        yield None
        return
    from cuasmrl.gpu.devices.opening import is_gpu
    from cuasmrl.gpu.devices.pool import Alone, Processes, check_workers

    gpu = device is not None and is_gpu(device)
    if workers is not None and on is None:
        yield Alone() if workers == 1 else Processes(workers, daemon=not gpu)
        return
    from cuasmrl.gpu.devices.pool.on_ray import OnRay

    if workers is not None and workers < 1:
        check_workers(workers)
    crew = OnRay(address_of(on or RAY), workers, gpu)
    try:
        yield crew
    finally:
        crew.close()
