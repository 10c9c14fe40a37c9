"""The command that trains the policy."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cuasmrl.cli.console import Json, console, print_json, problems, progress
from cuasmrl.cli.workers import On
from cuasmrl.errors import CuasmrlError

if TYPE_CHECKING:
    from cuasmrl.agents.policy.training import Progress


def train(
    work: Annotated[
        Path,
        typer.Option("--work", help="Lessons and checkpoints are kept here; the command goes on from them."),
    ] = Path("policy-work"),
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="FILE.safetensors", help="Where the weights go.")
    ] = Path("policy.safetensors"),
    hold_out: Annotated[
        list[str] | None,
        typer.Option(
            "--hold-out",
            metavar="WORKLOAD",
            help="Never seen; repeat for several. The published ones and their families if none is named.",
        ),
    ] = None,
    chip: Annotated[
        list[str] | None, typer.Option("--chip", help="Whose kernels are seen; repeat for several.")
    ] = None,
    configs: Annotated[
        int | None, typer.Option("--configs", help="Kernels of each workload and chip.", min=1)
    ] = None,
    rounds: Annotated[
        int | None,
        typer.Option(
            "--rounds", help="Of lessons; from the second on half of the moves are the policy's.", min=1
        ),
    ] = None,
    epochs: Annotated[int | None, typer.Option("--epochs", help="Passes over all moves.", min=1)] = None,
    seed: Annotated[int, typer.Option("--seed", help="Of all random choices.", min=0)] = 0,
    jobs: Annotated[int, typer.Option("--jobs", help="Kernels explored at a time.", min=1)] = 2,
    on: On = None,
    as_json: Json = False,
) -> None:
    """Train the policy that ranks moves, on all workloads but those held out.

    The same settings give the same weights, with any number of jobs, and however often it was interrupted.
    """
    if output.suffix != ".safetensors":
        raise CuasmrlError(f"weights go to a file that ends with .safetensors, not to {output}")
    try:
        from cuasmrl.agents.policy.curriculum import Curriculum
        from cuasmrl.agents.policy.curriculum import train as run
        from cuasmrl.agents.policy.training import Course
    except ModuleNotFoundError as error:
        raise CuasmrlError(
            f"training needs {error.name}; install it with pip install 'cuasmrl[rl]'"
        ) from error
    default = Curriculum()
    curriculum = Curriculum(
        default.hold_out if hold_out is None else tuple(hold_out),
        tuple(chip or default.chips),
        configs or default.configs,
        rounds or default.rounds,
        seed,
        course=Course(epochs=epochs or Course.epochs, seed=seed),
    )
    with progress("lessons", as_json) as advance:
        about = run(curriculum, work, output, jobs, _Watcher(work, advance, as_json), on)
    if as_json:
        print_json(about)
        return
    beside = output.with_suffix(".json")
    console.print(f"weights in {output}; what they are made of in {beside}", markup=False)


class _Watcher:
    """Shows how far training is, here and in TensorBoard."""

    def __init__(self, work: Path, advance: Callable[[int, int], None], is_quiet: bool) -> None:
        self._work = work
        self._advance = advance
        self._is_quiet = is_quiet

    def lesson(self, number: int, done: int, total: int) -> None:
        self._advance(done, total)

    def epoch(self, number: int, progress: Progress) -> None:
        from torch.utils.tensorboard import SummaryWriter

        with SummaryWriter(str(self._work / "tensorboard" / f"round-{number}")) as writer:
            writer.add_scalar("train/loss", progress.loss, progress.epoch)
            writer.add_scalar("train/learning_rate", progress.learning_rate, progress.epoch)
        if not self._is_quiet:
            problems.print(f"round {number}, epoch {progress.epoch}: loss {progress.loss:.4f}")
