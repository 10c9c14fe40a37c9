"""The whole way from workloads to weights: lessons on many kernels, fitting, once more with what was learnt.

Everything is kept in a folder of work: whoever is interrupted gives the same command again and loses at most
a lesson and an epoch. The same settings give the same weights, on any number of processes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, as_completed
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Protocol
from zlib import crc32

import torch

from cuasmrl import workloads
from cuasmrl.agents.policy import lessons, weights
from cuasmrl.agents.policy.lessons import Plan
from cuasmrl.agents.policy.network import Network
from cuasmrl.agents.policy.ranker import Policy
from cuasmrl.agents.policy.scenes import Scene, scenes_of
from cuasmrl.agents.policy.training import Course, Progress, fit
from cuasmrl.binary.cubin import Cubin
from cuasmrl.binary.sass import disassemble_kernel
from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.chips import chip
from cuasmrl.gpu.devices.pool.jobs import jobs_of
from cuasmrl.schedule import Board, Scoreboards
from cuasmrl.workloads.tracing import trace_workload

HELD_OUT = (
    "gemm_leaky_relu", "bmm", "fused_ff",
    "flash_attention", "flash_attention_causal", "paged_attention",
    "softmax", "rmsnorm", "layernorm", "cross_entropy",
)  # fmt: skip
"""The published workloads and all others of their families, so that the weights can be examined on them."""

LEFT_OUT = ("transpose", "warp_scan", "int64_mix")
"""Many short blocks and long replays: they would take half of the time and hold hardly a move that helps."""


@dataclass(frozen=True)
class Curriculum:
    """What a policy is trained on, and how."""

    hold_out: tuple[str, ...] = (*HELD_OUT, *LEFT_OUT)
    """Workloads that it never sees."""
    chips: tuple[str, ...] = ("a100", "rtx4090", "h100")
    """Whose kernels it sees, on the virtual GPU."""
    configs: int = 2
    """Kernels of each workload at most, on each chip."""
    rounds: int = 1
    """Of lessons: from the second on half of what is labelled are moves that the policy so far likes best."""
    seed: int = 0
    """Of all random choices."""
    plan: Plan = field(default_factory=Plan)
    """How much is asked of each kernel in the first round,"""
    next_plan: Plan = field(default_factory=lambda: Plan(stops=(150, 600)))
    """and in later ones."""
    course: Course = field(default_factory=Course)
    """How the network is fitted."""


@dataclass(frozen=True)
class Subject:
    """A kernel to learn from."""

    workload: str
    config: str
    chip: str

    def path(self, work: Path, number: int, scoreboards: Scoreboards) -> Path:
        name = f"{self.workload}-{self.config}-{self.chip}-{scoreboards}.npz"
        return work / f"lessons-{number}" / name

    def seed(self, start: int, number: int, scoreboards: Scoreboards) -> int:
        return crc32(f"{start} {number} {self} {scoreboards}".encode())


def subjects(curriculum: Curriculum) -> list[Subject]:
    """All kernels that may be seen."""
    for name in curriculum.hold_out:
        workloads.get(name)
    found = []
    for key in curriculum.chips:
        arch = chip(key).arch
        for workload in workloads.all():
            if workload.name not in curriculum.hold_out:
                able = [config.name for config in workload.configs if not workload.supports(config, arch)]
                found += [Subject(workload.name, config, key) for config in able[: curriculum.configs]]
    if not found:
        raise CuasmrlError("all workloads are held out; leave at least one to train on")
    return found


class Watcher(Protocol):
    """Is told how far training is."""

    def lesson(self, number: int, done: int, total: int) -> None:
        """A round has so many of so many lessons."""

    def epoch(self, number: int, progress: Progress) -> None:
        """The network of a round has been fitted so far."""


def train(
    curriculum: Curriculum, work: Path, output: Path, jobs: int, watcher: Watcher, on: str | None = None
) -> dict[str, Any]:
    """From workloads to weights, or from wherever it was interrupted; what is to be said about them."""
    torch.set_num_threads(1)
    _settle(curriculum, work)
    with jobs_of(jobs, on, [work]) as pool:
        return _trained(curriculum, work, output, pool, watcher)


def _trained(
    curriculum: Curriculum, work: Path, output: Path, pool: Executor, watcher: Watcher
) -> dict[str, Any]:
    known: Path | None = None
    scenes: list[Scene] = []
    about: dict[str, Any] = {"curriculum": asdict(curriculum)}
    for number in range(1, curriculum.rounds + 1):
        chosen = subjects(curriculum)
        _study(curriculum, chosen, work, number, known, pool, watcher)
        new = list(_observe(chosen, work, number, pool))
        scenes += new
        network = fit(
            scenes, curriculum.course, work / f"checkpoint-{number}.pt", partial(watcher.epoch, number)
        )
        about[f"round {number}"] = _summary(new)
        known = work / f"policy-{number}.safetensors"
        weights.save(known, _tensors(network), about)
    weights.save(output, _tensors(network), about)
    return about


def _settle(curriculum: Curriculum, work: Path) -> None:
    """A folder of work belongs to one curriculum; only further rounds may be added."""
    path = work / "curriculum.json"
    settings = json.dumps(asdict(curriculum) | {"rounds": None}, indent=1) + "\n"
    if path.is_file() and path.read_text(encoding="utf-8") != settings:
        raise CuasmrlError(
            f"{work} holds the work of another curriculum; give the settings in {path}, or another --work"
        )
    work.mkdir(parents=True, exist_ok=True)
    path.write_text(settings, encoding="utf-8")


def _study(
    curriculum: Curriculum, chosen: Sequence[Subject], work: Path, number: int, known: Path | None,
    pool: Executor, watcher: Watcher,
) -> None:  # fmt: skip
    """The lessons of a round that are not on disk yet."""
    left = [s for s in chosen if not all(s.path(work, number, mode).is_file() for mode in Scoreboards)]
    done = len(chosen) - len(left)
    watcher.lesson(number, done, len(chosen))
    studies = [pool.submit(study, curriculum, subject, work, number, known) for subject in left]
    for one in as_completed(studies):
        one.result()
        done += 1
        watcher.lesson(number, done, len(chosen))


def study(curriculum: Curriculum, subject: Subject, work: Path, number: int, known: Path | None) -> None:
    """One kernel, with scoreboards kept and reassigned; nothing is learnt where nothing can move."""
    policy = None if known is None else Policy.load(known)
    plan = curriculum.plan if number == 1 else curriculum.next_plan
    workload = workloads.get(subject.workload)
    kernel = None
    for mode in Scoreboards:
        path = subject.path(work, number, mode)
        if path.is_file():
            continue
        try:
            kernel = kernel or trace_workload(workload, workload.config(subject.config), chip(subject.chip))
            seed = subject.seed(curriculum.seed, number, mode)
            found = list(lessons.positions_of(kernel, plan, seed, mode, policy))
        except CuasmrlError:
            found = []
        lessons.save(path, found)


def _observe(chosen: Sequence[Subject], work: Path, number: int, pool: Executor) -> Iterator[Scene]:
    """The scenes of a round, in the order of its subjects."""
    for scenes in pool.map(observe, chosen, [work] * len(chosen), [number] * len(chosen)):
        yield from scenes


def observe(subject: Subject, work: Path, number: int) -> list[Scene]:
    """What a policy sees in the lessons on one kernel."""
    workload = workloads.get(subject.workload)
    scenes: list[Scene] = []
    listing = None
    for mode in Scoreboards:
        positions = lessons.load(subject.path(work, number, mode))
        if positions:
            if listing is None:
                built = workload.build(workload.config(subject.config), chip(subject.chip).arch)
                listing = disassemble_kernel(Cubin.parse(built.cubin, workload.name), built.kernel)
            scenes += scenes_of(Board(listing, scoreboards=mode), positions)
    return scenes


def _tensors(network: Network) -> weights.Tensors:
    """All that is asked by those who play."""
    state = network.state_dict().items()
    return {name: tensor.detach().numpy() for name, tensor in state if not name.startswith("gain.")}


def _summary(scenes: Sequence[Scene]) -> dict[str, int]:
    return {
        "scenes": len(scenes),
        "moves": sum(len(scene.helps) for scene in scenes),
        "moves that help": int(sum(float(scene.helps.sum()) for scene in scenes)),
    }
