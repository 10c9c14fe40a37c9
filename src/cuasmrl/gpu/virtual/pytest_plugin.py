"""Tests written for a GPU on the virtual one.

    pytest -p cuasmrl.gpu.virtual.pytest_plugin --virtual-gpu a100 python/test/unit

`device="cuda"` is the virtual GPU, for torch and for Triton, also in processes that tests start. A sample can
be drawn, and a record lets a long run go on where it stopped; the summary sorts what failed by reason.
"""

from __future__ import annotations

import json
import os
import random
import re
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pytest

from cuasmrl.gpu.virtual.scripts import Script

_CHILD = Path(__file__).parent / "child"
_VARIABLE = "CUASMRL_VIRTUAL_CUDA"
_NUMBERS = re.compile(r"0x[0-9a-f]+|\d+")
_WIDEST_REASON = 110


@dataclass(frozen=True)
class Outcome:
    """How one test ended."""

    test: str
    outcome: str
    """passed, failed or skipped."""
    seconds: float
    reason: str = ""


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("virtual GPU")
    group.addoption("--virtual-gpu", metavar="CHIP", help="Run on this chip, such as a100.")
    group.addoption("--virtual-gpu-sample", type=int, metavar="N", help="Run N tests drawn at random.")
    group.addoption("--virtual-gpu-seed", type=int, default=0, metavar="N", help="Of the sample.")
    group.addoption("--virtual-gpu-timeout", type=int, default=0, metavar="SECONDS", help="For one test.")
    group.addoption("--virtual-gpu-scripts", action="store_true", help="The files are programs, not tests.")
    group.addoption(
        "--virtual-gpu-record",
        metavar="FILE",
        help="Outcomes, one JSON line each; those in it are not run again.",
    )


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--virtual-gpu"):
        config.pluginmanager.register(VirtualRun(config), "cuasmrl-virtual-run")


class Overdue(Exception):  # noqa: N818  (the test may be right)
    """A test took longer than it may."""


class VirtualRun:
    """One session of pytest on a virtual GPU."""

    def __init__(self, config: pytest.Config) -> None:
        self.chip: str = config.getoption("--virtual-gpu")
        self.sample: int | None = config.getoption("--virtual-gpu-sample")
        self.seed: int = config.getoption("--virtual-gpu-seed")
        self.timeout: int = config.getoption("--virtual-gpu-timeout")
        self.scripts: bool = config.getoption("--virtual-gpu-scripts")
        record = config.getoption("--virtual-gpu-record")
        self.record = Path(record) if record else None
        self.outcomes = _read(self.record)
        self._earlier = {outcome.test for outcome in self.outcomes}
        self._names: dict[str, str] = {}
        """Of tests, by pytest's own, which begin at a root that depends on all its arguments."""
        self._stack = ExitStack()
        from cuasmrl.gpu.virtual.torch_cuda import as_cuda

        # Before tests are collected: skip conditions of modules ask for the chip.
        self._stack.enter_context(as_cuda(self.chip))
        os.environ[_VARIABLE] = self.chip
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(_CHILD), os.environ.get("PYTHONPATH"))))

    def pytest_unconfigure(self) -> None:
        os.environ.pop(_VARIABLE, None)
        self._stack.close()

    def pytest_pycollect_makemodule(
        self, module_path: Path, parent: pytest.Collector
    ) -> pytest.Collector | None:
        return Script.from_parent(parent, path=module_path) if self.scripts else None

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        here = config.invocation_params.dir
        self._names = {item.nodeid: _name(item, here) for item in items}
        chosen = sorted(items, key=lambda item: self._names[item.nodeid])
        if self.sample is not None and self.sample < len(chosen):
            chosen = random.Random(self.seed).sample(chosen, self.sample)
            # In the order of the files again, so that what a module sets up is set up once.
            chosen.sort(key=lambda item: self._names[item.nodeid])
        chosen = [item for item in chosen if self._names[item.nodeid] not in self._earlier]
        kept = {id(item) for item in chosen}
        config.hook.pytest_deselected(items=[item for item in items if id(item) not in kept])
        items[:] = chosen

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        if not self.timeout:
            return (yield)

        def interrupt(number: int, frame: Any) -> None:
            raise Overdue(f"still running after {self.timeout} seconds")

        before = signal.signal(signal.SIGALRM, interrupt)
        signal.alarm(self.timeout)
        try:
            return (yield)
        finally:
            signal.alarm(0)
            signal.signal(signal.SIGALRM, before)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        # A test that passes has three reports, one that does not the first that says so, and a call.
        if report.when != "call" and report.outcome == "passed":
            return
        outcome = "skipped" if hasattr(report, "wasxfail") else report.outcome
        name = self._names.get(report.nodeid, report.nodeid)
        found = Outcome(name, outcome, round(report.duration, 2), _reason(report))
        self.outcomes.append(found)
        if self.record is not None:
            with self.record.open("a", encoding="utf-8") as file:
                file.write(json.dumps(asdict(found)) + "\n")

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        terminalreporter.section(f"virtual GPU {self.chip}")
        for line in summary(self.outcomes):
            terminalreporter.line(line)


def summary(outcomes: list[Outcome]) -> list[str]:
    """How many passed of those that ran, and what failed, by reason."""
    last = {outcome.test: outcome for outcome in outcomes}
    counts = Counter(outcome.outcome for outcome in last.values())
    ran = counts["passed"] + counts["failed"]
    share = f" ({100 * counts['passed'] / ran:.1f} %)" if ran else ""
    lines = [
        f"{counts['passed']} of {ran} passed{share}; {counts['skipped']} skipped by the tests themselves"
    ]
    reasons = Counter(
        _NUMBERS.sub("N", outcome.reason)[:_WIDEST_REASON]
        for outcome in last.values()
        if outcome.outcome == "failed"
    )
    return lines + [f"{count:6} {reason}" for reason, count in reasons.most_common()]


def _name(item: pytest.Item, here: Path) -> str:
    inside = item.nodeid.partition("::")[2]
    return f"{os.path.relpath(item.path, here)}::{inside}"


def _reason(report: pytest.TestReport) -> str:
    """The last line of the error, without what differs from test to test."""
    if report.outcome == "passed":
        return ""
    crash = getattr(report.longrepr, "reprcrash", None)
    text = crash.message if crash is not None else str(report.longrepr)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[0] if lines else ""


def _read(record: Path | None) -> list[Outcome]:
    if record is None or not record.exists():
        return []
    return [Outcome(**json.loads(line)) for line in record.read_text(encoding="utf-8").splitlines()]
