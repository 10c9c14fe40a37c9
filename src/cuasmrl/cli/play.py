"""The command that serves the game to be played in a browser."""

from __future__ import annotations

import signal
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cuasmrl.cli.console import (
    ChosenKernel,
    Json,
    L2Name,
    LaunchFile,
    Settings,
    console,
    l2_named,
    print_json,
    problems,
    progress,
)
from cuasmrl.cli.display import introduction
from cuasmrl.cli.sizes import sizes_given
from cuasmrl.errors import CuasmrlError

if TYPE_CHECKING:
    from cuasmrl.agents.ranking import Ranker
    from cuasmrl.explain.play.serving import Server
    from cuasmrl.optimize import Optimized, Request, Subject, Watch
    from cuasmrl.optimize.runs import RunDirectory
    from cuasmrl.schedule import Schedule

_PORT = 8737


def play(
    kernel_of: Annotated[
        str | None,
        typer.Argument(
            metavar="WORKLOAD|CUBIN",
            help="A workload (see `cuasmrl workloads`), or a cubin file with --launch; none with --from.",
            show_default=False,
        ),
    ] = None,
    config: Annotated[
        str | None, typer.Option("--config", help="Of a workload; without it the fastest is chosen.")
    ] = None,
    settings: Settings = None,
    launch: LaunchFile = None,
    kernel: ChosenKernel = None,
    device: Annotated[
        str | None,
        typer.Option("--device", help="virtual:CHIP; virtual:a100 by default.", show_default=False),
    ] = None,
    l2: L2Name = None,
    start: Annotated[
        Path | None,
        typer.Option(
            "--from", metavar="RUN", help="Go on from the best schedule of a run.", show_default=False
        ),
    ] = None,
    agent: Annotated[
        str | None, typer.Option("--agent", help="Who plays when you let it; as in `optimize` by default.")
    ] = None,
    run: Annotated[
        Path | None,
        typer.Option(
            "--run", help="Directory for the run that is saved; by default one in runs/.", show_default=False
        ),
    ] = None,
    port: Annotated[
        int, typer.Option("--port", help="Of the page; another if it is taken.", min=0, max=65535)
    ] = _PORT,
    browser: Annotated[bool, typer.Option("--open/--no-open", help="Open the page in a browser.")] = True,
    record: Annotated[
        Path | None,
        typer.Option(
            "--record",
            help="Serve nothing: let the agent play, and write the game as a page there.",
            show_default=False,
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Play the assembly game in a browser."""
    asked: dict[str, Any] = {
        "source": kernel_of, "config": config, "launch": str(launch) if launch else None, "kernel": kernel,
        "sizes": sizes_given(kernel_of, launch, settings) if kernel_of else None, "device": device,
        "agent": agent, "l2": l2_named(l2) if l2 else None,
    }  # fmt: skip
    request, opened = _request({name: value for name, value in asked.items() if value is not None}, start)
    if record is None:
        from cuasmrl.explain.play.serving import needed

        needed()
    elif not record.absolute().parent.is_dir():
        raise CuasmrlError(f"cannot write {record}: there is no directory {record.parent}; make it first")
    from cuasmrl.optimize import prepare

    with progress("preparing", as_json) as advance:
        subject = prepare(request, advance)
    best = None if opened is None else opened.best(subject.kernel.listing)
    if record is not None:
        _record(subject, request, best, record, as_json)
    else:
        _serve(subject, request, best, run, port, browser, as_json)


def _request(asked: dict[str, Any], start: Path | None) -> tuple[Request, RunDirectory | None]:
    from cuasmrl.optimize import BY_HAND, Request, default_agent
    from cuasmrl.optimize.runs import RunDirectory

    given = dict(asked)
    if start is None:
        if "source" not in given:
            raise CuasmrlError("name a workload or a cubin to play on, or a run with --from")
        return Request(**given), None
    stray = next(
        (name for name in ("source", "config", "launch", "kernel", "device", "l2") if name in given), None
    )
    if stray is not None:
        raise CuasmrlError(f"--from brings its kernel with it, so a {stray} cannot be given as well")
    opened = RunDirectory.open(start)
    if "cubin" in opened.config.source:
        given |= {
            "source": str(start / "original.cubin"),
            "launch": str(start / "launch.json"),
            "other_launches": (),
        }
    if opened.config.agent == BY_HAND:
        given.setdefault("agent", default_agent())
    return Request.of_run(opened.config, given), opened


def _serve(
    subject: Subject,
    request: Request,
    best: Schedule | None,
    run: Path | None,
    port: int,
    browser: bool,
    as_json: bool,
) -> None:
    from cuasmrl.agents import AGENTS
    from cuasmrl.explain.play.app import application
    from cuasmrl.explain.play.desk import Desk
    from cuasmrl.explain.play.game import SharedGame
    from cuasmrl.explain.play.serving import Server
    from cuasmrl.optimize import submit

    def judge(visited: tuple[Schedule, ...], watch: Watch) -> Optimized:
        return submit(request, subject, visited, run, watch)

    kernel = subject.traced
    desk = Desk(SharedGame(kernel, best), AGENTS.named(request.agent), judge, _ranker)
    server = Server(lambda token, over: application(token, desk, desk.pages, desk.actions, over), port)
    server.start()
    if not as_json:
        console.print(introduction(kernel, subject.device, subject.candidates), markup=False)
    announce(server, port, as_json)
    if browser:
        typer.launch(server.address)
    over = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        # Said outright, because whoever starts it in the background may have SIGINT ignored.
        signal.signal(number, lambda *_: over.set())
    over.wait()
    desk.player.stop()
    server.stop()
    problems.print("stopped", markup=False)


def _record(subject: Subject, request: Request, best: Schedule | None, target: Path, as_json: bool) -> None:
    from cuasmrl.agents import AGENTS
    from cuasmrl.explain.play.game import SharedGame
    from cuasmrl.explain.play.player import Player
    from cuasmrl.explain.play.recording import recorded_page
    from cuasmrl.files import write_text

    game = SharedGame(subject.traced, best)
    player = Player(game, AGENTS.named(request.agent), request.budget)
    player.start(game.version, request.seed)
    player.wait()
    write_text(target, recorded_page(game))
    if as_json:
        print_json({"recorded": str(target), "improvements": len(game.steps) - 1})
    else:
        console.print(f"{len(game.steps) - 1} improvements recorded in {target}", markup=False)


def announce(server: Server, port: int, as_json: bool) -> None:
    """Where the page is, and why there if another port was asked for."""
    if as_json:
        print_json({"address": server.address, "port": server.port})
        sys.stdout.flush()
        return
    if not server.is_wanted_port:
        problems.print(f"port {port} is in use, so the page is at {server.port}", markup=False)
    console.print(f"open {server.address} (Ctrl-C ends it)", markup=False)


def _ranker() -> Ranker | None:
    """The policy, where weights are installed."""
    from cuasmrl.agents.policy import weights
    from cuasmrl.agents.policy.ranker import Policy

    return Policy.load() if weights.DEFAULT.exists() else None
