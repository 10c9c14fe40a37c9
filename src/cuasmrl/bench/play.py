"""The page of the game: how soon a drag is answered, and what it costs a run to be watched."""

from __future__ import annotations

import contextlib
import http.client
import json
import multiprocessing
import random
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from statistics import median, quantiles
from typing import Any
from urllib.parse import urlsplit

from cuasmrl import workloads
from cuasmrl.agents import AGENTS
from cuasmrl.errors import CuasmrlError
from cuasmrl.explain.play.app import application
from cuasmrl.explain.play.desk import Desk
from cuasmrl.explain.play.game import SharedGame
from cuasmrl.explain.play.serving import Server
from cuasmrl.explain.play.state import kernel_data
from cuasmrl.explain.play.watching import Watched
from cuasmrl.game import BudgetSpentError, Clock, Evaluation, Game
from cuasmrl.gpu.chips import chip
from cuasmrl.gpu.devices import VirtualTimer
from cuasmrl.gpu.traced import TracedKernel
from cuasmrl.optimize import Played, Watch
from cuasmrl.workloads.tracing import trace_workload

WORKLOAD, CONFIG = "gemm_leaky_relu", "m128n256k64_w8_s3"
"""1,424 instructions."""
_SEED = 0
_ROUNDS = 6
_BUDGET = 1500


@dataclass(frozen=True)
class Answers:
    """Milliseconds from a request to the whole answer, the new state of the page included."""

    instructions: int
    drags: int
    reach: float
    """Where an instruction may go: median, as is the next."""
    drag: float
    drag_95: float
    """95th percentile."""
    processor: float
    """Milliseconds of processor time for a drag, on both ends of the line: mean."""
    bytes: int
    """Of an answer."""

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class WatchCost:
    """Evaluations per second of processor time, median of the rounds."""

    evaluations: int
    rounds: int
    alone: float
    watched: float
    """With a browser that listens."""
    shares: tuple[float, ...]
    """By which the rate was lower in each round, watched right after alone or right before."""
    server: float
    """Share of the processor time that went into all threads but the one that plays: median."""

    @property
    def share(self) -> float:
        return median(self.shares)

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "share": self.share}


def traced(name: str = WORKLOAD, config: str = CONFIG) -> TracedKernel:
    workload = workloads.get(name)
    return trace_workload(workload, workload.config(config), chip("a100"), dict(workload.sizes))


def answers(kernel: TracedKernel, drags: int, advance: Callable[[int, int], None]) -> Answers:
    """Instructions of the hot code to random places within their reach."""
    game = SharedGame(kernel)
    desk = Desk(game, AGENTS.named("greedy"), _nobody, lambda: None)
    server = Server(lambda token, over: application(token, desk, desk.pages, desk.actions, over), 0)
    server.start()
    rng, line, hot = random.Random(_SEED), _Line(server.address), _hot(game)
    reaches, moves, worked, size = list[float](), list[float](), 0.0, 0
    while len(moves) < drags:
        i = rng.choice(hot)
        took, status, reach = line.ask("reach", {"version": game.version, "instruction": i})
        reaches.append(took)
        here = game.board.position[i]
        to = rng.randint(reach["first"], reach["last"])
        if to == here:
            continue
        move = {"kind": "drag", "instruction": i, "position": to}
        started = time.process_time()
        took, status, found = line.ask("move", {"version": game.version, "move": move})
        if status == 200:
            worked += time.process_time() - started
            moves.append(took)
            size = len(json.dumps(found))
            advance(len(moves), drags)
    server.stop()
    return Answers(
        len(kernel.listing.instructions),
        drags,
        median(reaches),
        median(moves),
        quantiles(moves, n=20)[-1],
        1e3 * worked / drags,
        size,
    )


def _hot(game: SharedGame) -> list[int]:
    data = kernel_data(game.kernel, game.board, game.watch)
    blocks = [data["blocks"][number] for number in data["region"]]
    return [i for start, end in blocks for i in range(start, end) if not game.board.fixed[i]]


def _nobody(*_: object) -> Any:
    raise CuasmrlError("nothing is judged here")


class _Line:
    def __init__(self, address: str) -> None:
        self._parts = urlsplit(address)
        self._line = http.client.HTTPConnection("127.0.0.1", self._parts.port, timeout=60)

    def ask(self, name: str, data: dict[str, Any]) -> tuple[float, int, Any]:
        """Milliseconds, status, answer."""
        started = time.perf_counter()
        headers = {"Content-Type": "application/json"}
        self._line.request("POST", self._parts.path + name, json.dumps(data), headers)
        answer = self._line.getresponse()
        body = answer.read()
        return 1e3 * (time.perf_counter() - started), answer.status, json.loads(body)


def watch_cost(kernel: TracedKernel, advance: Callable[[int, int], None], rounds: int = _ROUNDS) -> WatchCost:
    """The same game again and again, alone and watched by turns, so that a busy machine is fair to both."""
    timer = VirtualTimer(kernel, workers=1)
    _play(kernel, timer, None)
    alone, watched = list[_Spent](), list[_Spent]()
    for n in range(rounds):
        for is_watched in (False, True) if n % 2 else (True, False):
            if is_watched:
                watched.append(_play_watched(kernel, timer))
            else:
                alone.append(_play(kernel, timer, None))
        advance(n + 1, rounds)
    return WatchCost(
        _BUDGET,
        rounds,
        median(spent.rate for spent in alone),
        median(spent.rate for spent in watched),
        tuple(1 - w.rate / a.rate for a, w in zip(alone, watched, strict=True)),
        median(spent.others for spent in watched),
    )


@dataclass(frozen=True)
class _Spent:
    rate: float
    """Evaluations per second of processor time of this process, the server's included."""
    others: float
    """Share of it that other threads took."""


def _play_watched(kernel: TracedKernel, timer: VirtualTimer) -> _Spent:
    watched = Watched()
    watched.begin(kernel, "greedy", _BUDGET)
    server = Server(lambda token, over: application(token, watched, watched.pages, {}, over), 0)
    server.start()
    listener = multiprocessing.get_context("spawn").Process(target=_listen, args=(server.address,))
    listener.start()
    time.sleep(1.0)
    spent = _play(kernel, timer, watched)
    watched.close()
    server.stop()
    listener.join(10)
    return spent


def _listen(address: str) -> None:
    """As a browser does, until the server ends."""
    parts = urlsplit(address)
    line = http.client.HTTPConnection("127.0.0.1", parts.port)
    line.request("GET", f"{parts.path}events")
    answer = line.getresponse()
    while answer.read1():
        pass


def _play(kernel: TracedKernel, timer: VirtualTimer, watched: Watched | None) -> _Spent:
    hooks = watched.hooks if watched else Watch()
    all_threads, this_thread = time.process_time(), time.thread_time()

    def listen(evaluation: Evaluation) -> None:
        if evaluation.is_best:
            hooks.found(clock.best)
        tried = clock.start / evaluation.time - 1
        hooks.played(Played(evaluation.number, _BUDGET, clock.gain, evaluation.number, tried))

    clock = Clock(timer, kernel.original, _BUDGET, listener=listen)
    with contextlib.suppress(BudgetSpentError):
        AGENTS.named("greedy").play(lambda: Game(kernel.listing, clock, kernel), _SEED)
    all_threads, this_thread = time.process_time() - all_threads, time.thread_time() - this_thread
    return _Spent(clock.spent / all_threads, 1 - this_thread / all_threads)
